/* SPDX-License-Identifier: MIT */
/*
 * Scripts, in both directions. Commands that the server behind does not have
 * are one script each, so that nothing comes between reading and writing. And
 * the scripts of a client of 2.6 get a first half line in front, which puts
 * another redis.call before the server's: they run under another name, and a
 * book says which.
 */
#include "support/aged_inner.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define WRONG_KIND "Operation against a key holding the wrong kind of value"

/* ARGV: the value, what is wrong if there is a key, what is wrong anyway.
 * #!lua: the server refuses it as it would the command itself: on a replica,
 * without enough replicas, without memory. */
#define DELETE_IF_EQUAL(refusal)                                               \
    "#!lua flags=allow-oom\n"                                                  \
    "if ARGV[3] ~= '' then return redis.error_reply(ARGV[3]) end\n"            \
    "local kind = redis.call('TYPE', KEYS[1]).ok\n"                            \
    "if kind == 'none' then return 0 end\n"                                    \
    "if kind ~= 'string' then\n"                                               \
    "  return redis.error_reply('" refusal "')\n"                              \
    "end\n"                                                                    \
    "if ARGV[2] ~= '' then return redis.error_reply(ARGV[2]) end\n"            \
    "if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end\n"             \
    "return redis.call('DEL', KEYS[1])\n"

static const char delex[] = DELETE_IF_EQUAL(
    "ERR Key should be of string type if conditions are specified");
static const char delifeq[] = DELETE_IF_EQUAL("WRONGTYPE " WRONG_KIND);

/* ARGV: the new value, the old one, the other options. The condition of SET
 * is chosen so that it writes or does not; either way it checks the rest. */
static const char set_if_equal[] =
    "#!lua\n"
    "local kind = redis.call('TYPE', KEYS[1]).ok\n"
    "local option = 'XX'\n"
    "if kind ~= 'none' and kind ~= 'string' then option = 'NX' end\n"
    "if kind == 'string' and redis.call('GET', KEYS[1]) ~= ARGV[2] then\n"
    "  option = 'NX'\n"
    "end\n"
    "local reply = redis.pcall('SET', KEYS[1], ARGV[1], option,\n"
    "    unpack(ARGV, 3))\n"
    "if type(reply) == 'table' and reply.err then return reply end\n"
    "if kind ~= 'none' and kind ~= 'string' then\n"
    "  return redis.error_reply('WRONGTYPE " WRONG_KIND "')\n"
    "end\n"
    "return reply\n";

/* Before it come "local redis=(function(redis,has)" and after it the table of
 * commands: words, then w, r or x. The server behind is asked last. */
static const char front[] =
    "local t,random={},false "
    "for k,v in pairs(redis) do t[k]=v end "
    "local function wrong(name,n) "
    "local words,kind=string.match(has[string.lower(tostring(name))] or '',"
    "'^([-%d]+)(.)$') "
    "words=tonumber(words) "
    "if not words then "
    "return 'Unknown Redis command called from Lua script' end "
    "if words>0 and words~=n or words<0 and n<-words then "
    "return 'Wrong number of args calling Redis command From Lua script' end "
    "if random and (kind=='w' or kind=='x') then "
    "return 'Write commands not allowed after non deterministic commands' end "
    "random=random or kind=='r' or kind=='x' end "
    "local function said(name,reply) "
    "name=string.lower(name) "
    "if reply==-2 and (name=='ttl' or name=='pttl') then return -1 end "
    "if type(reply)=='table' and reply.err then "
    "return {err=string.gsub(reply.err,'^WRONGTYPE ','ERR ')} end "
    "return reply end "
    "t.call=function(...) "
    "local e=wrong(...,select('#',...)) "
    "if e then error({err=e}) end "
    "return said(...,redis.call(...)) end "
    "t.pcall=function(...) "
    "local e=wrong(...,select('#',...)) "
    "if e then return {err=e} end "
    "return said(...,redis.pcall(...)) end "
    "return t end)";

static void put_arg(struct bytes *out, const struct resp_arg *arg)
{
    resp_bulk(out, arg->data, arg->len);
}

static void begin_eval(struct bytes *out, size_t args, const char *script,
    const struct resp_arg *key)
{
    bytes_addf(out, "*%zu\r\n", 4 + args);
    resp_bulk(out, "EVAL", 4);
    resp_bulk(out, script, strlen(script));
    resp_bulk(out, "1", 1);
    put_arg(out, key);
}

/* DELEX without a condition is a plain DEL; a condition and no value, or a
 * condition of another name, deletes nothing. That a wrong name is no error
 * where there is no key was measured; the words of the errors were not. */
static bool delex_order(struct aged_order *o)
{
    const struct resp_arg *arg = o->command.arg;
    const char *problem = "", *count = "";

    if (o->command.count == 2) {
        bytes_addf(&o->out, "*2\r\n");
        resp_bulk(&o->out, "DEL", 3);
        put_arg(&o->out, &arg[1]);
        return true;
    }
    if (o->command.count != 4) /* found when it runs: arity is -2 */
        count = "ERR wrong number of arguments for 'delex' command";
    else if (!resp_is(&o->command, 2, "IFEQ"))
        problem = "ERR Invalid condition. Use IFEQ, IFNE, IFDEQ, or IFDNE";
    begin_eval(&o->out, 3, delex, &arg[1]);
    put_arg(&o->out, &arg[o->command.count - 1]);
    resp_bulk(&o->out, problem, strlen(problem));
    resp_bulk(&o->out, count, strlen(count));
    return true;
}

