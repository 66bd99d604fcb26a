/* SPDX-License-Identifier: MIT */
/*
 * The drill's side of its processes.
 *
 * Invariant: every answer is recorded in the ledger, so two holders at once are
 * noticed in every scene.
 */
#include "cli/drill_cast.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/connect.h"
#include "cli/duration.h"
#include "cli/report.h"

#define WORDS_ROOM 768
/* The end of a client takes up to half a second. */
#define END_MS 2000
#define MS_PER_S 1000

/* ----------------------------------------------------------------- findings */

void drill_broken(struct drill *d, const char *promise, const char *format, ...)
{
    char words[WORDS_ROOM];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(words, sizeof(words), format, arguments);
    va_end(arguments);
    diagnostic(&d->diagnostics, LEVEL_FAIL, d->scene, NULL,
        "a promise was broken: %s (guarantees.md, %s)", words, promise);
    d->broken = d->bad = true;
}

void drill_unshown(struct drill *d, const char *format, ...)
{
    char words[WORDS_ROOM];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(words, sizeof(words), format, arguments);
    va_end(arguments);
    if (!d->over && !d->bad) /* a scene that went wrong may end early */
        diagnostic(&d->diagnostics, LEVEL_WARN, d->scene, NULL, "not shown: %s",
            words);
    d->unshown = true;
    d->over = true;
}

void drill_error(
    struct drill *d, const char *what, const struct drill_answer *answer)
{
    diagnostic(&d->diagnostics, LEVEL_FAIL, d->scene, NULL, "cannot %s: %s",
        what, answer->text);
    connect_advise(d->args, answer->result, answer->text);
    d->code = exit_code_for(answer->result, EXIT_UNAVAILABLE);
    d->over = true;
}

void drill_failed(
    struct drill *d, const char *what, const struct drill_answer *answer)
{
    bool slow = answer->result == NXL_LOST || answer->result == NXL_UNKNOWN ||
                answer->result == NXL_BUSY;

    if (slow)
        drill_unshown(d, "cannot %s: %s", what, answer->text);
    else
        drill_error(d, what, answer);
}

const char *drill_time(char *out, uint64_t from, uint64_t until)
{
    double ms = until > from ? (double)(until - from) / (double)NS_PER_MS : 0;

    if (ms < MS_PER_S)
        snprintf(out, DURATION_ROOM, "%.*fms", ms < 10 ? 1 : 0, ms);
    else
        snprintf(out, DURATION_ROOM, "%.2fs", ms / MS_PER_S);
    return out;
}

/* ---------------------------------------------------------------- processes */

static bool start_player(struct drill *d, unsigned who, bool renew)
{
    int line[2];
    struct actor_plan plan = {.args = d->args,
        .name = d->name,
        .ttl_ms = d->ttl_ms,
        .renew = renew,
        .parent = getpid()};

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, line) != 0)
        return false;
    plan.line = line[1];
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0)
        actor_play(&plan);
    close(line[1]);
    if (pid < 0) {
        close(line[0]);
        return false;
    }
    d->players[who] = (struct player){pid, line[0]};
    return true;
}

bool drill_start_all(struct drill *d, unsigned renewing)
{
    for (unsigned who = 0; who < ACTORS; who++) {
        if (start_player(d, who, (renewing & ONE(who)) != 0))
            continue;
        diagnostic(&d->diagnostics, LEVEL_FAIL, d->scene, NULL,
            "cannot create a process: %s", strerror(errno));
        d->code = EXIT_INTERNAL;
        d->over = true;
        return false;
    }
    return true;
}

