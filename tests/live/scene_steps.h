/* SPDX-License-Identifier: MIT */
/* The steps of a scene: what servers and proxies do, and how a step is played.
 */
#ifndef NXLOCK_TESTS_LIVE_SCENE_STEPS_H
#define NXLOCK_TESTS_LIVE_SCENE_STEPS_H

#include "live/scene_calls.h"
#include "live/scene_front.h"
#include "support/blanks.h"

/* ----------------------------------------------------- servers and proxies */

/* How many wait in line for the name, and listen to their channel. */
static int64_t count_waiting(struct redis *of, const char *name)
{
    return redis_run(of, "EVAL",
        "local n = 0 "
        "for _, m in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do "
        "local client = string.match(m, '^%S+ (%S+)') "
        "n = n + redis.call('PUBSUB', 'NUMSUB', "
        "'nxl:' .. client .. ':' .. ARGV[1])[2] end "
        "return n",
        "1", formatted("{%s}:nxl-l", name), name, NULL);
}

/* The handle whose token the text begins with: its name, or none. */
static void give_owner(struct outcome *o, const char *text)
{
    struct thing *t = NULL;
    while ((t = next_thing(t, A_LOCK)) &&
           !is_lock_of(text, nxl_lock_token(t->lock)))
        ;
    give_text(o, t ? t->name : NULL);
}

static void read_line_of(
    struct redis *of, const char *verb, const char *name, struct outcome *o)
{
    redisReply *reply =
        !strcmp(verb, "holder")
            ? redis_command(of, "GET", name, NULL)
            : redis_command(
                  of, "ZRANGE", formatted("{%s}:nxl-l", name), "0", "0", NULL);
    struct word text = word_of_reply(reply);
    give_owner(o, text.text);
    freeReplyObject(reply);
}

/* "becomes "2.4" by failover" */
static void become(struct words *words)
{
    const char *name = take(words)->text;
    bool cut = accept(words, "by") && accept(words, "failover");
    const struct place *place = strategy_places;
    while (
        place < strategy_places + ALL_PLACES && strcmp(place->name, name) != 0)
        place++;
    if (!file.changes || place == strategy_places + ALL_PLACES)
        file_error("the server cannot become \"%s\"", name);
    go_to(place, cut);
}

static void play_server(
    const struct subject *subject, struct words *words, struct outcome *o)
{
    size_t index = subject->index;
    struct redis *server_of = &servers[index];
    if ((has(words) && words->at->text[0] >= 'A' &&
            words->at->text[0] <= 'Z') ||
        next_is(words, "run")) {
        ask_server(index, words, o);
    } else if (accept(words, "calls")) {
        const char *command = take(words)->text;
        give_number(
            o, aged ? calls_here(command) : redis_calls(server_of, command));
    } else if (here && accept(words, "sent") && accept(words, "as")) {
        give_number(o, ways_so_far().n[way_here(take(words)->text)]);
    } else if (accept(words, "lease") && accept(words, "of")) {
        give_number(o, lease_of(take(words)->text));
    } else if (accept(words, "transactions")) {
        give_number(o, transactions());
    } else if (accept(words, "becomes")) {
        become(words);
    } else if (accept(words, "waiting")) {
        give_number(o, count_waiting(server_of, take(words)->text));
    } else if (next_is(words, "holder") || next_is(words, "waiter")) {
        const char *verb = take(words)->text;
        read_line_of(server_of, verb, take(words)->text, o);
    } else if (accept(words, "clients")) {
        give_number(o, redis_clients(server_of));
    } else if (accept(words, "lasting")) {
        if (!accept(words, "keys"))
            file_error("lasting keys");
        give_number(o, redis_lasting_keys(server_of));
    } else if (accept(words, "info")) {
        const char *section = take(words)->text;
        give_number(o, server_number(server_of, section, take(words)->text));
    } else if (accept(words, "freeze")) {
        redis_freeze(server_of);
    } else if (accept(words, "thaw")) {
        redis_thaw(server_of);
    } else if (accept(words, "kill")) {
        redis_kill(server_of);
    } else if (accept(words, "restart")) {
        redis_restart(server_of);
    } else if (accept(words, "step") && accept(words, "clock")) {
        step_clock(server_of, number_of(take(words)));
    } else if (accept(words, "present")) {
        present(server_of, take(words)->text);
    } else if (accept(words, "follow")) {
        bool nobody = accept(words, "nobody") || !accept(words, "server");
        size_t primary = nobody ? index : index_if_any(words);
        undo_later(index, "SLAVEOF NO ONE");
        redis_follow(server_of,
            nobody ? "1"
                   : formatted("%u", (unsigned)servers[primary].plain_port));
    } else {
        file_error("a server knows no \"%s\"", take(words)->text);
    }
}

