/* SPDX-License-Identifier: MIT */
/*
 * A connection over a transport that holds what counts as sent, as one that
 * encrypts does, against a model of the stream, by random schedules. What
 * arrives is always the beginning of this: every command that was not taken
 * back, whole and in order. A command can be taken back while nothing of it
 * counts as sent, and only then.
 */
#include "support/test.h"

#include <poll.h>
#include <sys/socket.h>

#include "net/conn.h"
#include "transport_rig.h"

#define SCHEDULES 1000
#define SCHEDULES_FULL 30000
#define STEPS 120
#define COMMANDS 64 /* in one schedule */
#define LONGEST 40

struct command {
    uint64_t number; /* of its first slot */
    unsigned replies;
    size_t len;
    bool withdrawn;
};

static struct {
    struct conn conn;
    int peer;
    uint64_t dice;
    struct command command[COMMANDS];
    size_t commands, answered;
    size_t taken; /* bytes that the transport has counted as sent */
    char got[COMMANDS * LONGEST + 1];
    size_t got_len;
} play;

static size_t roll(size_t sides)
{
    play.dice = play.dice * 6364136223846793005u + 1442695040888963407u;
    return (size_t)(play.dice >> 33) % sides;
}

/* Of which a command is made: no other has the same. */
static char byte_of(size_t command)
{
    return (char)('!' + (int)command);
}

static ssize_t count_taken(struct transport *t, const void *bytes, size_t len)
{
    ssize_t n = scripted_send(t, bytes, len);
    play.taken += n > 0 ? (size_t)n : 0;
    return n;
}

/* ------------------------------------------------------------------- the model
 */

/* What has arrived is what should, and no more than what was counted. */
static void check_arrived(void)
{
    static char wanted[sizeof(play.got)];
    size_t len = 0;
    ssize_t n;
    while ((n = recv(play.peer, play.got + play.got_len,
                sizeof(play.got) - play.got_len, MSG_DONTWAIT)) > 0)
        play.got_len += (size_t)n;
    for (size_t c = 0; c < play.commands; c++) {
        if (play.command[c].withdrawn)
            continue;
        memset(wanted + len, byte_of(c), play.command[c].len);
        len += play.command[c].len;
    }
    assert_true(play.got_len <= len);
    assert_memory_equal(play.got, wanted, play.got_len);
    assert_int_equal(play.got_len + scripted.sealed_len, play.taken);
}

/* Exactly the commands with a byte taken count as sent. */
static void check_counted(void)
{
    size_t at = 0, unsent = 0;
    for (size_t c = 0; c < play.commands; c++) {
        const struct command *command = &play.command[c];
        if (command->withdrawn)
            continue;
        bool sent = command->number < play.conn.first_unsent;
        assert_int_equal(sent, at < play.taken);
        at += command->len;
        unsent += !sent;
    }
    assert_true(conn_unsent_slots(&play.conn) >= unsent);
    assert_true(unsent > 0 || conn_unsent_slots(&play.conn) == 0);
}

/* ------------------------------------------------------------------- the steps
 */

static void add_command(void)
{
    char bytes[LONGEST];
    if (play.commands == COMMANDS)
        return;
    struct command *command = &play.command[play.commands];
    *command = (struct command){.number = slots_end(&play.conn.slots),
        .replies = 1 + (unsigned)roll(3),
        .len = 1 + roll(LONGEST)};
    memset(bytes, byte_of(play.commands), command->len);
    assert_true(buf_append(&play.conn.out, bytes, command->len));
    assert_true(slots_reserve(&play.conn.slots, command->replies));
    for (unsigned i = 0; i < command->replies; i++)
        slots_push(
            &play.conn.slots, SLOT_REQUEST, NULL, 0, i == 0 ? command->len : 0);
    play.commands++;
}

static void withdraw_one(void)
{
    size_t c = play.commands ? roll(play.commands) : 0;
    struct command *command = &play.command[c];
    if (!play.commands || command->withdrawn ||
        command->number < play.conn.first_unsent)
        return;
    conn_withdraw(&play.conn, command->number, command->replies);
    command->withdrawn = true;
}

static void answer_reply(void)
{
    struct slot slot;
    assert_true(conn_pop(&play.conn, &slot));
    assert_int_equal(slot.kind, SLOT_REQUEST);
}

/* The server answers a command that has come whole. */
static void answer_one(void)
{
    size_t at = 0;
    for (size_t c = 0; c < play.commands; c++) {
        struct command *command = &play.command[c];
        at += command->withdrawn ? 0 : command->len;
        if (c < play.answered || command->withdrawn)
            continue;
        if (at > play.got_len)
            return;
        for (unsigned i = 0; i < command->replies; i++)
            answer_reply();
        play.answered = c + 1;
        return;
    }
}