static void reap_player(struct drill *d, unsigned who)
{
    struct player *player = &d->players[who];

    while (waitpid(player->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    close(player->line);
    *player = (struct player){0, -1};
    ledger_close(&d->ledger, who);
}

void drill_kill(struct drill *d, unsigned who)
{
    kill(d->players[who].pid, SIGKILL);
    reap_player(d, who);
}

void drill_stop(struct drill *d, unsigned who)
{
    pid_t pid = d->players[who].pid;
    siginfo_t info;

    kill(pid, SIGSTOP);
    /* If it has ended instead, its number stays taken until it is waited for
     * at the end. */
    while (waitid(P_PID, (id_t)pid, &info, WSTOPPED | WEXITED | WNOWAIT) < 0 &&
           errno == EINTR)
        ;
}

void drill_continue(struct drill *d, unsigned who)
{
    kill(d->players[who].pid, SIGCONT);
}

/* Waits for the end of a line, whose answers no longer matter. */
static bool line_ends(int line, uint64_t until)
{
    struct drill_answer answer;

    for (;;) {
        struct pollfd in = {line, POLLIN, 0};
        uint64_t now = nxl_now_ns();
        if (now >= until)
            return false;
        if (poll(&in, 1, (int)((until - now) / NS_PER_MS) + 1) > 0 &&
            recv(line, &answer, sizeof(answer), MSG_DONTWAIT) <= 0)
            return true;
    }
}

void drill_end_all(struct drill *d)
{
    uint64_t until = nxl_now_ns() + END_MS * NS_PER_MS;

    for (unsigned who = 0; who < ACTORS; who++) {
        if (d->players[who].pid == 0)
            continue;
        drill_continue(d, who); /* if it was stopped */
        shutdown(d->players[who].line, SHUT_WR);
    }
    for (unsigned who = 0; who < ACTORS; who++) {
        if (d->players[who].pid == 0)
            continue;
        if (line_ends(d->players[who].line, until))
            reap_player(d, who);
        else
            drill_kill(d, who);
    }
}

/* ------------------------------------------------------- orders and answers */

static bool send_order(
    struct drill *d, unsigned who, const struct drill_order *order)
{
    if (d->over)
        return false;
    if (send(d->players[who].line, order, sizeof(*order), MSG_NOSIGNAL) < 0)
        drill_unshown(d, "a process of the drill ended unexpectedly");
    return !d->over;
}

bool drill_send(struct drill *d, unsigned who, enum act act, int64_t wait_ms)
{
    struct drill_order order = {.act = act, .wait_ms = wait_ms};

    return send_order(d, who, &order);
}

static void report_two(
    struct drill *d, const struct held *one, const struct held *other)
{
    char text[DURATION_ROOM];
    uint64_t from = one->from > other->from ? one->from : other->from;
    uint64_t until = one->until < other->until ? one->until : other->until;

    drill_broken(d, "G1, G3",
        "two holders at once: a second process was granted the lock, and %s "
        "later the first one still relied on it",
        drill_time(text, from, until));
}

static void report_fence(
    struct drill *d, const struct held *one, const struct held *other)
{
    const struct held *later = one->sure > other->sure ? one : other;
    const struct held *first = later == one ? other : one;

    drill_broken(d, "G7", "fencing tokens do not grow: %llu came after %llu",
        (unsigned long long)later->fence, (unsigned long long)first->fence);
}

static void note_answer(
    struct drill *d, unsigned who, const struct drill_answer *answer)
{
    const struct held *mine, *other;
    enum ledger_finding found =
        ledger_note(&d->ledger, who, answer, &mine, &other);

    if (found == LEDGER_TWO)
        report_two(d, mine, other);
    else if (found == LEDGER_FENCE)
        report_fence(d, mine, other);
    /* One proof is enough: what follows would only repeat it. */
    if (found != LEDGER_FINE)
        d->over = true;
}

/* A signal ends the drill. False: none came. */
static bool signalled(struct drill *d)
{
    session_cancel_on_signal(&d->session);
    if (d->session.caught != 0)
        d->over = true;
    return d->session.caught != 0;
}

static bool poll_until(
    struct drill *d, struct pollfd *fds, size_t count, uint64_t until)
{
    uint64_t now = nxl_now_ns();
    uint64_t by = until < d->end ? until : d->end;
    uint64_t left_ms = by > now ? (by - now) / NS_PER_MS + 1 : 0;

    (void)poll(fds, (nfds_t)count, (int)left_ms);
    if (signalled(d))
        return false;
    if (nxl_now_ns() >= d->end)
        drill_unshown(d, "a minute was not enough: the server or this machine "
                         "is too slow");
    return !d->over;
}

bool drill_receive(struct drill *d, unsigned of, uint64_t until, unsigned *who,
    struct drill_answer *answer)
{
    struct pollfd fds[ACTORS + 1];

    *who = ACTORS;
    while (!d->over) {
        for (unsigned i = 0; i < ACTORS; i++)
            fds[i] = (struct pollfd){
                of & ONE(i) ? d->players[i].line : -1, POLLIN, 0};
        fds[ACTORS] = (struct pollfd){d->session.signals, POLLIN, 0};
        if (!poll_until(d, fds, ACTORS + 1, until))
            break;
        for (unsigned i = 0; i < ACTORS; i++) {
            if (fds[i].revents == 0)
                continue;
            if (recv(fds[i].fd, answer, sizeof(*answer), 0) !=
                (ssize_t)sizeof(*answer)) {
                drill_unshown(d, "a process of the drill ended unexpectedly");
                return false;
            }
            *who = i;
            note_answer(d, i, answer);
            return !d->over;
        }
        if (nxl_now_ns() >= until)
            return true;
    }
    return false;
}

static bool send_and_wait(struct drill *d, unsigned who,
    const struct drill_order *order, struct drill_answer *answer)
{
    unsigned whose;

    return send_order(d, who, order) &&
           drill_receive(d, ONE(who), NEVER, &whose, answer);
}

bool drill_ask(struct drill *d, unsigned who, enum act act, int64_t wait_ms,
    struct drill_answer *answer)
{
    struct drill_order order = {.act = act, .wait_ms = wait_ms};

    return send_and_wait(d, who, &order, answer);
}

bool drill_ask_token(struct drill *d, unsigned who, enum act act,
    const char *token, struct drill_answer *answer)
{
    struct drill_order order = {.act = act};

    snprintf(order.token, sizeof(order.token), "%s", token);
    return send_and_wait(d, who, &order, answer);
}

bool drill_acquire(struct drill *d, unsigned who, struct drill_answer *answer)
{
    if (!drill_ask(d, who, ACT_ACQUIRE, 2 * d->ttl_ms, answer))
        return false;
    if (answer->result != NXL_OK)
        drill_failed(d, "acquire", answer);
    return !d->over;
}

bool drill_sleep(struct drill *d, uint64_t until)
{
    struct pollfd fds = {d->session.signals, POLLIN, 0};

    while (!d->over && nxl_now_ns() < until)
        poll_until(d, &fds, 1, until);
    return !d->over;
}