static enum proxy_way way_of(struct words *words)
{
    const struct word *word = take(words);
    if (!word_is(word, "requests") && !word_is(word, "replies"))
        file_error("requests or replies?");
    return word_is(word, "requests") ? PROXY_UP : PROXY_DOWN;
}

static void play_proxy(
    const struct subject *subject, struct words *words, struct outcome *o)
{
    struct proxy *proxy = proxy_at(subject->index);
    const char *verb = take(words)->text;
    if (!strcmp(verb, "hold") || !strcmp(verb, "pass")) {
        proxy_hold(proxy, way_of(words), *verb == 'h');
    } else if (!strcmp(verb, "drop") || !strcmp(verb, "keep")) {
        proxy_drop(proxy, way_of(words), *verb == 'd');
    } else if (!strcmp(verb, "delay")) {
        enum proxy_way way = way_of(words);
        proxy_delay(proxy, way, (int)number_of(take(words)));
    } else if (!strcmp(verb, "cut") && accept(words, "after")) {
        size_t bytes = (size_t)number_of(take(words));
        if (!accept(words, "bytes") || !accept(words, "of"))
            file_error("cut after 2 bytes of replies");
        proxy_cut_after(proxy, way_of(words), bytes);
    } else if (!strcmp(verb, "cut") || !strcmp(verb, "reset")) {
        proxy_cut(proxy, *verb == 'r');
    } else if (!strcmp(verb, "refuse") || !strcmp(verb, "welcome")) {
        proxy_refuse(proxy, *verb == 'r');
    } else if (!strcmp(verb, "strand")) {
        proxy_strand(proxy);
    } else if (!strcmp(verb, "deliver")) {
        proxy_deliver(proxy);
    } else if (!strcmp(verb, "bytes") && accept(words, "of")) {
        give_number(o, (int64_t)proxy_bytes(proxy, way_of(words)));
    } else if (!strcmp(verb, "connections")) {
        give_number(o, (int64_t)proxy_connections(proxy));
    } else if (!strcmp(verb, "accepted")) {
        give_number(o, (int64_t)proxy_accepted(proxy));
    } else {
        file_error("a proxy knows no \"%s\"", verb);
    }
}

/* ------------------------------------------------------------------- steps */

static void play_process(
    const struct subject *subject, struct words *words, struct outcome *o)
{
    if (accept(words, "memory"))
        give_number(o, LIVE_INSTRUMENTED ? 0 : resident_kb());
    else if (accept(words, "allocations"))
        give_number(o, (int64_t)alloc_count());
    else if (accept(words, "descriptors"))
        give_number(o, count_fds());
    else if (accept(words, "processor"))
        give_number(o, (int64_t)clock() * 1000 / CLOCKS_PER_SEC);
    else
        file_error("a process knows no \"%s\"", take(words)->text);
}

/* A word for what every scene has. */
static const struct noun {
    const char *one, *all; /* of the servers that the scene is played with */
    void (*play)(const struct subject *, struct words *, struct outcome *);
} nouns[] = {
    {"server", "servers", play_server},
    {"proxy", "proxies", play_proxy},
    {"process", NULL, play_process},
    {"front", NULL, play_front},
    {"callback", NULL, play_callback},
    {"file", NULL, play_file},
    {NULL, NULL, NULL},
};

/* All that a step is about. */
struct subjects {
    struct subject all[SCENE_NAMES];
    size_t count;
    struct words quantity; /* at so many of them it is as expected */
};

static void add_subject(struct subjects *list, struct subject subject)
{
    if (list->count == SCENE_NAMES)
        file_error("too many subjects");
    list->all[list->count++] = subject;
}

/* The names that "h1..h40", or any name, stands for, one at a time. */
static bool next_name(const struct word *word, unsigned *at, struct word *name)
{
    char stem[32];
    unsigned first, last;
    int length = 0;
    int read = sscanf(
        word->text, "%31[a-z]%u..%*[a-z]%u%n", stem, &first, &last, &length);
    if (read != 3 || (size_t)length != word->length) {
        *name = *word;
        return (*at)++ == 0;
    }
    char text[48];
    snprintf(text, sizeof(text), "%s%u", stem, first + *at);
    *name = word_text(text);
    return first + (*at)++ <= last;
}

