/* SPDX-License-Identifier: MIT */
/*
 * Formats commands. Invariant: a command is appended completely or not at all,
 * and a cached command has the same bytes as a freshly formatted one: only
 * token bytes are ever overwritten.
 */
#include "wire/command.h"

#include <stdlib.h>
#include <string.h>

#include "base/decimal.h"
#include "model/companion.h"
#include "model/guard.h"
#include "wire/waiter.h"

struct args {
    int count;
    struct slice arg[COMMAND_ARGS];
    struct decimal ttl;
};

static void args_push(struct args *a, struct slice arg)
{
    a->arg[a->count++] = arg;
}

static void args_push_ttl(struct args *a, const struct verb *verb)
{
    args_push(a, decimal_of(&a->ttl, verb->ttl_ms));
}

static void args_push_script(struct args *a, const struct script *script,
    bool with_text, const char *keys)
{
    args_push(a, slice_of(with_text ? "EVAL" : "EVALSHA"));
    args_push(a, with_text ? script->body : slice_of(script->sha1));
    args_push(a, slice_of(keys));
}

static void script_args(struct args *a, const struct command_form *form,
    const struct verb *verb, bool with_text)
{
    const struct script *script = &scripts[form->script];

    if (form->script == SCRIPT_EXTEND && !guarded(GUARD_SHORTEN))
        script = &scripts[SCRIPT_CAP_TTL];
    a->count = 0;
    args_push_script(a, script, with_text, "1");
    args_push(a, verb->key);
    if (form->token != 0)
        args_push(a, verb->token);
    if (form->ttl)
        args_push_ttl(a, verb);
}

static void verb_args(
    struct args *a, const struct command_form *form, const struct verb *verb)
{
    if (!form->is_set) {
        script_args(a, form, verb, false);
        return;
    }
    a->count = 0;
    args_push(a, slice_of("SET"));
    args_push(a, verb->key);
    args_push(a, verb->token);
    args_push(a, slice_of("NX"));
    args_push(a, slice_of("PX"));
    args_push_ttl(a, verb);
}

static size_t decimal_digits(size_t number)
{
    size_t n = 1;
    while (number >= 10) {
        number /= 10;
        n++;
    }
    return n;
}

/* "*N\r\n" before a command, "$N\r\n" before an argument. */
static size_t head_length(size_t number)
{
    return 1 + decimal_digits(number) + 2;
}

static char *write_head(char *to, char kind, size_t number)
{
    struct decimal room;
    struct slice digits = decimal_of(&room, number);
    *to++ = kind;
    memcpy(to, digits.data, digits.len);
    memcpy(to + digits.len, "\r\n", 2);
    return to + digits.len + 2;
}

/* The length of a command up to its n-th argument. */
static size_t length_before(int n, int argc, const struct slice *argv)
{
    size_t len = head_length((size_t)argc);
    for (int i = 0; i < n; i++)
        len += head_length(argv[i].len) + argv[i].len + 2;
    return len;
}

/* Writes length_before(argc, argc, argv) bytes. */
static void write_command(char *to, int argc, const struct slice *argv)
{
    to = write_head(to, '*', (size_t)argc);
    for (int i = 0; i < argc; i++) {
        to = write_head(to, '$', argv[i].len);
        if (argv[i].len > 0)
            memcpy(to, argv[i].data, argv[i].len);
        memcpy(to + argv[i].len, "\r\n", 2);
        to += argv[i].len + 2;
    }
}

bool command_append(struct buf *out, int argc, const struct slice *argv)
{
    size_t len = length_before(argc, argc, argv);

    if (!buf_reserve(out, len))
        return false;
    write_command(out->data + out->end, argc, argv);
    out->end += len;
    return true;
}

/* Where the bytes of argument i begin. Computed, not searched for, because the
 * key may contain the token's bytes too. */
static size_t argument_offset(const struct args *a, unsigned i)
{
    return length_before((int)i, a->count, a->arg) + head_length(a->arg[i].len);
}

