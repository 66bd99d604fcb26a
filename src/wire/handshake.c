/* SPDX-License-Identifier: MIT */
/*
 * The first commands on a connection: AUTH, SELECT, and what the server says
 * about itself. Invariant: every reply is matched to its command, and the
 * handshake is DONE only if AUTH and SELECT, where sent, were answered with OK
 * and INFO did not reveal a Sentinel.
 */
#include "wire/handshake.h"

#include <stdio.h>

#include "base/deadline.h"
#include "wire/classify.h"
#include "wire/command.h"
#include "wire/marker.h"

/* The commands in the order in which they are sent; a step of handshake. */
enum step {
    STEP_AUTH,
    STEP_SELECT,
    STEP_PING,
    STEP_CLIENT_ID,
    STEP_INFO,
    STEP_FSYNC,
    STEP_LOAD, /* and one step for each further script */
    STEP_END = STEP_LOAD + SCRIPTS_LOADED,
    STEP_SLOTS,    /* of a node of a Redis Cluster, after all others */
    STEP_CLOCK,    /* of a primary that hands over, and of the next one */
    STEP_REPLICAS, /* of a primary that was promoted */
};

/* The clocks of both are compared, and how exactly the answers show them
 * decides for how long locks pause. On a busy machine some take long: ask
 * again, until one took no longer than this, which is a third of what is too
 * much. */
#define CLOCK_FINE (2 * NS_PER_MS)
#define CLOCK_READINGS 5

const enum script_id scripts_loaded[SCRIPTS_LOADED] = {
    SCRIPT_EXTEND, SCRIPT_INSPECT, SCRIPT_RELEASE};

static bool is_sent(const struct handshake *h, unsigned step)
{
    const struct handshake_terms *terms = h->terms;

    if (step == STEP_AUTH)
        return terms->password.data != NULL;
    if (terms->sentinel)
        return step == STEP_INFO;
    if (step == STEP_SELECT)
        return terms->db != 0;
    if (step == STEP_FSYNC && !h->asks_fsync)
        return false;
    return (step == STEP_PING) == terms->brief;
}

static bool send_step(
    const struct handshake_terms *terms, unsigned step, struct buf *out)
{
    struct slice argv[4];
    char db[16];
    int argc = 0;

    switch (step) {
    case STEP_AUTH:
        argv[argc++] = slice_of("AUTH");
        if (terms->user.len > 0)
            argv[argc++] = terms->user;
        argv[argc++] = terms->password;
        break;
    case STEP_SELECT:
        snprintf(db, sizeof(db), "%u", terms->db);
        argv[argc++] = slice_of("SELECT");
        argv[argc++] = slice_of(db);
        break;
    case STEP_PING:
        argv[argc++] = slice_of("PING");
        break;
    case STEP_CLIENT_ID:
        argv[argc++] = slice_of("CLIENT");
        argv[argc++] = slice_of("ID");
        break;
    case STEP_INFO: /* a section would be an arity error before 2.6 */
        argv[argc++] = slice_of("INFO");
        break;
    case STEP_FSYNC:
        argv[argc++] = slice_of("CONFIG");
        argv[argc++] = slice_of("GET");
        argv[argc++] = slice_of("appendfsync");
        break;
    case STEP_SLOTS:
        argv[argc++] = slice_of("CLUSTER");
        argv[argc++] = slice_of("NODES");
        break;
    case STEP_CLOCK:
        argv[argc++] = slice_of("INFO");
        argv[argc++] = slice_of("server");
        break;
    case STEP_REPLICAS: /* every version knows the old word */
        argv[argc++] = slice_of("CLIENT");
        argv[argc++] = slice_of("LIST");
        argv[argc++] = slice_of("TYPE");
        argv[argc++] = slice_of("slave");
        break;
    default:
        argv[argc++] = slice_of("SCRIPT");
        argv[argc++] = slice_of("LOAD");
        argv[argc++] = scripts[scripts_loaded[step - STEP_LOAD]].body;
    }
    return command_append(out, argc, argv);
}

