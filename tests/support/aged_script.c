/* SPDX-License-Identifier: MIT */
/*
 * Scripts, in both directions. Those of a client of 2.6 get a first half line
 * in front, which puts another redis.call before the server's: they run under
 * another name, and a book says which.
 */
#include "support/aged_inner.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Before it come "local redis=(function(redis,has)" and after it the table of
 * commands: words, then w, r or x. The server behind is asked last. */
static const char front[] =
    "local t,random={},false "
    "for k,v in pairs(redis) do t[k]=v end t.replicate_commands=nil "
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

void aged_script_order(struct aged_book *book, struct aged_order *o)
{
    const struct resp_command *c = &o->command;
    bool eval = resp_is(c, 0, "EVAL"), evalsha = resp_is(c, 0, "EVALSHA");
    bool load = resp_is(c, 0, "SCRIPT") && resp_is(c, 1, "LOAD");
    bool exists = resp_is(c, 0, "SCRIPT") && resp_is(c, 1, "EXISTS");

    if (eval || evalsha)
        note_sha(o, 1, eval);
    else if (load && c->count == 3)
        note_sha(o, 2, true);
    bytes_addf(&o->out, "*%zu\r\n", c->count);
    for (size_t i = 0; i < c->count; i++) {
        if ((eval && i == 1) || (load && i == 2))
            put_script(book, o, &c->arg[i]);
        else if ((evalsha && i == 1) || (exists && i >= 2))
            put_sha(book, o, &c->arg[i]);
        else
            resp_bulk(&o->out, c->arg[i].data, c->arg[i].len);
    }
}