static void flush(size_t room, size_t record)
{
    struct text why;
    play.conn.blocked = false; /* the poller has reported room */
    scripted.room = room;
    scripted.record = record;
    assert_true(conn_flush(&play.conn, &why));
    bool waits = buf_len(&play.conn.out) || scripted.sealed_len;
    assert_int_equal(play.conn.blocked, waits);
    assert_int_equal(play.conn.polled_for_room, waits);
}

static void step(void)
{
    size_t what = roll(10);
    if (what < 4)
        add_command();
    else if (what < 6)
        withdraw_one();
    else if (what < 9)
        flush(roll(2) ? roll(3 * LONGEST) : 0, 1 + roll(3 * LONGEST));
    else
        answer_one();
    check_arrived();
    check_counted();
}

/* ------------------------------------------------------------------ schedules
 */

static void begin(uint64_t seed)
{
    static struct transport_kind kind;
    int ends[2];
    struct text error;
    struct transport t;
    kind = scripted_kind;
    kind.send = count_taken;
    kind.close = NULL; /* its goodbye would arrive */
    memset(&play, 0, sizeof(play));
    play.dice = seed;
    scripted_reset();
    assert_int_equal(socketpair(AF_UNIX,
                         SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends),
        0);
    play.peer = ends[1];
    assert_true(transport_open(&t, &kind, ends[0], NULL, &error));
    assert_true(conn_open(&play.conn, &t, &error));
}

static void end(void)
{
    conn_free(&play.conn);
    close(play.peer);
}

static void every_schedule_is_a_stream_of_whole_commands(void **state)
{
    (void)state;
    uint64_t seeds = getenv("NXLOCK_FULL") ? SCHEDULES_FULL : SCHEDULES;
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        begin(seed);
        for (int i = 0; i < STEPS; i++)
            step();
        while (buf_len(&play.conn.out) || scripted.sealed_len) {
            flush(SIZE_MAX, 1 + roll(LONGEST));
            check_arrived();
        }
        assert_int_equal(conn_unsent_slots(&play.conn), 0);
        assert_int_equal(play.got_len, play.taken);
        while (play.conn.slots.count)
            answer_one();
        end();
    }
}

static void room_comes(void)
{
    struct text why;
    bool broken;
    assert_true(conn_ready(&play.conn, POLLOUT, &why, &broken));
}

/* To poll for room is right as long as a record is held, also if all commands
 * behind it have been taken back. */
static void a_held_record_still_waits_for_room(void **state)
{
    (void)state;
    begin(1);
    add_command();
    size_t len = play.command[0].len;
    flush(0, len);
    add_command();
    conn_withdraw(&play.conn, play.command[1].number, play.command[1].replies);
    play.command[1].withdrawn = true;
    assert_true(play.conn.polled_for_room);
    assert_true(play.conn.blocked);
    room_comes();
    assert_false(play.conn.blocked);
    flush(SIZE_MAX, 1);
    check_arrived();
    assert_int_equal(play.got_len, len);
    assert_false(play.conn.polled_for_room);
    end();
}

static void peer_says(const char *byte)
{
    struct text why;
    bool broken;
    assert_int_equal(send(play.peer, byte, 1, 0), 1);
    assert_true(conn_ready(&play.conn, POLLIN, &why, &broken));
}

/* A read that has to write waits for room at once; and what a send waits for
 * has come only when the transport says so. */
static void a_read_decides_what_is_waited_for(void **state)
{
    static const char demand[] = {DEMAND}, silent[] = {SILENT},
                      permit[] = {PERMIT};
    (void)state;
    begin(1);
    scripted.room = 0;
    peer_says(demand);
    assert_true(play.conn.blocked && play.conn.polled_for_room);
    end();
    begin(1);
    scripted.needs_permit = true;
    add_command();
    struct text why;
    assert_true(conn_flush(&play.conn, &why));
    peer_says(silent);
    assert_true(play.conn.blocked && !play.conn.polled_for_room);
    peer_says(permit);
    assert_false(play.conn.blocked);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_schedule_is_a_stream_of_whole_commands),
        cmocka_unit_test(a_held_record_still_waits_for_room),
        cmocka_unit_test(a_read_decides_what_is_waited_for),
    };
    return cmocka_run_group_tests_name("conn_held", tests, NULL, NULL);
}