static void skip_unsent(struct handshake *h)
{
    while (h->step < STEP_END && !is_sent(h, h->step))
        h->step++;
}

bool handshake_unanswered(const struct handshake *h)
{
    return h->step <= (h->terms->sentinel ? STEP_INFO : STEP_CLIENT_ID);
}

unsigned handshake_begin(
    struct handshake *h, const struct handshake_terms *terms, struct buf *out)
{
    size_t before = buf_len(out);
    unsigned sent = 0;

    *h = (struct handshake){.terms = terms,
        .asks_fsync = terms->asks_fsync,
        .facts = {.uptime_s = -1,
            .slots = -1,
            .primary_s = -1,
            .info_refused = terms->brief}};
    for (unsigned step = 0; step < STEP_END; step++) {
        if (!is_sent(h, step))
            continue;
        if (!send_step(terms, step, out)) {
            buf_cut(out, before, buf_len(out) - before);
            return 0;
        }
        sent++;
    }
    skip_unsent(h);
    return sent;
}

/* Is its age as a primary still to be found out? */
static bool age_matters(const struct handshake *h)
{
    const struct age_terms *age = h->terms->age;
    const struct facts *f = &h->facts;
    return age && f->replid[0] && f->replid2[0] &&
           strcmp(f->role, "master") == 0 &&
           strcmp(f->replid, age->last->replid) != 0 &&
           f->primary_s < age->needed_s;
}

static bool is_former_primary(const struct facts *f)
{
    return f->replid2[0] && strcmp(f->role, "slave") == 0;
}

/* Is it a former primary, or the one to which the last connection's server may
 * have handed over? Then the time that it tells has to be exact. */
static bool clock_matters(const struct handshake *h)
{
    const struct age_terms *age = h->terms->age;
    const struct facts *f = &h->facts;
    if (!age || !f->time_us || !f->replid2[0] ||
        !(is_former_primary(f) || is_former_primary(age->last)))
        return false;
    return h->clock_readings == 0 ||
           (h->clock_readings < CLOCK_READINGS &&
               elapsed(f->asked_at, f->answered_at) > CLOCK_FINE);
}

/* The question after that one; QUESTION_END: there is none. The clock is asked
 * again and again, as long as it matters. */
static unsigned question_after(const struct handshake *h, unsigned question)
{
    if (question < QUESTION_SLOTS && h->facts.cluster)
        return QUESTION_SLOTS;
    if (question <= QUESTION_CLOCK && clock_matters(h))
        return QUESTION_CLOCK;
    if (question < QUESTION_REPLICAS && age_matters(h) &&
        h->terms->age->by_replicas)
        return QUESTION_REPLICAS;
    if (question < QUESTION_MARKER && age_matters(h))
        return QUESTION_MARKER;
    return QUESTION_END;
}

bool handshake_ask(struct handshake *h, struct buf *out)
{
    h->question = question_after(h, h->question);
    switch (h->question) {
    case QUESTION_SLOTS:
        return send_step(h->terms, STEP_SLOTS, out);
    case QUESTION_CLOCK:
        return send_step(h->terms, STEP_CLOCK, out);
    case QUESTION_REPLICAS:
        return send_step(h->terms, STEP_REPLICAS, out);
    case QUESTION_MARKER:
        return marker_append(out, h->terms->age->marker, h->facts.replid, 0);
    case QUESTION_NONE:
    case QUESTION_END:
        break;
    }
    return false;
}

static enum handshake_next next_question(const struct handshake *h)
{
    return question_after(h, h->question) == QUESTION_END ? HANDSHAKE_DONE
                                                          : HANDSHAKE_ASK;
}

/* Keeps the most exact reading of its clock. The first one replaces that of the
 * other INFO, whose reply came together with others. */