static bool cache_command(struct cached_command **cached,
    const struct command_form *form, const struct verb *verb)
{
    struct args a;
    unsigned token = form->token;

    verb_args(&a, form, verb);
    size_t len = length_before(a.count, a.count, a.arg);
    struct cached_command *made = malloc(sizeof(*made) + len);
    if (!made)
        return false;
    *made = (struct cached_command){.len = (uint32_t)len,
        .token_at = token ? (uint32_t)argument_offset(&a, token) : 0,
        .token_len = token ? (uint32_t)verb->token.len : 0,
        .ttl_ms = verb->ttl_ms};
    write_command(made->bytes, a.count, a.arg);
    free(*cached);
    *cached = made;
    return true;
}

static bool cached_fits(const struct cached_command *cached,
    const struct command_form *form, const struct verb *verb)
{
    return cached &&
           (form->token == 0 || cached->token_len == verb->token.len) &&
           (!form->ttl || cached->ttl_ms == verb->ttl_ms);
}

bool command_verb(struct buf *out, const struct command_form *form,
    const struct verb *verb, struct cached_command **cached)
{
    if (!cached) {
        struct args a;
        verb_args(&a, form, verb);
        return command_append(out, a.count, a.arg);
    }
    if (!cached_fits(*cached, form, verb) && !cache_command(cached, form, verb))
        return false;
    const struct cached_command *k = *cached;
    if (!buf_append(out, k->bytes, k->len))
        return false;
    if (k->token_at != 0)
        memcpy(out->data + out->end - k->len + k->token_at, verb->token.data,
            k->token_len);
    return true;
}

bool command_verb_eval(
    struct buf *out, const struct command_form *form, const struct verb *verb)
{
    struct args a;
    script_args(&a, form, verb, true);
    return command_append(out, a.count, a.arg);
}

bool command_word(struct buf *out, const char *word)
{
    struct slice argv[] = {slice_of(word)};
    return command_append(out, 1, argv);
}

bool command_discard(struct buf *out)
{
    return command_word(out, "DISCARD");
}

bool command_on_key(struct buf *out, const char *word, struct slice key)
{
    struct slice argv[] = {slice_of(word), key};
    return command_append(out, 2, argv);
}

bool command_getrange(struct buf *out, struct slice key)
{
    struct slice argv[] = {
        slice_of("GETRANGE"), key, slice_of("0"), slice_of("511")};
    return command_append(out, 4, argv);
}

bool command_substr(struct buf *out, struct slice key)
{
    struct slice argv[] = {
        slice_of("SUBSTR"), key, slice_of("0"), slice_of("511")};
    return command_append(out, 4, argv);
}

bool command_set(
    struct buf *out, const char *word, struct slice key, struct slice value)
{
    struct slice argv[] = {slice_of(word), key, value};
    return command_append(out, 3, argv);
}

bool command_pexpire(struct buf *out, const struct verb *verb)
{
    struct args a = {0};
    args_push(&a, slice_of("PEXPIRE"));
    args_push(&a, verb->key);
    args_push_ttl(&a, verb);
    return command_append(out, a.count, a.arg);
}

bool command_psetex(struct buf *out, const struct verb *verb)
{
    struct args a = {0};
    args_push(&a, slice_of("PSETEX"));
    args_push(&a, verb->key);
    args_push_ttl(&a, verb);
    args_push(&a, verb->token);
    return command_append(out, a.count, a.arg);
}

bool command_fence(struct buf *out, const struct verb *verb, bool with_text,
    uint64_t keep_ms, struct slice old)
{
    bool raise = verb->kind == VERB_RAISE;
    const struct script *script = &scripts[raise ? SCRIPT_RAISE : SCRIPT_FENCE];
    struct args a = {0};
    struct decimal number, keep;
    args_push_script(&a, script, with_text, "2");
    args_push(&a, verb->key);
    args_push(&a, verb->counter);
    args_push(&a, verb->token);
    if (raise)
        args_push(&a, decimal_of(&number, verb->fence));
    else
        args_push_ttl(&a, verb);
    args_push(&a, decimal_of(&keep, keep_ms));
    if (old.len > 0)
        args_push(&a, old);
    return command_append(out, a.count, a.arg);
}

