/* SPDX-License-Identifier: MIT */
/*
 * What the scenes of a file share, servers, and what each of them makes:
 * clients, handles, calls in threads, proxies. At the end of a scene all of it
 * is taken down, also after a failure.
 */
#ifndef NXLOCK_TESTS_LIVE_SCENE_WORLD_H
#define NXLOCK_TESTS_LIVE_SCENE_WORLD_H

#include "live/scene_callback.h"
#include "live/scene_file.h"
#include "live/scene_clock.h"
#include "live/scene_once.h"
#include "live/scene_tls.h"

#include <poll.h>

#include "support/speaker.h"
#include "wire/script.h"

static const char *result_name(int result)
{
    struct word word = word_text(nxl_strerror(result) + strlen("NXL_"));
    word.text[strcspn(word.text, ":")] = '\0';
    return word.text;
}

static void give_result(struct outcome *o, int result, const char *message)
{
    memory_returns();
    assert_hidden(message);
    o->call = true;
    o->message = word_text(message).text;
    give(o, word_text(result_name(result)));
    snprintf(stage.result, sizeof(stage.result), "%s", o->value.text);
}

/* ------------------------------------------------------------------ things */

/* The next one of that kind, the first one after NULL; or NULL. */
static struct thing *next_thing(const struct thing *after, enum thing_kind kind)
{
    size_t i = after ? (size_t)(after - stage.things) + 1 : 0;
    while (i < stage.count && stage.things[i].kind != kind)
        i++;
    return i < stage.count ? &stage.things[i] : NULL;
}

static struct thing *find_thing(const char *name, enum thing_kind kind)
{
    struct thing *t = NULL;
    while ((t = next_thing(t, kind)) && strcmp(t->name, name) != 0)
        ;
    return t;
}

/* Of a lock or a client of the library; or NULL. */
static struct thing *thing_of(enum thing_kind kind, const void *object)
{
    struct thing *t = NULL;
    while ((t = next_thing(t, kind)) &&
           object != (kind == A_LOCK ? (void *)t->lock : (void *)t->client))
        ;
    return t;
}

static struct thing *add_thing(const char *name, enum thing_kind kind)
{
    if (find_thing(name, A_LOCK) || find_thing(name, A_CLIENT))
        file_error("there is %s already", name);
    size_t place = 0;
    while (place < stage.count && stage.things[place].kind != NO_THING)
        place++;
    if (place == SCENE_NAMES || strlen(name) >= sizeof(stage.things->name))
        file_error("too many names, or one is too long");
    stage.count += place == stage.count;
    struct thing *thing = &stage.things[place];
    memset(thing, 0, sizeof(*thing));
    thing->kind = kind;
    thing->inner = stage.inner;
    /* Not every scene needs what all begin with. */
    thing->used = stage.step < stage.scene->steps + stage.scene->before;
    snprintf(thing->name, sizeof(thing->name), "%s", name);
    return thing;
}

static void keep_value(const char *name, const char *value)
{
    struct thing *thing = find_thing(name, A_VALUE);
    if (!thing)
        thing = add_thing(name, A_VALUE);
    if (strlen(value) >= sizeof(thing->value))
        file_error("the value is too long to keep");
    strcpy(thing->value, value);
}

static void free_thing(struct thing *thing)
{
    if (thing->kind == A_LOCK) {
        if (thing->threaded) {
            nxl_lock_cancel(thing->lock);
            pthread_join(thing->thread, NULL);
        }
        nxl_lock_free(thing->lock);
    } else if (thing->kind == A_CLIENT && thing->threaded) {
        pthread_join(thing->thread, NULL);
    } else if (thing->kind == A_CLIENT) {
        nxl_client_free(thing->client);
    }
    thing->kind = NO_THING;
}

/* Handles before their clients: all of them, or those of an inner block. */
static void free_things(bool inner_only)
{
    static const enum thing_kind order[] = {A_LOCK, A_CLIENT};
    for (size_t i = 0; i < 2; i++)
        for (struct thing *t = NULL; (t = next_thing(t, order[i]));)
            if (t->inner || !inner_only)
                free_thing(t);
}