/* "server 2", "servers 1..2", "2..3 servers", "file own.pem", "a, h1..h40" */
static struct subjects read_subjects(const char *text)
{
    struct subjects list = {.count = 0};
    struct words words = split(text);
    struct word name;
    size_t first = 0;
    if (words.end - words.at == 2 && word_is(words.at + 1, "servers")) {
        list.quantity = (struct words){words.at, words.at + 1};
        words.at++;
    }
    const struct noun *noun = nouns;
    while (noun->one && !next_is(&words, noun->one) &&
           !(noun->all && next_is(&words, noun->all)))
        noun++;
    if (!noun->one) {
        for (; has(&words); words.at++)
            for (unsigned i = 0; next_name(words.at, &i, &name);)
                add_subject(&list, (struct subject){.name = name.text});
        return list;
    }
    size_t count = word_is(take(&words), noun->one) ? 1 : on.servers;
    if (noun->all && has(&words))
        read_range(&words, &first, &count);
    const char *path = noun->play == play_file ? take(&words)->text : NULL;
    expect_end(&words);
    for (size_t i = first; i < first + count; i++)
        add_subject(&list, (struct subject){noun, path, i});
    return list;
}

/* The value, or the result, of one subject. */
static void play_subject(
    const struct subject *subject, struct words *words, struct outcome *o)
{
    if (subject->noun) {
        subject->noun->play(subject, words, o);
        return;
    }
    o->subject = find_thing(subject->name, A_LOCK);
    if (!o->subject)
        o->subject = client_called(subject->name);
    o->subject->used = true;
    if (o->subject->kind == A_LOCK)
        play_lock(o->subject, words, o);
    else
        play_client(o->subject, words, o);
}

/* The expectation's own values are those after the call. */
static bool check(const char *expected, const struct outcome *o)
{
    if (expected)
        return is_as_expected(split(expected), o);
    if (o->error)
        return mismatch("error %s", shown(&o->value));
    if (o->value.text && o->subject)
        file_error("what is expected?");
    return true;
}

/* The words up to a comma: of "acquire, release" first "acquire". */
static struct words next_verb(struct words *words)
{
    struct words verb = *words;
    while (!words->at->comma && words->at + 1 < words->end)
        words->at++;
    verb.end = ++words->at;
    return verb;
}

/* "acquire, release", of one subject. */
static bool play_verbs(
    const struct subject *subject, struct words words, const char *expected)
{
    while (has(&words)) {
        struct outcome o = {0};
        struct words verb = next_verb(&words);
        play_subject(subject, &verb, &o);
        expect_end(&verb);
        if (!check(expected, &o))
            return false;
    }
    return true;
}

static bool play_subjects(
    const struct subjects *list, struct words words, const char *expected)
{
    int64_t met = 0;
    for (size_t i = 0; i < list->count; i++) {
        bool good = play_verbs(&list->all[i], words, expected);
        if (!good && !list->quantity.at)
            return false;
        met += good;
    }
    if (!list->quantity.at)
        return true;
    struct outcome count = {.value = word_number(met)};
    struct words range = list->quantity;
    return meets(&range, &count) ||
           mismatch("so at %lld servers", (long long)met);
}

/* What a scene can make, and give a name. */
static const struct maker {
    const char *word;
    void (*make)(const char *name, struct words *words, struct outcome *o);
} makers[] = {
    {"lock", make_lock},
    {"client", make_client},
    {"peer", make_peer},
    {"front", make_front},
};

static bool play_making(const char *name, char *what, const char *expected)
{
    struct outcome o = {0};
    snprintf(stage.each, sizeof(stage.each), "%s",
        name + strcspn(name, "0123456789"));
    struct words words = split(what);
    const size_t count = sizeof(makers) / sizeof(makers[0]);
    size_t i = 0;
    while (i < count && !accept(&words, makers[i].word))
        i++;
    if (i < count)
        makers[i].make(name, &words, &o);
    else if (accept(&words, "now"))
        keep_value(name, word_number(test_now_ms()).text);
    else if (*what == '<')
        keep_value(name, take(&words)->text);
    else
        file_error("a lock, a client, or a value?");
    expect_end(&words);
    if (expected)
        return is_as_expected(split(expected), &o);
    return !o.call || !strcmp(o.value.text, "OK") ||
           mismatch("%s: %s", o.value.text, o.message);
}

/* Behind the first mark that is not in quotes or <...>; cuts it off. */
static char *cut_at(char *text, const char *mark)
{
    bool quoted = false, inside = false;
    for (char *at = text; *at != '\0'; at++) {
        quoted ^= *at == '"';
        inside = (*at == '<' && at[1] != ' ') || (inside && *at != '>');
        if (quoted || inside || strncmp(at, mark, strlen(mark)) != 0)
            continue;
        *at = '\0';
        return at + strlen(mark);
    }
    return NULL;
}

