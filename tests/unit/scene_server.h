/* SPDX-License-Identifier: MIT */
/*
 * The machine "server" of scenes (unit/scene.h): a connection with its requests
 * and cleanups (net/server.h), with the test at the other end.
 *
 * Steps. acquire:0 and so on submits request 0 (of 12); clear:0 is a tell
 * that ends a doubt and keeps the lock. names:4: requests 0 to 3 are of several
 * names of one lock. Whatever is due is then pushed and taken, but after hold:N
 * only N completions, and nothing is pushed.
 * says:+OK,:1,nil,-OOM_no the other end answers, _ for a blank; script: that
 * the script is missing. file:pw writes the password into the file FOLDER/file,
 * and file removes it; in the option url, %s is the folder.
 *
 * Option scripted: the transport of unit/transport_rig.h. raw:5 sends its
 * bytes, by their numbers, and what stands behind them as a reply; its own
 * bytes are read as byte:4. hellos:1, refuses, room:9, record:9, permit set it.
 *
 * Words. What the other end reads: hello (the first three commands of a
 * connection), SET, PTTL, KILL7 (CLIENT KILL), AUTH:pw (with a user), sha:NAME
 * and text:NAME, which run a script by its hash or with its text. What
 * completes: 0=granted, 0=granted(copies:2) with what WAIT said, and of a fault
 * 0!CLASS, 0?CLASS if the request may have been applied, or 0?CLASS(applied) if
 * it was.
 */
#ifndef NXLOCK_TESTS_SCENE_SERVER_H
#define NXLOCK_TESTS_SCENE_SERVER_H

#include <fcntl.h>

#include "unit/scene.h"
#include "unit/server_rig.h"
#include "unit/stingy.h"
#include "unit/transport_rig.h"

#include "support/resp.h"
#include "wire/script.h"

static struct once_terms work = {.reported = ONCE_DONE};
static struct once_terms cleared = {.reported = ONCE_CLEAR};
static struct reply_values values;

/* ----------------------------------------------------------------- outputs */

static bool is_greeting(const struct resp_command *c)
{
    return resp_is(c, 0, "INFO") || resp_is(c, 0, "SCRIPT") ||
           (resp_is(c, 0, "CLIENT") && !resp_is(c, 1, "KILL"));
}

static void add_script(const struct resp_command *c, const char *how)
{
    static const char *const marks[] = {"", "-1", "unbegun"};
    struct slice text = {c->arg[1].data, c->arg[1].len};
    unsigned mark = 0;
    for (size_t i = 2; i < c->count; i++)
        for (unsigned m = 1; m < 3; m++)
            if (resp_is(c, i, marks[m]))
                mark = m;
    for (int i = 0; i < SCRIPTS; i++) {
        if (!slice_equal(text, slice_of(scripts[i].sha1)) &&
            !slice_equal(text, scripts[i].body))
            continue;
        if (i == SCRIPT_ACQUIRE_AFTER) /* of how many names */
            add("%s:%s(%.*s)", how, scripts[i].name, (int)c->arg[2].len,
                c->arg[2].data);
        else
            add("%s:%s%s%s%s", how, scripts[i].name, mark ? "(" : "",
                marks[mark], mark ? ")" : "");
    }
}

static void add_command(const struct resp_command *c)
{
    if (resp_is(c, 0, "AUTH") && c->count == 3)
        add("AUTH:%.*s", (int)c->arg[2].len, c->arg[2].data);
    else if (resp_is(c, 0, "CLIENT"))
        add("KILL%.*s", (int)c->arg[3].len, c->arg[3].data);
    else if (resp_is(c, 0, "EVALSHA"))
        add_script(c, "sha");
    else if (resp_is(c, 0, "EVAL"))
        add_script(c, "text");
    else
        add("%.*s", (int)c->arg[0].len, c->arg[0].data);
}

static struct bytes unread; /* the beginning of a command */

/* What the other end has read. */
static void add_said(void)
{
    unsigned greetings = 0;
    struct resp_command c;
    long used;
    if (rig.peer < 0)
        return;
    const char *said = rig_said();
    for (; *said && *said <= GOODBYE; said++)
        add("byte:%d", *said);
    bytes_add(&unread, said, strlen(said));
    while ((used = resp_parse(unread.data, unread.len, &c)) > 0) {
        if (!is_greeting(&c))
            add_command(&c);
        else if (greetings++ == 0)
            add("hello");
        unread.len -= (size_t)used;
        memmove(unread.data, unread.data + used, unread.len);
    }
    assert_true(greetings == 0 || greetings == 2 + SCRIPTS_LOADED);
}

