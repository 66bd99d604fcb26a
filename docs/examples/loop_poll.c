/* SPDX-License-Identifier: MIT */
/*
 * loop_poll NAME [TTL_MS]: leader election with an event loop of its own. Of
 * all the processes that run this, on all machines, one works and the others
 * wait. It needs poll() only.
 *
 * Invariant: it works only while it holds the lock NAME. On SIGTERM it releases
 * the lock, so that the next process does not wait for the end of the lease.
 */
#include <nxlock.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <unistd.h>

enum { TTL_MS = 10000, STEP_MS = 200, FDS = 8 };
enum { RUNNING = -1 }; /* else the exit code */

struct program {
    nxl_client *client;
    nxl_lock *lock;
    uint64_t step_at; /* when to work next, on the library's clock */
    int code;
};

/* A short step that checks the lock right before it does something: the process
 * may have been stopped for any time between two turns of the loop. */
static void work(struct program *program)
{
    if (nxl_lock_held(program->lock))
        printf("working\n");
    program->step_at = nxl_now_ns() + STEP_MS * UINT64_C(1000000);
}

static void get_in_line(struct program *program)
{
    if (nxl_lock_acquire_start(program->lock, NXL_FOREVER) == NXL_PENDING)
        return;
    fprintf(stderr, "%s\n", nxl_lock_errmsg(program->lock));
    program->code = 1;
}

static void acquired(struct program *program, int result)
{
    switch (result) {
    case NXL_OK:
        printf("held\n");
        program->step_at = nxl_now_ns();
        break;
    case NXL_LOST:    /* granted, but this loop came too late for it */
    case NXL_UNKNOWN: /* no answer; not held, and the library cleans up */
        get_in_line(program);
        break;
    default: /* denied, not a Redis server, ...: waiting does not help */
        fprintf(stderr, "%s\n", nxl_lock_errmsg(program->lock));
        program->code = 1;
    }
}

static void lost(struct program *program)
{
    char why[256];

    /* Stop here whatever works under the lock outside this loop. */
    nxl_lock_loss(program->lock, why, sizeof(why));
    printf("lost: %s\n", why);
    get_in_line(program);
}

/* How long poll() may wait; timeout_ms is what the library says. */
static int patience(const struct program *program, int timeout_ms)
{
    uint64_t now = nxl_now_ns();
    int step_ms = 0;

    if (!nxl_lock_held(program->lock))
        return timeout_ms;
    if (program->step_at > now)
        step_ms = (int)((program->step_at - now) / 1000000 + 1);
    return timeout_ms < 0 || step_ms < timeout_ms ? step_ms : timeout_ms;
}

/* One turn of the loop. */
static void turn(struct program *program, int signals)
{
    struct pollfd fds[1 + FDS] = {{.fd = signals, .events = POLLIN}};
    nxl_event event;
    int timeout_ms;

    /* Sends queued requests, and says what to wait for; new in each turn. */
    size_t count =
        nxl_client_pollfds(program->client, fds + 1, FDS, &timeout_ms);
    if (count > FDS) {
        fprintf(stderr, "FDS has to be %zu\n", count);
        program->code = 1;
        return;
    }
    poll(fds, 1 + count, patience(program, timeout_ms));
    nxl_client_process(program->client); /* reads, renews, notices losses */
    while (nxl_client_next_event(program->client, &event)) {
        if (event.operation == NXL_OP_ACQUIRE)
            acquired(program, event.result);
        else if (event.operation == NXL_OP_HOLD)
            lost(program);
    }
    if (fds[0].revents != 0)
        program->code = 0; /* SIGTERM, SIGINT */
    else if (nxl_lock_held(program->lock) && nxl_now_ns() >= program->step_at)
        work(program);
}

int main(int argc, char **argv)
{
    const char *url = getenv("NXLOCK_URL");
    char why[256] = "out of memory";
    nxl_client_options client_options = NXL_CLIENT_OPTIONS_INIT;
    nxl_lock_options options = NXL_LOCK_OPTIONS_INIT;
    struct program program = {.code = RUNNING};
    sigset_t mask;

    if (argc < 2) {
        fprintf(stderr, "usage: loop_poll NAME [TTL_MS]\n");
        return 64;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    sigemptyset(&mask);
    sigaddset(&mask, SIGTERM);
    sigaddset(&mask, SIGINT);
    sigprocmask(SIG_BLOCK, &mask, NULL); /* they come as reads of signals */
    int signals = signalfd(-1, &mask, SFD_CLOEXEC);
    client_options.errbuf = why;
    client_options.errbuf_size = sizeof(why);
    options.ttl_ms = argc > 2 ? atol(argv[2]) : TTL_MS;
    options.renew = 1; /* done by nxl_client_pollfds() and _process() */
    if (nxl_client_new(&program.client, url ? url : "redis://localhost:6379",
            &client_options) != NXL_OK ||
        nxl_lock_new(&program.lock, program.client, argv[1], &options) !=
            NXL_OK) {
        fprintf(stderr, "loop_poll: %s\n",
            program.client ? nxl_client_errmsg(program.client) : why);
        nxl_client_free(program.client);
        return 1;
    }
    get_in_line(&program);
    while (program.code == RUNNING)
        turn(&program, signals);
    nxl_lock_free(program.lock);     /* releases it, or stops waiting */
    nxl_client_free(program.client); /* waits for that, half a second at most */
    close(signals);
    return program.code;
}