/* A value without an expectation: "a: deadline", "server: calls set". */
static struct outcome play_value(char *subject_text, char *what)
{
    struct outcome o = {0};
    struct subjects list = read_subjects(subject_text);
    struct words words = split(what);
    if (list.count != 1)
        file_error("a value of what?");
    play_subject(&list.all[0], &words, &o);
    expect_end(&words);
    return o;
}

/* Plays a step. False: it is not as expected. */
static bool play_step(const char *source)
{
    char *text = word_text(source).text;
    char *expected = cut_at(text, " -> ");
    char *what = cut_at(text, " = ");
    struct word name;
    if (what) {
        char *value = cut_at(what, ": ");
        struct words names = split(text);
        if (value) {
            keep_value(text, play_value(what, value).value.text);
            return true;
        }
        for (; has(&names); names.at++)
            for (unsigned i = 0; next_name(names.at, &i, &name);)
                if (!play_making(name.text, what, expected))
                    return false;
        return true;
    }
    what = cut_at(text, ": ");
    if (!what)
        file_error("neither \"SUBJECT: WHAT\" nor \"NAME = WHAT\"");
    struct subjects subjects = read_subjects(text);
    return play_subjects(&subjects, split(what), expected);
}

/* ------------------------------------------------------------------ values */

static struct word field_of(const struct outcome *outcome, const char *name)
{
    struct thing *t = outcome->subject;
    const char *const forms[] = {outcome->fields, "%s"};
    if (!t)
        file_error("with: of what?");
    for (size_t i = !forms[0]; i < 2; i++) {
        struct outcome o = {.subject = t};
        struct words words = split(formatted(forms[i], name));
        bool known = t->kind == A_LOCK ? read_lock(t, &words, &o)
                                       : read_client(t, &words, &o);
        if (!known)
            continue;
        expect_end(&words);
        if (o.none)
            o.value.text = NULL;
        return o.value;
    }
    file_error("there is no value \"%s\"", name);
    return word_text("");
}

/* "before + 1", "a's deadline - 5" */
static bool sum_of(const char *inside, struct word *sum)
{
    char *text = word_text(inside).text;
    char *number = strstr(text, " + ");
    if (!number)
        number = strstr(text, " - ");
    if (!number || !is_number(number + 3))
        return false;
    int64_t added = strtoll(number + 3, NULL, 10);
    bool minus = number[1] == '-';
    *number = '\0';
    struct word value = value_of(text);
    *sum = word_number(number_of(&value) + (minus ? -added : added));
    return true;
}

static struct word repeated(size_t times, const char *text)
{
    struct word word = {.length = times * strlen(text)};
    word.text = pool_take(word.length + 1);
    for (size_t i = 0; i < times; i++)
        strcpy(word.text + i * strlen(text), text);
    return word;
}

/* In whole seconds, by the server's clock. */
static int64_t unix_time(struct redis *r)
{
    redisReply *reply = redis_command(r, "TIME", NULL);
    int64_t seconds = strtoll(reply->element[0]->str, NULL, 10);
    freeReplyObject(reply);
    return seconds;
}

static struct word value_of(const char *inside)
{
    struct word word;
    size_t number = 0;
    char *text = word_text(inside).text, *of;
    if (sum_of(inside, &word))
        return word;
    of = strstr(text, "'s ");
    if (of) {
        *of = '\0';
        return play_value(text, of + 3).value;
    }
    if (sscanf(text, "%zu of ", &number) == 1 && strstr(text, " of "))
        return repeated(number, strstr(text, " of ") + 4);
    bool many = sscanf(text, "%*s %zu", &number) == 1;
    size_t index = many ? number - 1 : 0;
    of = strchr(text, ' ');
    if (of && many && index < on.servers)
        *of = '\0';
    const struct {
        const char *name, *text;
        int64_t number;
    } values[] = {
        {"server", url_of(index), 0},
        {"scheme", servers[index].scheme, 0},
        {"port", NULL, servers[index].port},
        {"tls port", NULL, servers[index].tls_port},
        {"directory", servers[0].dir, 0},
        {"majority", NULL, (int64_t)majority()},
        {"servers", NULL, (int64_t)on.servers},
        {"strategies", here ? here->told : "", 0},
        {"each", stage.each, 0},
        {"blanks", BLANKS, 0},
    };
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
        if (!strcmp(text, values[i].name))
            return values[i].text ? word_text(values[i].text)
                                  : word_number(values[i].number);
    if (!strcmp(text, "unix time"))
        return word_number(unix_time(&servers[index]));
    struct thing *kept = find_thing(text, A_VALUE);
    if (!kept)
        file_error("<%s> has no value", inside);
    kept->used = true;
    return word_text(kept->value);
}

#endif