static bool node_take(void)
{
    static const char *const kinds[] = {"none", "granted", "busy", "mine",
        "not-mine", "seen", "free", "recorded"};
    struct request *r = rig_turn();
    if (!r && scene.may_take == UINT32_MAX) {
        rig_push();
        add_said();
        r = rig_turn();
    }
    if (!r)
        return false;
    const struct outcome *o = &rig.last.outcome;
    if (o->kind == OUTCOME_FAULT)
        add("%u%c%s%s", r->index, o->unsure ? '?' : '!', fault_name(o->fault),
            o->applied ? "(applied)" : "");
    else if (o->copies.known)
        add("%u=%s(copies:%u)", r->index, kinds[o->kind],
            (unsigned)o->copies.replicas);
    else
        add("%u=%s%s", r->index, kinds[o->kind],
            o->earlier_token_may_remain ? "(doubt)" : "");
    return true;
}

/* ------------------------------------------------------------------ inputs */

static void other_end_says(const char *replies)
{
    char bytes[512] = "";
    for (const char *at = replies; *at; at++) {
        size_t len = strlen(bytes);
        if (at == replies || at[-1] == ',') {
            if (!strncmp(at, "nil", 3)) {
                strcat(bytes, "$-1");
                at += 2;
                continue;
            }
            if (!strncmp(at, "script", 6)) {
                strcat(bytes, "-NOSCRIPT No matching script.");
                at += 5;
                continue;
            }
        }
        assert_true(len + 3 < sizeof(bytes));
        if (*at == ',')
            strcat(bytes, "\r\n");
        else
            bytes[len] = *at == '_' ? ' ' : *at;
        bytes[len + (*at == ',' ? 2 : 1)] = '\0';
    }
    strcat(bytes, "\r\n");
    rig_send(bytes);
}

/* acquire:0, look:1 (acquire that asks for the time left), release:0,
 * release:0:1000 until 1000 ms, ... */
static bool submits(const char *word, const char *argument)
{
    static const struct {
        const char *word;
        enum verb_kind kind;
    } kinds[] = {{"acquire", VERB_ACQUIRE}, {"ask", VERB_ACQUIRE},
        {"again", VERB_ACQUIRE}, {"release", VERB_RELEASE},
        {"inspect", VERB_INSPECT}, {"begin", VERB_BEGIN}, {"tell", VERB_TELL},
        {"clear", VERB_TELL}, {"read", VERB_READ_RECORD},
        {"forget", VERB_FORGET}};
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
        if (strcmp(word, kinds[i].word) != 0)
            continue;
        char *rest = NULL;
        unsigned n = (unsigned)strtoul(argument, &rest, 10);
        struct verb *verb = &rig.verb[n];
        verb->kind = kinds[i].kind;
        verb->want_left = !strcmp(word, "ask");
        verb->earlier_token_possible = !strcmp(word, "again");
        verb->not_after = *rest ? scene_time(rest + 1, NULL) : 0;
        if (verb->kind == VERB_BEGIN || verb->kind >= VERB_READ_RECORD) {
            verb->once = strcmp(word, "clear") == 0 ? &cleared : &work;
            verb->values = &values;
        }
        if (!rig.request[n].spare)
            assert_true(spare_reserve(&rig.request[n], verb->key));
        rig_submit(n);
        return true;
    }
    return false;
}

static void send_raw(const char *argument)
{
    char bytes[128];
    size_t len = 0;
    for (; *argument >= '1' && *argument <= '6'; argument++)
        bytes[len++] = (char)(*argument - '0');
    bytes[len] = '\0';
    if (*argument)
        snprintf(bytes + len, sizeof(bytes) - len, "%s\r\n", argument);
    for (char *c = bytes; *c; c++)
        *c = *c == '_' ? ' ' : *c;
    rig_send(bytes);
}

/* What is done to a scripted transport. */
static bool is_scripted(const char *word, const char *argument)
{
    size_t n = argument ? strtoul(argument, NULL, 10) : 0;
    if (!strcmp(word, "raw"))
        send_raw(argument);
    else if (!strcmp(word, "hellos"))
        scripted.hellos = (int)n;
    else if (!strcmp(word, "refuses"))
        scripted.refuses = true;
    else if (!strcmp(word, "room"))
        scripted.room = n;
    else if (!strcmp(word, "record"))
        scripted.record = n;
    else if (!strcmp(word, "permit")) /* is needed before anything is sent */
        scripted.needs_permit = true;
    else if (!strcmp(word, "answered")) /* its own bytes have left */
        scripted.answers = 0;
    else if (!strcmp(word, "child")) /* of fork() */
        server_close_in_child(&rig.s);
    else if (!strcmp(word, "cancel-dial"))
        dial_cancel(&rig.s.dial);
    else
        return false;
    return true;
}