/* SET k v ... IFEQ old ...: where IFEQ stands, or 0. */
static size_t condition_at(const struct resp_command *c, bool *other)
{
    size_t found = 0;

    *other = false;
    for (size_t i = 3; i < c->count; i++) {
        bool has_value = resp_is(c, i, "EX") || resp_is(c, i, "PX") ||
                         resp_is(c, i, "EXAT") || resp_is(c, i, "PXAT");
        if (resp_is(c, i, "NX") || resp_is(c, i, "XX"))
            *other = true;
        if (resp_is(c, i, "IFEQ") && i + 1 < c->count) {
            *other = *other || found != 0;
            found = i++;
        } else if (has_value) {
            i++;
        }
    }
    return found;
}

static bool set_order(struct aged_order *o)
{
    const struct resp_command *c = &o->command;
    bool other;
    size_t at = condition_at(c, &other);

    /* With NX or XX it is a syntax error, as 7.0 says to any IFEQ. */
    if (at == 0 || other)
        return false;
    begin_eval(&o->out, c->count - 3, set_if_equal, &c->arg[1]);
    put_arg(&o->out, &c->arg[2]);
    put_arg(&o->out, &c->arg[at + 1]);
    for (size_t i = 3; i < c->count; i++)
        if (i != at && i != at + 1)
            put_arg(&o->out, &c->arg[i]);
    return true;
}

bool aged_native_order(struct aged_order *o)
{
    const struct resp_command *c = &o->command;

    if (!o->age->delete_if_equal)
        return false;
    if (resp_is(c, 0, "SET"))
        return set_order(o);
    if (resp_is(c, 0, "CLIENT") && resp_is(c, 1, "SETINFO")) {
        aged_put(&o->out, 3, "EVAL", "return redis.status_reply('OK')", "0");
        return true;
    }
    if (!resp_is(c, 0, o->age->delete_if_equal))
        return false;
    if (resp_is(c, 0, "DELEX"))
        return delex_order(o);
    begin_eval(&o->out, 3, delifeq, &c->arg[1]);
    put_arg(&o->out, &c->arg[2]);
    resp_bulk(&o->out, "", 0);
    resp_bulk(&o->out, "", 0);
    return true;
}

void aged_scripts_free(struct aged_book *book)
{
    while (book->scripts) {
        struct aged_script *next = book->scripts->next;
        free(book->scripts);
        book->scripts = next;
    }
}

/* The script as the server is to run it. */
static void dress(
    struct bytes *out, const struct age *age, const struct resp_arg *script)
{
    static const char begin[] = "local redis=(function(redis,has)";

    bytes_add(out, begin, strlen(begin));
    bytes_add(out, front, strlen(front));
    bytes_add(out, "(redis,{", 8);
    for (const struct aged_command *c = aged_commands; c->name; c++)
        if (c->words[age->column] != 0)
            bytes_addf(out, "['%s']='%d%c',", c->name, c->words[age->column],
                c->in_lua);
    bytes_add(out, "}); ", 4);
    bytes_add(out, script->data, script->len);
}

static const struct aged_script *find(
    const struct aged_book *book, const struct resp_arg *sha)
{
    const struct aged_script *s = book->scripts;

    while (s && !(sha->len == 40 && strncasecmp(s->asked, sha->data, 40) == 0))
        s = s->next;
    return s;
}

/* Puts the dressed script, and remembers by what name it will be asked. */
static void put_script(
    struct aged_book *book, struct aged_order *o, const struct resp_arg *script)
{
    struct bytes dressed = {NULL, 0, 0};
    struct resp_arg sha = {o->sha, 40};

    dress(&dressed, o->age, script);
    if (!find(book, &sha)) {
        struct aged_script *s = calloc(1, sizeof(*s));
        if (!s)
            abort();
        memcpy(s->asked, o->sha, sizeof(s->asked));
        sha1_hex(dressed.data, dressed.len, s->real);
        s->next = book->scripts;
        book->scripts = s;
    }
    resp_bulk(&o->out, dressed.data, dressed.len);
    bytes_free(&dressed);
}

static void put_sha(const struct aged_book *book, struct aged_order *o,
    const struct resp_arg *sha)
{
    static const char none[] = "0000000000000000000000000000000000000000";
    const struct aged_script *s = find(book, sha);

    resp_bulk(&o->out, s ? s->real : none, 40);
}

/* The name that an error is to say. */
static void note_sha(struct aged_order *o, size_t i, bool is_script)
{
    const struct resp_arg *arg = &o->command.arg[i];

    if (is_script)
        sha1_hex(arg->data, arg->len, o->sha);
    else
        for (size_t k = 0; k < arg->len && k < 40; k++)
            o->sha[k] = (char)tolower((unsigned char)arg->data[k]);
}

bool aged_script_order(struct aged_book *book, struct aged_order *o)
{
    const struct resp_command *c = &o->command;
    bool eval = resp_is(c, 0, "EVAL"), evalsha = resp_is(c, 0, "EVALSHA");
    bool load = resp_is(c, 0, "SCRIPT") && resp_is(c, 1, "LOAD");
    bool exists = resp_is(c, 0, "SCRIPT") && resp_is(c, 1, "EXISTS");

    if (eval || evalsha)
        note_sha(o, 1, eval);
    else if (load && c->count == 3)
        note_sha(o, 2, true);
    if (o->age->bit != AGE_2_6 ||
        !(eval || evalsha || (load && c->count == 3) || exists))
        return false;
    if (load)
        o->change = AGED_SHA;
    bytes_addf(&o->out, "*%zu\r\n", c->count);
    for (size_t i = 0; i < c->count; i++) {
        if ((eval && i == 1) || (load && i == 2))
            put_script(book, o, &c->arg[i]);
        else if ((evalsha && i == 1) || (exists && i >= 2))
            put_sha(book, o, &c->arg[i]);
        else
            put_arg(&o->out, &c->arg[i]);
    }
    return true;
}