/* ----------------------------------------------------------------- servers */

/* What a scene has changed at a server, and the command that changes it back.
 */
static struct undo {
    size_t server;
    char command[160];
} undos[32];
static size_t undo_count;

static void undo_later(size_t index, const char *command)
{
    if (undo_count == sizeof(undos) / sizeof(undos[0]) ||
        strlen(command) >= sizeof(undos->command))
        file_error("it changes too much at a server");
    undos[undo_count].server = index;
    strcpy(undos[undo_count++].command, command);
}

/* The words of a command of Redis, which may have any bytes. */
struct command {
    const char *words[96];
    size_t lengths[96], count;
};

static const struct script *script_called(const char *name)
{
    for (size_t i = 0; i < SCRIPTS; i++)
        if (strcmp(scripts[i].name, name) == 0)
            return &scripts[i];
    file_error("there is no script %s", name);
    return NULL;
}

/* "run SCRIPT" is an EVAL of its text. */
static struct command take_command(struct words *words)
{
    struct command c = {.count = 0};
    if (accept(words, "run")) {
        struct slice text = script_called(take(words)->text)->body;
        c = (struct command){
            {"EVAL", text.data}, {strlen("EVAL"), text.len}, 2};
    }
    for (; has(words); c.count++) {
        c.lengths[c.count] = words->at->length;
        c.words[c.count] = take(words)->text;
    }
    return c;
}

static redisReply *send_to_server(size_t index, struct words *words)
{
    struct command c = take_command(words);
    return redis_command_words(&servers[index], c.count, c.words, c.lengths);
}

static void undo_changes(void)
{
    while (undo_count > 0) {
        struct undo *u = &undos[--undo_count];
        struct words words = split(u->command);
        freeReplyObject(send_to_server(u->server, &words));
    }
}

static void note_change(size_t index, const struct words *words)
{
    const struct word *w = words->at;
    size_t count = (size_t)(words->end - w);
    if (count == 4 && word_is(w, "CONFIG") && word_is(w + 1, "SET")) {
        redisReply *reply =
            redis_command(&servers[index], "CONFIG", "GET", w[2].text, NULL);
        if (reply->elements == 2)
            undo_later(index, formatted("CONFIG SET %s \"%s\"", w[2].text,
                                  reply->element[1]->str));
        freeReplyObject(reply);
    } else if (count > 2 && word_is(w, "ACL") && word_is(w + 1, "SETUSER")) {
        undo_later(index, strcmp(w[2].text, "default") != 0
                              ? formatted("ACL DELUSER %s", w[2].text)
                              : "ACL SETUSER default +@all");
    } else if (word_is(w, "REPLICAOF") || word_is(w, "SLAVEOF")) {
        undo_later(index, "SLAVEOF NO ONE");
    }
}

static struct word word_of_reply(const redisReply *reply)
{
    if (reply->type == REDIS_REPLY_INTEGER)
        return word_number(reply->integer);
    if (reply->type != REDIS_REPLY_ARRAY)
        return word_of(reply->str ? reply->str : "", reply->len);
    struct word all = word_text("");
    for (size_t i = 0; i < reply->elements; i++) {
        struct word one = word_of_reply(reply->element[i]);
        append(&all, " ", i > 0);
        append(&all, one.text, one.length);
    }
    return all;
}

static void ask_server(size_t index, struct words *words, struct outcome *o)
{
    note_change(index, words);
    redisReply *reply = send_to_server(index, words);
    o->error = reply->type == REDIS_REPLY_ERROR;
    o->none = reply->type == REDIS_REPLY_NIL;
    give(o, word_of_reply(reply));
    freeReplyObject(reply);
}

/* Processes that are no servers, up to the end of the scene. */
static pid_t speakers[8];
static size_t speaker_count;