bool command_acquire_after(struct buf *out, const struct verb *const *verbs,
    unsigned count, bool with_text)
{
    const struct script *script = &scripts[SCRIPT_ACQUIRE_AFTER];
    struct slice arg[COMMAND_NAMES + COMMAND_ARGS];
    struct decimal keys, ttl;
    int argc = 0;
    arg[argc++] = slice_of(with_text ? "EVAL" : "EVALSHA");
    arg[argc++] = with_text ? script->body : slice_of(script->sha1);
    arg[argc++] = decimal_of(&keys, count + 1);
    arg[argc++] = *verbs[0]->after;
    for (unsigned i = 0; i < count; i++)
        arg[argc++] = verbs[i]->key;
    arg[argc++] = verbs[0]->token;
    arg[argc++] = decimal_of(&ttl, verbs[0]->ttl_ms);
    return command_append(out, argc, arg);
}

bool command_shared_fence(
    struct buf *out, const struct verb *verb, bool with_text, uint64_t keep_ms)
{
    struct args a = {0};
    struct decimal keep;
    args_push_script(&a, &scripts[SCRIPT_SHARED_FENCE], with_text, "2");
    args_push(&a, verb->key);
    args_push(&a, verb->counter);
    args_push(&a, verb->token);
    args_push(&a, decimal_of(&keep, keep_ms));
    return command_append(out, a.count, a.arg);
}

bool command_release(struct buf *out, const struct command_form *form,
    const struct verb *verb, const char *hand_over, bool with_text)
{
    struct args a;
    struct buf member = {0};
    struct slice mark = {NULL, 0};
    bool in_line = verb->client.len > 0, tagged = key_has_tag(verb->key);
    bool ok =
        (!in_line || waiter_append(&member, verb)) &&
        (!tagged || companion_make(verb->key, COMPANION_LINE_MARK, &mark));
    if (ok) {
        script_args(&a, form, verb, with_text);
        if (in_line)
            args_push(&a, (struct slice){buf_head(&member), buf_len(&member)});
        else if (*hand_over || tagged)
            args_push(&a, slice_of(hand_over));
        if (tagged)
            args_push(&a, mark);
        ok = command_append(out, a.count, a.arg);
    }
    buf_free(&member);
    free((char *)mark.data);
    return ok;
}

/* The keys beside that of a lock which may be waited for in line. */
struct line_keys {
    struct slice line, mark, gap;
};

static void line_keys_free(struct line_keys *keys)
{
    free((char *)keys->line.data);
    free((char *)keys->mark.data);
    free((char *)keys->gap.data);
}

/* Begins the call of a script of these keys, whose first arguments are the
 * token and the TTL. False: no memory. */
static bool line_args(struct args *a, struct line_keys *keys,
    enum script_id script, const struct verb *verb, bool with_text)
{
    *a = (struct args){0};
    *keys = (struct line_keys){{NULL, 0}, {NULL, 0}, {NULL, 0}};
    if (!companion_make(verb->key, COMPANION_LINE, &keys->line) ||
        !companion_make(verb->key, COMPANION_LINE_MARK, &keys->mark) ||
        !companion_make(verb->key, COMPANION_GAP, &keys->gap))
        return false;
    args_push_script(a, &scripts[script], with_text, "4");
    args_push(a, verb->key);
    args_push(a, keys->line);
    args_push(a, keys->mark);
    args_push(a, keys->gap);
    args_push(a, verb->token);
    args_push_ttl(a, verb);
    return true;
}