/* The password file holds that; NULL: there is none. */
static void write_password(const char *password)
{
    char path[LOCAL_PATH];
    local_path(path, rig.dir, "file");
    unlink(path);
    if (!password)
        return;
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    size_t len = strlen(password);
    assert_int_equal(write(fd, password, len), (ssize_t)len);
    close(fd);
}

/* The other end, the socket, the file and the clock. */
static bool happens(const char *word, const char *argument)
{
    if (!strcmp(word, "says")) {
        other_end_says(argument);
    } else if (!strcmp(word, "hangup")) {
        rig_hang_up();
        unread.len = 0;
    } else if (!strcmp(word, "accept")) {
        rig_accept();
    } else if (!strcmp(word, "shake")) { /* as client 8; :other process */
        int fd =
            accept4(rig.listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0) {
            rig_hang_up();
            unread.len = 0;
            rig.peer = fd;
        }
        add_said();
        rig_send_handshake(8, argument ? RIG_OTHER_RUN_ID : RIG_RUN_ID);
    } else if (!strcmp(word, "file")) {
        write_password(argument);
    } else if (!strcmp(word, "listen")) {
        rig_listen();
    } else if (!strcmp(word, "unlisten")) {
        rig_unlisten();
    } else if (!strcmp(word, "block")) {
        rig_block();
    } else if (!strcmp(word, "allow")) { /* so many bytes more */
        stingy_allow(&rig.s.conn.transport, strtoul(argument, NULL, 10));
    } else if (!strcmp(word, "unblock")) {
        rig_unblock();
        rig.s.conn.blocked = false;
    } else if (!strcmp(word, "push")) { /* before anything is taken */
        rig_push();
    } else if (!strcmp(word, "format")) {
        requests_format(&rig.s, rig.now);
    } else if (!strcmp(word, "later")) { /* so many ms */
        scene.now += option_ms(argument);
        rig.now = scene.now;
    } else {
        return false;
    }
    return true;
}

/* Requests 0 to n - 1 are of several names of one lock, a, b, c ... */
static void name_requests(unsigned n)
{
    static struct slice keys[RIG_REQUESTS];
    for (unsigned i = 0; i < n; i++) {
        keys[i] = (struct slice){&"abcdefghijkl"[i], 1};
        rig.verb[i].key = keys[i];
        rig.verb[i].after = i > 0 ? &keys[i - 1] : NULL;
        spare_give_back(&rig.request[i]);
        assert_true(spare_reserve(&rig.request[i], keys[i]));
    }
}

/* leave:0, undo:0 the request is given up: 0gone if nothing had left. clean:0
 * what it was granted is to be deleted; clean:0:1000 for so long. adopt:1 by
 * that request, adopt:1:seen. token:0 it has another token. */
static bool node_call(const char *word, const char *argument)
{
    rig.now = scene.now;
    if (submits(word, argument) || happens(word, argument) ||
        is_scripted(word, argument))
        return true;
    unsigned n = argument ? (unsigned)strtoul(argument, NULL, 10) : 0;
    const char *more = argument ? strchr(argument, ':') : NULL;
    if (n >= RIG_REQUESTS)
        return false;
    struct request *r = &rig.request[n];
    struct verb *verb = &rig.verb[n];
    if (!strcmp(word, "up")) {
        rig_up();
    } else if (!strcmp(word, "leave") || !strcmp(word, "undo")) {
        if (rig_abandon(n, *word == 'u'))
            add("%ugone", n);
    } else if (!strcmp(word, "names")) {
        name_requests(n);
    } else if (!strcmp(word, "unbegin")) {
        server_undo_begin(r, verb->token, RIG_TTL_MS, rig.now);
    } else if (!strcmp(word, "clean")) {
        uint32_t ttl = more ? (uint32_t)strtoul(more + 1, NULL, 10) : 0;
        server_clean_up(r, verb->token, ttl ? ttl : RIG_TTL_MS, 0, rig.now);
    } else if (!strcmp(word, "adopt")) {
        if (server_can_adopt(&rig.s, verb->key, verb->token))
            server_adopt(r, verb->key, verb->token, more);
        else
            add("cannot");
    } else if (!strcmp(word, "token")) {
        verb->token = slice_of("7f1d7c1e-0000-4000-8000-0123456789ab");
    } else if (!strcmp(word, "owed")) { /* it is asked for the earlier token */
        verb->earlier_token_possible = true;
    } else if (!strcmp(word, "by")) { /* by:0:3 connects by 3 ms */
        verb->connect_by = scene_time(more + 1, NULL);
    } else {
        return false;
    }
    return true;
}

