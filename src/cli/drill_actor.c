/* SPDX-License-Identifier: MIT */
/*
 * A process of the drill that contends for its lock.
 *
 * A connection is cut from within: this process shuts down the sockets of its
 * own library. So the cut looks the same by TCP, TLS and unix socket, at any
 * number of servers, and needs neither rights nor a proxy to be trusted.
 *
 * Invariant: no process of the drill outlives it.
 */
#include "cli/drill_actor.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cli/clock.h"
#include "cli/connect.h"
#include "cli/descriptors.h"
#include "cli/holder.h"
#include "cli/report.h"

/* The line's number: everything above it belongs to the library. */
#define LINE_FD 3
#define FDS_MAX 16
/* How long an answer that is to be lost is waited for. */
#define ANSWER_MS 2000

struct actor {
    const struct actor_plan *plan;
    nxl_client *client;
    nxl_lock *lock;
    struct drill_order order;
    struct drill_answer answer;
    bool busy; /* the order is being carried out */
    uint64_t lost_at;
    int loss;
};

/* ------------------------------------------------------ cutting connections */

/* Throws away what has arrived. True: there was something. */
static bool discard_input(int fd)
{
    char bytes[4096];
    bool any = false;

    while (recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
        any = true;
    return any;
}

/* Shuts down every socket of the library; wait: only when an answer has arrived
 * there, which is thrown away. Returns the number of these answers. */
static unsigned cut_connections(bool wait)
{
    uint64_t until = nxl_now_ns() + ANSWER_MS * NS_PER_MS;
    DIR *dir = opendir("/proc/self/fd");
    unsigned lost = 0;

    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        int type, fd = (int)strtol(entry->d_name, NULL, 10);
        socklen_t size = sizeof(type);
        if (fd <= LINE_FD ||
            getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) != 0)
            continue;
        struct pollfd in = {fd, POLLIN, 0};
        uint64_t now = nxl_now_ns();
        if (wait && now < until)
            poll(&in, 1, (int)((until - now) / NS_PER_MS));
        if (wait && discard_input(fd))
            lost++;
        shutdown(fd, SHUT_RDWR);
    }
    if (dir)
        closedir(dir);
    return lost;
}

/* From now on this process can open no descriptor, so no connection either. */
static void cut_off(void)
{
    struct rlimit limit = {LINE_FD + 1, LINE_FD + 1};

    cut_connections(false);
    setrlimit(RLIMIT_NOFILE, &limit);
}

/* ------------------------------------------------------------------- orders */

static void send_answer(struct actor *a, int result)
{
    struct drill_answer *answer = &a->answer;
    nxl_server_facts facts = NXL_SERVER_FACTS_INIT;
    nxl_holder seen;
    bool holder = a->order.act == ACT_INSPECT && result == NXL_OK &&
                  nxl_lock_holder(a->lock, &seen) == NXL_OK;

    answer->ended = nxl_now_ns();
    answer->held_after = nxl_lock_held(a->lock);
    answer->after = nxl_now_ns();
    answer->act = a->order.act;
    answer->result = result;
    answer->deadline = nxl_lock_deadline(a->lock);
    answer->fence = nxl_lock_fence(a->lock);
    answer->lost_at = a->lost_at;
    answer->loss = a->loss;
    snprintf(answer->token, sizeof(answer->token), "%s",
        holder               ? seen.value
        : result == NXL_FREE ? ""
                             : nxl_lock_token(a->lock));
    if (nxl_client_server_facts(a->client, 0, &facts) == NXL_OK) {
        answer->in_line = facts.in_line;
        snprintf(answer->waiting, sizeof(answer->waiting), "%.*s",
            (int)sizeof(answer->waiting) - 1, facts.waiting);
    }
    answer->text[0] = '\0';
    if (result != NXL_OK)
        snprintf(answer->text, sizeof(answer->text), "%s",
            failure_words(nxl_lock_errmsg(a->lock), result));
    a->busy = false;
    if (send(a->plan->line, answer, sizeof(*answer), MSG_NOSIGNAL) < 0)
        _exit(EXIT_INTERNAL);
}

/* Sends what was started, and loses the answer. */
static int lose_answer(struct actor *a, int started)
{
    struct pollfd fds[FDS_MAX];
    int timeout_ms;

    if (started == NXL_PENDING) {
        nxl_client_pollfds(a->client, fds, FDS_MAX, &timeout_ms);
        a->answer.lost = cut_connections(true);
    }
    return started;
}

