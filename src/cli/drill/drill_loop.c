/* SPDX-License-Identifier: MIT */
/*
 * Drives the clients of a drill in one loop.
 *
 * A connection is cut from within, by shutdown() of the library's sockets. So
 * the cut looks the same by TCP, TLS and unix socket, at any number of servers,
 * and needs neither rights nor a proxy that is trusted with the password.
 *
 * Invariant: only what is certain is reported as a broken promise, however slow
 * the server or this process is. Whether two clients hold the lock is asked of
 * both in the same thread, when one of them was granted it.
 */
#include "cli/drill/drill_loop.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cli/servers/connect.h"
#include "cli/report/report.h"

#define WORDS_ROOM 768
/* How much longer the lock is waited for than two leases last. */
#define MORE_MS 10000

/* ----------------------------------------------------------------- findings */

void drill_found(struct drill *d, enum finding finding, const char *format, ...)
{
    static const struct {
        enum level level;
        const char *begins;
    } kinds[] = {
        [SHOWN] = {LEVEL_OK, ""},
        [UNSHOWN] = {LEVEL_WARN, "not shown: "},
        [BROKEN] = {LEVEL_FAIL, "a promise was broken: "},
        [FAILED] = {LEVEL_FAIL, "cannot "},
    };
    char words[WORDS_ROOM];
    va_list arguments;

    if (d->over)
        return;
    va_start(arguments, format);
    vsnprintf(words, sizeof(words), format, arguments);
    va_end(arguments);
    diagnostic(&d->diagnostics, kinds[finding].level, d->check, NULL, "%s%s",
        kinds[finding].begins, words);
    d->found[finding] = true;
    d->over = true;
}

void drill_failed(struct drill *d, const char *what, const struct contender *c)
{
    const char *why = failure_words(nxl_lock_errmsg(c->lock), c->result);
    bool slow = c->result == NXL_LOST || c->result == NXL_UNKNOWN ||
                c->result == NXL_BUSY ||
                (c->result == NXL_E_UNREACHABLE && d->grants > 0);

    if (d->over)
        return;
    if (slow) {
        drill_found(d, UNSHOWN, "cannot %s: %s", what, why);
        return;
    }
    drill_found(d, FAILED, "%s: %s", what, why);
    connect_advise(d->args, c->client, c->result);
    d->code = exit_code_for(c->result, EXIT_UNAVAILABLE);
}

/* The lock was granted to c: no other client may hold it. One that has crashed
 * counts as a holder until its deadline. */
static void note_grant(struct drill *d, const struct contender *c)
{
    d->grants++;
    for (size_t i = 0; i < CONTENDERS; i++) {
        const struct contender *other = &d->contenders[i];
        if (other != c && nxl_lock_held(other->lock) && nxl_lock_held(c->lock))
            drill_found(d, BROKEN,
                "two holders at once: a client was granted the lock, and "
                "another client's lease was not over (guarantees.md, G1, G3)");
    }
}

/* ------------------------------------------------------------------ clients */

static int open_contender(struct drill *d, struct contender *c)
{
    nxl_client_options client_options = NXL_CLIENT_OPTIONS_INIT;
    nxl_lock_options options = NXL_LOCK_OPTIONS_INIT;

    client_options.timeout_ms = d->args->timeout_ms;
    client_options.max_ttl_ms = d->args->max_ttl_ms;
    options.ttl_ms = d->args->ttl_ms;
    options.label = "nxlock-drill";
    options.renew = 1;
    int code = connect_client(&c->client, d->args, &client_options);
    if (code != 0)
        return code;
    int rc = nxl_lock_new(&c->lock, c->client, d->name, &options);
    c->fd = rc == NXL_OK ? nxl_client_fd(c->client) : -1;
    if (c->fd >= 0)
        return 0;
    say("a drill is not possible: %s", nxl_client_errmsg(c->client));
    return rc == NXL_E_INVALID ? EXIT_USAGE : EXIT_INTERNAL;
}

