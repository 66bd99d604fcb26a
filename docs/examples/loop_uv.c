/* SPDX-License-Identifier: MIT */
/*
 * loop_uv NAME [TTL_MS]: does what loop_poll.c does, in a loop of libuv. For
 * the loop the client is one descriptor. Timeouts and renewals make it readable
 * too, so they need no timer.
 *
 * Invariant: the timer that does the work runs only while the lock NAME is
 * held. On SIGTERM the lock is released.
 */
#include <nxlock.h>
#include <stdio.h>
#include <stdlib.h>
#include <uv.h>

enum { TTL_MS = 10000, STEP_MS = 200 };

static struct program {
    uv_loop_t *loop;
    uv_poll_t readable;
    uv_timer_t step;
    uv_signal_t term, interrupt;
    nxl_client *client;
    nxl_lock *lock;
    int code;
} program;

static void leave(int code)
{
    program.code = code;
    uv_stop(program.loop);
}

static void work(uv_timer_t *timer)
{
    (void)timer;
    /* libuv runs timers before descriptors: after a long stop of the process
     * this one runs before the loss is reported, so it has to check. */
    if (nxl_lock_held(program.lock))
        printf("working\n");
}

static void get_in_line(void)
{
    if (nxl_lock_acquire_start(program.lock, NXL_FOREVER) == NXL_PENDING)
        return;
    fprintf(stderr, "%s\n", nxl_lock_errmsg(program.lock));
    leave(1);
}

static void acquired(int result)
{
    switch (result) {
    case NXL_OK:
        printf("held\n");
        uv_timer_start(&program.step, work, 0, STEP_MS);
        break;
    case NXL_LOST:    /* granted, but this loop came too late for it */
    case NXL_UNKNOWN: /* no answer; not held, and the library cleans up */
        get_in_line();
        break;
    default: /* denied, not a Redis server, ...: waiting does not help */
        fprintf(stderr, "%s\n", nxl_lock_errmsg(program.lock));
        leave(1);
    }
}

static void lost(void)
{
    char why[256];

    uv_timer_stop(&program.step);
    nxl_lock_loss(program.lock, why, sizeof(why));
    printf("lost: %s\n", why);
    get_in_line();
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
    nxl_event event;

    (void)poll, (void)status, (void)events;
    nxl_client_process(program.client); /* reads, renews, notices losses */
    while (nxl_client_next_event(program.client, &event)) {
        if (event.operation == NXL_OP_ACQUIRE)
            acquired(event.result);
        else if (event.operation == NXL_OP_HOLD)
            lost();
    }
}

static void on_signal(uv_signal_t *signal, int signo)
{
    (void)signal, (void)signo;
    leave(0);
}

static void watch(void)
{
    uv_poll_init(
        program.loop, &program.readable, nxl_client_fd(program.client));
    uv_poll_start(&program.readable, UV_READABLE, on_readable);
    uv_timer_init(program.loop, &program.step);
    uv_signal_init(program.loop, &program.term);
    uv_signal_start(&program.term, on_signal, SIGTERM);
    uv_signal_init(program.loop, &program.interrupt);
    uv_signal_start(&program.interrupt, on_signal, SIGINT);
}

int main(int argc, char **argv)
{
    const char *url = getenv("NXLOCK_URL");
    char why[256] = "out of memory";
    nxl_client_options client_options = NXL_CLIENT_OPTIONS_INIT;
    nxl_lock_options options = NXL_LOCK_OPTIONS_INIT;

    if (argc < 2) {
        fprintf(stderr, "usage: loop_uv NAME [TTL_MS]\n");
        return 64;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    program.loop = uv_default_loop();
    client_options.errbuf = why;
    client_options.errbuf_size = sizeof(why);
    options.ttl_ms = argc > 2 ? atol(argv[2]) : TTL_MS;
    options.renew = 1; /* done by nxl_client_process() */
    if (nxl_client_new(&program.client, url ? url : "redis://localhost:6379",
            &client_options) != NXL_OK ||
        nxl_lock_new(&program.lock, program.client, argv[1], &options) !=
            NXL_OK ||
        nxl_client_fd(program.client) < 0) {
        fprintf(stderr, "loop_uv: %s\n",
            program.client ? nxl_client_errmsg(program.client) : why);
        nxl_lock_free(program.lock);
        nxl_client_free(program.client);
        return 1;
    }
    watch();
    get_in_line();
    uv_run(program.loop, UV_RUN_DEFAULT);
    nxl_lock_free(program.lock);     /* releases it, or stops waiting */
    nxl_client_free(program.client); /* waits for that, half a second at most */
    return program.code;
}