static int begin_order(struct actor *a)
{
    const struct drill_order *order = &a->order;
    nxl_lock *lock = a->lock;
    nxl_holder holder;

    switch (order->act) {
    case ACT_ACQUIRE:
        return nxl_lock_acquire_start(lock, order->wait_ms);
    case ACT_ACQUIRE_CUT:
        return lose_answer(a, nxl_lock_acquire_start(lock, order->wait_ms));
    case ACT_EXTEND:
        return nxl_lock_extend_start(lock, 0);
    case ACT_RELEASE:
        return nxl_lock_release_start(lock);
    case ACT_ADOPT:
        return nxl_lock_adopt_start(lock, order->token);
    case ACT_INSPECT:
        return nxl_lock_inspect_start(lock);
    case ACT_BREAK:
        holder_make(&holder, slice_of(order->token), 0);
        return nxl_lock_break_start(lock, &holder);
    case ACT_CUT:
        cut_connections(false);
        return NXL_OK;
    case ACT_CUT_OFF:
        cut_off();
        return NXL_OK;
    default:
        return NXL_OK;
    }
}

/* Ends the process, when the drill has closed the line. */
_Noreturn static void end_actor(struct actor *a)
{
    nxl_lock_free(a->lock);
    nxl_client_free(a->client);
    _exit(0);
}

/* The answer comes when the client has been freed. */
_Noreturn static void free_client(struct actor *a)
{
    nxl_lock_free(a->lock);
    nxl_client_free(a->client);
    a->answer.act = ACT_FREE;
    a->answer.result = NXL_OK;
    a->answer.held_after = false;
    a->answer.ended = a->answer.after = nxl_now_ns();
    (void)send(a->plan->line, &a->answer, sizeof(a->answer), MSG_NOSIGNAL);
    _exit(0);
}

static void take_order(struct actor *a)
{
    ssize_t got =
        recv(a->plan->line, &a->order, sizeof(a->order), MSG_DONTWAIT);

    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got != (ssize_t)sizeof(a->order))
        end_actor(a);
    a->busy = true;
    a->answer.lost = 0;
    a->answer.before = nxl_now_ns();
    a->answer.held_before = nxl_lock_held(a->lock);
    if (a->order.act == ACT_FREE)
        free_client(a);
    int result = begin_order(a);
    if (result != NXL_PENDING)
        send_answer(a, result);
}

static void take_events(struct actor *a)
{
    nxl_event event;

    while (nxl_client_next_event(a->client, &event)) {
        if (event.operation != NXL_OP_HOLD) {
            send_answer(a, event.result);
            continue;
        }
        a->lost_at = nxl_now_ns();
        a->loss = nxl_lock_loss(a->lock, NULL, 0);
    }
}

static void actor_turn(struct actor *a)
{
    struct pollfd fds[FDS_MAX];
    int timeout_ms = -1;

    /* The end of the drill is seen even while an order is carried out. */
    fds[0] = (struct pollfd){a->plan->line, a->busy ? 0 : POLLIN, 0};
    size_t count =
        nxl_client_pollfds(a->client, fds + 1, FDS_MAX - 1, &timeout_ms);
    if (count > FDS_MAX - 1)
        count = FDS_MAX - 1;
    (void)poll(fds, (nfds_t)(count + 1), timeout_ms);
    (void)nxl_client_process(a->client);
    take_events(a);
    if (!a->busy && fds[0].revents != 0)
        take_order(a);
    else if (fds[0].revents & POLLHUP)
        end_actor(a);
}

static bool make_lock(struct actor *a)
{
    const struct actor_plan *plan = a->plan;
    nxl_client_options client_options = NXL_CLIENT_OPTIONS_INIT;
    nxl_lock_options options = NXL_LOCK_OPTIONS_INIT;

    client_options.timeout_ms = plan->args->timeout_ms;
    client_options.max_ttl_ms = plan->args->max_ttl_ms;
    options.ttl_ms = plan->ttl_ms;
    options.label = "nxlock-drill";
    options.fence = 1;
    options.renew = plan->renew;
    return connect_client(&a->client, plan->args, &client_options) == 0 &&
           nxl_lock_new(&a->lock, a->client, plan->name, &options) == NXL_OK;
}

_Noreturn void actor_play(const struct actor_plan *plan)
{
    struct actor_plan mine = *plan;
    struct actor actor = {.plan = &mine};
    const int kept[] = {LINE_FD};

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != plan->parent || dup2(plan->line, LINE_FD) != LINE_FD)
        _exit(EXIT_INTERNAL);
    mine.line = LINE_FD;
    descriptors_close_others(kept, 1);
    if (!make_lock(&actor))
        _exit(EXIT_INTERNAL);
    for (;;)
        actor_turn(&actor);
}