int drill_open(struct drill *d)
{
    int code = 0;

    for (size_t i = 0; i < CONTENDERS && code == 0; i++)
        code = open_contender(d, &d->contenders[i]);
    return code;
}

void drill_close(struct drill *d)
{
    for (size_t i = 0; i < CONTENDERS; i++) {
        nxl_lock_free(d->contenders[i].lock);
        nxl_client_free(d->contenders[i].client);
    }
    memset(d->contenders, 0, sizeof(d->contenders));
}

/* Without descriptors above standard error, no connection can be made. */
static void process_cut_off(const struct contender *c)
{
    struct rlimit limit;

    getrlimit(RLIMIT_NOFILE, &limit);
    struct rlimit none = {STDERR_FILENO + 1, limit.rlim_max};
    setrlimit(RLIMIT_NOFILE, &none);
    (void)nxl_client_process(c->client);
    setrlimit(RLIMIT_NOFILE, &limit);
}

static void process(const struct contender *c)
{
    if (c->cut_off)
        process_cut_off(c);
    else if (!c->crashed)
        (void)nxl_client_process(c->client);
}

static void take_events(struct drill *d, struct contender *c)
{
    nxl_event event;

    while (nxl_client_next_event(c->client, &event)) {
        if (event.operation == NXL_OP_HOLD) {
            c->loss = nxl_lock_loss(c->lock, NULL, 0);
            continue;
        }
        c->busy = false;
        c->result = event.result;
        c->ended = nxl_now_ns();
        if (event.operation == NXL_OP_ACQUIRE && event.result == NXL_OK)
            note_grant(d, c);
    }
}

bool drill_turn(struct drill *d, uint64_t until)
{
    struct pollfd fds[CONTENDERS + 1];
    uint64_t now = nxl_now_ns();
    int timeout_ms = until == NEVER ? -1
                     : until > now  ? (int)ms_between(now, until) + 1
                                    : 0;

    for (size_t i = 0; i < CONTENDERS; i++) {
        const struct contender *c = &d->contenders[i];
        fds[i] = (struct pollfd){c->crashed ? -1 : c->fd, POLLIN, 0};
    }
    fds[CONTENDERS] = (struct pollfd){d->session.signals, POLLIN, 0};
    (void)poll(fds, CONTENDERS + 1, timeout_ms);
    session_cancel_on_signal(&d->session);
    if (d->session.caught != 0)
        d->over = true;
    for (size_t i = 0; i < CONTENDERS; i++) {
        process(&d->contenders[i]);
        take_events(d, &d->contenders[i]);
    }
    return !d->over;
}

/* --------------------------------------------------------------- operations */

void drill_begin(struct contender *c, int started)
{
    c->busy = started == NXL_PENDING;
    c->result = started;
    process(c);
}

bool drill_finish(struct drill *d, const struct contender *c)
{
    while (!d->over && c->busy)
        drill_turn(d, NEVER);
    return !d->over;
}

bool drill_granted(struct drill *d, const struct contender *c)
{
    if (drill_finish(d, c) && c->result != NXL_OK)
        drill_failed(d, "acquire", c);
    return !d->over;
}

void drill_wait(struct drill *d, struct contender *c)
{
    drill_begin(
        c, nxl_lock_acquire_start(c->lock, 2 * d->args->ttl_ms + MORE_MS));
}

/* Sockets that were inherited from the caller are not closed on exec. */
bool drill_cut(struct drill *d)
{
    DIR *dir = opendir("/proc/self/fd");

    if (!dir) {
        drill_found(d, UNSHOWN, "cannot list own connections, in /proc: %s",
            strerror(errno));
        return false;
    }
    for (struct dirent *entry; (entry = readdir(dir));) {
        int fd = (int)strtol(entry->d_name, NULL, 10);
        if (fcntl(fd, F_GETFD) == FD_CLOEXEC)
            (void)shutdown(fd, SHUT_RDWR);
    }
    closedir(dir);
    return true;
}