/* ?settled: nothing is left. The message is that of the last fault. ?watches:
 * the request that watches over its acquire: =use while its token is in use. */
static bool node_show(const char *what)
{
    static const char *const states[] = {[SERVER_DOWN] = "down",
        [SERVER_CONNECTING] = "connecting",
        [SERVER_SHAKING] = "shaking",
        [SERVER_UP] = "up"};
    struct pollfd fd;
    uint64_t deadline = server_deadline(&rig.s);
    bool unfinished = server_unfinished(&rig.s, NEVER);
    if (!strcmp(what, "settled") && !rig_cleanups() && !rig.s.conn.dropped &&
        !unfinished)
        add("settled");
    else if (!strcmp(what, "settled"))
        add("cleanups=%zu dropped=%u unfinished=%d", rig_cleanups(),
            (unsigned)rig.s.conn.dropped, unfinished);
    else if (!strcmp(what, "cleanups"))
        add("cleanups=%zu", rig_cleanups());
    else if (!strcmp(what, "unfinished"))
        add("unfinished=%d", unfinished);
    else if (!strcmp(what, "dropped"))
        add("dropped=%u", (unsigned)rig.s.conn.dropped);
    else if (!strcmp(what, "state"))
        add("%s", states[rig.s.state]);
    else if (!strcmp(what, "opened"))
        add("opened=%u closed=%u", scripted.opened, scripted.closed);
    else if (!strcmp(what, "talks")) /* has the peer said anything? */
        add("talks=%d",
            transport_news(&rig.s.conn.transport) == TRANSPORT_TALKS);
    else if (!strcmp(what, "pending"))
        add("pending=%d", rig.s.conn.transport.pending);
    else if (!strcmp(what, "login"))
        add("login=%d", rig.s.logged_in);
    else if (!strcmp(what, "connections"))
        add("connections=%u", rig.s.connections);
    else if (!strcmp(what, "over")) /* for the other end */
        add("over=%d", recv(rig.peer, rig.said, sizeof(rig.said), 0) == 0);
    else if (!strcmp(what, "why")) /* it is down, for later messages */
        add("why=%s", fault_name(rig.s.why_fault));
    else if (!strcmp(what, "polls"))
        add(rig_poll(&fd) && fd.events & POLLOUT ? "polls=out" : "polls=in");
    else if (!strcmp(what, "deadline"))
        add_time("deadline", deadline);
    else if (!strcmp(what, "sent"))
        add_time("sent", rig.last.outcome.sent_at);
    else if (!strncmp(what, "watches", 7)) {
        struct cleaner *c =
            rig.request[strtoul(what + 7, NULL, 10)].acquire_cleaner;
        add("%s", c ? c->cleanup.in_use ? "watches=use" : "watches" : "-");
    } else
        return false;
    return true;
}

static const char *node_text(void)
{
    return *rig.last_text ? rig.last_text : rig.s.why.data;
}

static void node_tick(void)
{
    rig.now = scene.now;
}

static uint64_t node_wake(enum life_track track)
{
    (void)track;
    return server_deadline(&rig.s);
}

static void node_start(void)
{
    rig_init(scene.with.url, !scene.with.several);
    rig.s.completed_handshake = scene.with.shaken;
    scripted_reset();
    if (scene.with.scripted)
        rig.s.dial.kind = &scripted_kind;
    assert_int_equal(fcntl(rig.listener, F_SETFL, O_NONBLOCK), 0);
    rig.now = scene.now;
}

static void node_stop(void)
{
    rig_tear_down(NULL);
    reply_values_free(&values);
    bytes_free(&unread);
}

static const struct scene_machine server_machine = {.name = "server",
    .start = node_start,
    .stop = node_stop,
    .take = node_take,
    .call = node_call,
    .show = node_show,
    .tick = node_tick,
    .wake = node_wake,
    .text = node_text};

#endif