static void take_clock(struct handshake *h, const struct reply *reply)
{
    struct facts seen = {0};
    struct facts *f = &h->facts;
    if (reply->kind == REPLY_STRING)
        facts_read_info(&seen, reply);
    if (!seen.time_us) { /* go on with what there is */
        h->clock_readings = CLOCK_READINGS;
        return;
    }
    if (h->clock_readings == 0 || elapsed(h->asked_at, h->answered_at) <
                                      elapsed(f->asked_at, f->answered_at)) {
        f->time_us = seen.time_us;
        f->asked_at = h->asked_at;
        f->answered_at = h->answered_at;
    }
    h->clock_readings++;
}

/* An error leaves unknown what was asked. */
static void take_answer(struct handshake *h, const struct reply *reply)
{
    struct facts *f = &h->facts;
    if (h->question == QUESTION_SLOTS && reply->kind == REPLY_STRING)
        facts_read_slots(f, reply);
    else if (h->question == QUESTION_CLOCK)
        take_clock(h, reply);
    else if (h->question == QUESTION_REPLICAS && reply->kind == REPLY_STRING)
        facts_read_replicas(f, reply);
    else if (h->question == QUESTION_MARKER)
        marker_take(f, reply);
}

bool handshake_ask_fsync(struct handshake *h, struct buf *out)
{
    h->asks_fsync = send_step(h->terms, STEP_FSYNC, out);
    return h->asks_fsync;
}

bool handshake_is_minimal(const struct handshake_terms *terms)
{
    return !terms->password.data && terms->db == 0;
}

bool handshake_is_farewell(const struct reply *reply)
{
    return reply->kind == REPLY_ERROR &&
           (slice_starts(reply->bytes, "ERR max number of clients") ||
               slice_starts(reply->bytes, "DENIED "));
}

/* Was AUTH or SELECT answered with OK? If not, *fault says why. */
static bool login_note_success(
    unsigned step, const struct reply *reply, enum fault *fault)
{
    if (reply->kind == REPLY_STATUS &&
        slice_equal(reply->bytes, slice_of("OK")))
        return true;
    if (reply->kind != REPLY_ERROR) {
        *fault = FAULT_NOT_REDIS;
        return false;
    }
    *fault = classify_error(reply->bytes);
    /* Whatever the error says, these credentials are wrong here. */
    if (step == STEP_AUTH && !fault_is_transient(*fault))
        *fault = FAULT_DENIED;
    /* An error that SELECT shares with no other command is about its number. */
    if (step == STEP_SELECT && *fault == FAULT_SERVER)
        *fault = FAULT_NO_DATABASE;
    return false;
}

/* Takes the replies to the other commands. False: the reply cannot be the
 * answer to the command. */
static bool take_fact(struct facts *f, unsigned step, const struct reply *reply)
{
    f->asked_fsync = f->asked_fsync || step == STEP_FSYNC;
    if (reply->kind == REPLY_ERROR) {
        if (step == STEP_INFO)
            f->info_refused = true;
        if (step >= STEP_LOAD &&
            !fault_is_transient(classify_error(reply->bytes)))
            f->no_scripts = true;
        if (slice_starts(reply->bytes, "LOADING"))
            f->loading = true;
        if (classify_error(reply->bytes) == FAULT_DENIED)
            f->no_login = true;
        return true;
    }
    switch (step) {
    case STEP_CLIENT_ID:
        f->client_id = reply->integer;
        return reply->kind == REPLY_INTEGER;
    case STEP_FSYNC: /* its name, then its value */
        if (reply->kind == REPLY_ARRAY && reply->count == 2)
            facts_copy(
                f->appendfsync, sizeof(f->appendfsync), reply->items[1].bytes);
        return reply->kind == REPLY_ARRAY;
    case STEP_INFO: /* read by ended_by_info() */
        return reply->kind == REPLY_STRING;
    default:
        return reply->kind == REPLY_STRING || reply->kind == REPLY_STATUS;
    }
}