bool command_line_wait(struct buf *out, const struct verb *verb, bool with_text)
{
    struct args a;
    struct line_keys keys;
    struct decimal window;
    bool ok = line_args(&a, &keys, SCRIPT_LINE_WAIT, verb, with_text);
    if (ok) {
        args_push(&a, verb->client);
        args_push(&a, decimal_of(&window, verb->window));
        args_push(&a, slice_of(verb->kind == VERB_JOIN ? "1" : "0"));
        if (verb->test_listener)
            args_push(&a, slice_of("1"));
        ok = command_append(out, a.count, a.arg);
    }
    line_keys_free(&keys);
    return ok;
}

bool command_take(struct buf *out, const struct verb *verb, bool with_text)
{
    struct args a;
    struct line_keys keys;
    bool ok = line_args(&a, &keys, SCRIPT_TAKE, verb, with_text);
    if (ok) {
        args_push(&a, slice_of(verb->may_wait ? "1" : "0"));
        ok = command_append(out, a.count, a.arg);
    }
    line_keys_free(&keys);
    return ok;
}

bool command_hold_back(struct buf *out, const struct verb *verb, bool with_text)
{
    struct args a = {0};
    struct decimal ms;
    struct slice mark = {NULL, 0};
    if (!companion_make(verb->key, COMPANION_LINE_MARK, &mark))
        return false;
    args_push_script(&a, &scripts[SCRIPT_HOLD_BACK], with_text, "2");
    args_push(&a, verb->key);
    args_push(&a, mark);
    args_push(&a, decimal_of(&ms, verb->hold_back_ms));
    bool ok = command_append(out, a.count, a.arg);
    free((char *)mark.data);
    return ok;
}

bool command_list(struct buf *out, const struct verb *verb, bool with_text)
{
    static const struct command_form form = {.script = SCRIPT_INSPECT};
    struct args a;
    script_args(&a, &form, verb, with_text);
    args_push(&a, slice_of("*"));
    return command_append(out, a.count, a.arg);
}

bool command_takeover(
    struct buf *out, const struct verb *verb, struct slice old)
{
    static const struct command_form form = {
        .script = SCRIPT_TAKEOVER, .token = 4, .ttl = true};
    struct args a;
    script_args(&a, &form, verb, true);
    args_push(&a, old);
    return command_append(out, a.count, a.arg);
}

/* SETEX gives the key a TTL of 60 s first, so that a broken connection leaves
 * nothing behind. It expires in 2090 only between EXPIREAT and DEL. (Old
 * servers have 32-bit TTLs, which is why COMMAND_FAR_S is not later.) */
bool command_probe_clock(
    struct buf *out, const struct verb *verb, uint64_t nonce)
{
    static const char tail[] = ":clock:";
    struct decimal number, far;
    struct slice whose =
        verb->token.len > 0 ? verb->token : decimal_of(&number, nonce);
    size_t token = whose.len < 36 ? whose.len : 36;
    struct slice name = {NULL, verb->key.len + sizeof(tail) - 1 + token};
    char *bytes = malloc(name.len);

    if (!bytes)
        return false;
    memcpy(bytes, verb->key.data, verb->key.len);
    memcpy(bytes + verb->key.len, tail, sizeof(tail) - 1);
    memcpy(bytes + name.len - token, whose.data, token);
    name.data = bytes;
    struct slice begin[] = {
        slice_of("SETEX"), name, slice_of("60"), slice_of("1")};
    bool ok =
        command_append(out, 4, begin) &&
        command_set(out, "EXPIREAT", name, decimal_of(&far, COMMAND_FAR_S)) &&
        command_on_key(out, "TTL", name) && command_on_key(out, "DEL", name);
    free(bytes);
    return ok;
}

bool command_client_kill(struct buf *out, int64_t client_id)
{
    struct decimal id;
    struct slice argv[] = {slice_of("CLIENT"), slice_of("KILL"), slice_of("ID"),
        decimal_signed(&id, client_id)};
    return command_append(out, 4, argv);
}

void command_cache_free(struct command_cache *k)
{
    for (size_t i = 0; i < sizeof(k->of) / sizeof(k->of[0]); i++)
        free(k->of[i]);
    *k = (struct command_cache){{NULL}};
}