/* says "bytes" at once, then closes */
static void make_peer(const char *name, struct words *words, struct outcome *o)
{
    struct speech speech = {.bytes = "", .at_once = false};
    uint16_t port;
    if (accept(words, "says")) {
        speech.bytes = words->at->text;
        speech.length = take(words)->length;
    }
    speech.at_once = accept(words, "at") && accept(words, "once");
    speech.again =
        accept(words, "over") && accept(words, "and") && accept(words, "over");
    if (accept(words, "then")) {
        speech.closes = accept(words, "closes");
        speech.resets = accept(words, "resets");
    }
    if (speaker_count == sizeof(speakers) / sizeof(speakers[0]))
        file_error("too many peers");
    speakers[speaker_count++] = speaker_start(&speech, &port);
    keep_value(name, formatted("127.0.0.1:%u", (unsigned)port));
}

static void stop_peers(void)
{
    while (speaker_count > 0)
        speaker_stop(speakers[--speaker_count]);
}

static struct proxy *proxy_at(size_t index)
{
    if (!proxies[index])
        proxies[index] = here ? proxy_here() : proxy_to(&servers[index], false);
    return proxies[index];
}

static const char *proxied_url(size_t index)
{
    struct proxy *proxy = proxy_at(index);
    if (here)
        return url_here(proxy);
    return index % 2 != on.tcp ? proxy_tcp_url(proxy) : proxy_url(proxy);
}

/* ----------------------------------------------------------------- clients */

static void note_warning(void *arg, const char *text)
{
    struct thing *client = arg;
    snprintf(client->warning, sizeof(client->warning), "%s", text);
    client->warnings++;
}

/* Both with the mark between them, or the one that is not empty. */
static const char *joined(const char *one, const char *mark, const char *other)
{
    return formatted(
        "%s%s%s", one, *one != '\0' && *other != '\0' ? mark : "", other);
}

/* "2", or "2..4": which places. */
static void read_range(struct words *words, size_t *first, size_t *count)
{
    const char *text = take(words)->text;
    int end, fields = sscanf(text, "%zu..%d", first, &end);
    if (fields < 1 || *first == 0)
        file_error("numbers begin with 1");
    *count = fields == 2 ? (size_t)end + 1 - *first : 1;
    --*first;
    if (*first + *count > on.servers)
        file_error("there is no such server");
}

/* Adds the URLs of the servers, which may be behind proxies. */
static const char *add_servers(const char *list, size_t first, size_t count,
    bool proxied, const char *parameters)
{
    for (size_t i = first; i < first + count; i++) {
        const char *url = proxied ? proxied_url(i)
                          : here  ? url_here(NULL)
                                  : url_of(i);
        list = joined(list, ",", joined(url, "?", parameters));
    }
    return list;
}

/* "timeout_ms=200 poll=1 through proxy to servers 1..2 at redis://..." */
static const char *client_urls(struct words *words, nxl_client_options *options)
{
    const char *list = "";
    const char *parameters =
        joined(file.parameters, "&", here ? query_here() : "");
    bool proxied = false;
    while (has(words)) {
        if (accept(words, "through")) {
            proxied = accept(words, "proxy");
        } else if (accept(words, "to")) {
            size_t first, count;
            if (!accept(words, "server") && !accept(words, "servers"))
                file_error("to which servers?");
            read_range(words, &first, &count);
            list = add_servers(list, first, count, proxied, parameters);
        } else if (accept(words, "at")) {
            const char *url = take(words)->text;
            const char *mark = strchr(url, '?') ? "&" : "?";
            list = joined(list, ",", joined(url, mark, parameters));
        } else if (accept(words, "with") && accept(words, "callback")) {
            options->credentials = give_credentials;
        } else if (*list == '\0') {
            parameters = joined(parameters, "&", take(words)->text);
        } else {
            file_error("parameters come before the servers");
        }
    }
    return *list != '\0'
               ? list
               : add_servers(list, 0, on.servers, proxied, parameters);
}