bool handshake_take_fsync(struct facts *facts, const struct reply *reply)
{
    return take_fact(facts, STEP_FSYNC, reply);
}

/* The server cannot answer INFO now, or requires a password first. That is not
 * the same as a user without permission for INFO. */
static bool info_unavailable(const struct reply *reply)
{
    if (reply->kind != REPLY_ERROR)
        return false;
    enum fault fault = classify_error(reply->bytes);
    return fault_is_transient(fault) || fault == FAULT_DENIED;
}

/* AUTH or SELECT was refused: the handshake fails after the reply to INFO. */
static void handshake_remember_refusal(
    struct handshake *h, const struct reply *reply, enum fault fault)
{
    size_t len = reply->bytes.len < sizeof(h->why) ? reply->bytes.len
                                                   : sizeof(h->why) - 1;

    memcpy(h->why, reply->bytes.data, len);
    h->why[len] = '\0';
    h->refused = fault;
    h->login_refused = h->step == STEP_AUTH;
}

/* Takes the reply to INFO. True: it ends the handshake, for *fault. */
static bool ended_by_info(
    struct handshake *h, const struct reply *reply, enum fault *fault)
{
    if (reply->kind == REPLY_STRING) {
        facts_read_info(&h->facts, reply);
        bool sentinel = strcmp(h->facts.mode, "sentinel") == 0;
        if (h->terms->sentinel && !sentinel) {
            snprintf(h->why, sizeof(h->why), "this is no Sentinel");
            *fault = FAULT_WRONG_SENTINELS;
            return true;
        }
        if (h->terms->sentinel && h->refused == FAULT_NONE) {
            facts_list_services(reply, h->why, sizeof(h->why));
        } else if (sentinel && !h->terms->sentinel) {
            facts_name_sentinel(reply, h->why, sizeof(h->why));
            h->refused = FAULT_NONE; /* a Sentinel is the better message */
            *fault = FAULT_IS_SENTINEL;
            return true;
        }
    }
    *fault = h->refused;
    return h->refused != FAULT_NONE;
}

/* Everything that was sent at first has been answered. */
static enum handshake_next flight_answered(
    const struct handshake *h, enum fault *fault)
{
    /* A refusal is still pending if no INFO was sent (a brief handshake). */
    *fault = h->refused;
    if (h->refused != FAULT_NONE)
        return HANDSHAKE_FAILED;
    return next_question(h);
}

enum handshake_next handshake_reply(
    struct handshake *h, const struct reply *reply, enum fault *fault)
{
    unsigned step = h->step;

    if (handshake_is_farewell(reply)) {
        *fault = classify_error(reply->bytes);
        return HANDSHAKE_FAILED;
    }
    if (h->question) {
        take_answer(h, reply);
        return next_question(h);
    }
    if (step == STEP_INFO && ended_by_info(h, reply, fault))
        return HANDSHAKE_FAILED;
    if (step == STEP_INFO && reply->kind == REPLY_ERROR &&
        (h->terms->sentinel ||
            (h->terms->needs_info && info_unavailable(reply)))) {
        *fault = classify_error(reply->bytes);
        return HANDSHAKE_FAILED;
    }
    bool only_info = h->refused != FAULT_NONE;
    if (!only_info && step <= STEP_SELECT &&
        !login_note_success(step, reply, fault)) {
        if (reply->kind != REPLY_ERROR || fault_is_transient(*fault))
            return HANDSHAKE_FAILED;
        handshake_remember_refusal(h, reply, *fault);
        *fault = FAULT_NONE;
    }
    if (!only_info && step > STEP_SELECT &&
        !take_fact(&h->facts, step, reply)) {
        *fault = FAULT_NOT_REDIS;
        return HANDSHAKE_FAILED;
    }
    h->step++;
    skip_unsent(h);
    return h->step == STEP_END ? flight_answered(h, fault) : HANDSHAKE_WAIT;
}