static void make_client(
    const char *name, struct words *words, struct outcome *o)
{
    static char message[1024];
    nxl_client_options options = NXL_CLIENT_OPTIONS_INIT;
    struct thing *thing = add_thing(name, A_CLIENT);
    const char *list = client_urls(words, &options);
    options.credentials_arg = &callback;
    if (options.credentials || strstr(list, "password_file="))
        options.tracer = trace_hides;
    *message = '\0';
    options.errbuf = message;
    options.errbuf_size = sizeof(message);
    options.warning = note_warning;
    options.warning_arg = thing;
    thing->client = (nxl_client *)thing; /* NULL is to be put there */
    int result = nxl_client_new(&thing->client, list, &options);
    give_result(o, result, message);
    if (result != NXL_OK) {
        assert_null(thing->client);
        thing->kind = NO_THING;
    }
}

static struct thing *client_called(const char *name)
{
    struct thing *client = find_thing(name, A_CLIENT);
    struct outcome o = {0};
    struct words none = {0};
    if (!client && strcmp(name, "client") == 0) {
        make_client(name, &none, &o);
        client = find_thing(name, A_CLIENT);
    }
    if (!client)
        file_error("there is no client \"%s\"", name);
    client->used = true;
    return client;
}

/* ----------------------------------------------------------------- handles */

static void make_lock(const char *name, struct words *words, struct outcome *o)
{
    nxl_lock_options options = NXL_LOCK_OPTIONS_INIT;
    const char *names[NXL_NAMES_MAX + 2], *client_name = "client";
    size_t lengths[NXL_NAMES_MAX + 2], count = 0;
    while (has(words)) {
        struct word *word = take(words);
        char *value = word->quoted ? NULL : strchr(word->text, '=');
        if (!value) {
            lengths[count] = word->length;
            names[count++] = word->text;
            continue;
        }
        *value++ = '\0';
        if (strcmp(word->text, "client") == 0)
            client_name = value;
        else if (!set_field(lock_options, &options, word->text, value))
            file_error("there is no option %s", word->text);
    }
    struct thing *client = client_called(client_name);
    struct thing *thing = add_thing(name, A_LOCK);
    thing->client = client->client;
    thing->seen = (nxl_holder)NXL_HOLDER_INIT;
    thing->lock = (nxl_lock *)thing;
    if (count == 1 && strlen(names[0]) < lengths[0])
        options.name_length = lengths[0];
    int result = count == 1 ? nxl_lock_new(&thing->lock, thing->client,
                                  names[0], &options)
                            : nxl_lock_new_many(&thing->lock, thing->client,
                                  names, lengths, count, &options);
    give_result(o, result, nxl_client_errmsg(client->client));
    if (result != NXL_OK) {
        assert_null(thing->lock);
        thing->kind = NO_THING;
    }
}

/* ------------------------------------------------------------------ events */

/* The word for each operation that is a call of a handle. */
static const char *const call_words[] = {[NXL_OP_ACQUIRE] = "acquire",
    [NXL_OP_EXTEND] = "extend",
    [NXL_OP_RELEASE] = "release",
    [NXL_OP_ADOPT] = "adopt",
    [NXL_OP_INSPECT] = "inspect",
    [NXL_OP_BREAK] = "break",
    [NXL_OP_ONCE_BEGIN] = "once",
    [NXL_OP_ONCE_TELL] = "tell",
    [NXL_OP_ONCE_FORGET] = "forget"};

/* The client's next event, as "hold of a: LOST"; or none. */
static void give_event(struct outcome *o, struct thing *client)
{
    nxl_event event;
    if (client->events > 0) {
        event = client->event[0];
        client->events--;
        memmove(
            client->event, client->event + 1, client->events * sizeof(event));
    } else if (!nxl_client_next_event(client->client, &event)) {
        give_text(o, NULL);
        return;
    }
    const struct thing *t = thing_of(A_LOCK, event.lock);
    give_text(
        o, formatted("%s of %s: %s",
               event.operation == NXL_OP_HOLD ? "hold"
                                              : call_words[event.operation],
               t ? t->name : "another handle", result_name(event.result)));
}

#endif
