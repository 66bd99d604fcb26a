/* SPDX-License-Identifier: MIT */
/*
 * The keeper sleeps on a timer that counts suspend, and reads for the client
 * only while a renewal is under way and no caller does: so a program that
 * blocks in calls pays nothing for it. Keeps: while a lock is kept alive the
 * keeper is there, and wakes in time for what is due; it takes no signal, and
 * ends by itself when nothing has been kept for a while.
 */
#include "api/keeper.h"

#include <errno.h>
#include <signal.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "api/engine.h"
#include "api/reading.h"
#include "base/clock.h"
#include "base/deadline.h"

/* So a program that locks again and again does not start one each time. */
#define LINGER (100 * NS_PER_MS)
/* Whoever reads does what is due; if not by then, he is told. */
#define OTHERS_TURN (20 * NS_PER_MS)

void keeper_init(struct keeper *keeper)
{
    *keeper = (struct keeper){.fd = -1};
}

static void arm(struct keeper *keeper, uint64_t at)
{
    struct itimerspec when = {0};
    keeper->armed = at;
    if (at != NEVER) {
        at += at == 0; /* 0 would stop it */
        when.it_value.tv_sec = (time_t)(at / NS_PER_S);
        when.it_value.tv_nsec = (long)(at % NS_PER_S);
    }
    timerfd_settime(keeper->fd, TFD_TIMER_ABSTIME, &when, NULL);
}

void keeper_expect(struct nxl_client *client, uint64_t at)
{
    if (client->keeper.running && at < client->keeper.armed)
        arm(&client->keeper, at);
}

void keeper_unneeded(struct nxl_client *client, uint64_t now)
{
    if (!client->keeper.running)
        return;
    client->keeper.needed_until = deadline_after(now, LINGER);
    keeper_expect(client, client->keeper.needed_until);
}

void keeper_lead(struct nxl_client *client)
{
    if (client->keeper.running && client->renewing > 0)
        keeper_expect(client, 0);
}

/* ------------------------------------------------------------- the thread */

static void sleep_until(struct nxl_client *client, uint64_t at)
{
    uint64_t times;
    int fd = client->keeper.fd;
    arm(&client->keeper, at);
    pthread_mutex_unlock(&client->mutex);
    while (read(fd, &times, sizeof times) < 0 && errno == EINTR)
        ;
    pthread_mutex_lock(&client->mutex);
}

static bool wanted(const struct nxl_client *client, uint64_t now)
{
    const struct keeper *keeper = &client->keeper;
    return !keeper->stop && (client->kept > 0 || client->renewing > 0 ||
                                now < keeper->needed_until);
}

static uint64_t next_turn(const struct nxl_client *client)
{
    uint64_t due = timers_next(&client->holds);
    return client->kept > 0 ? due : earlier(due, client->keeper.needed_until);
}

static void *keep(void *arg)
{
    struct nxl_client *client = arg;
    pthread_mutex_lock(&client->mutex);
    uint64_t now = clock_now();
    while (wanted(client, now)) {
        bool due = timers_next(&client->holds) <= now;
        if (!due && (client->led || client->renewing == 0)) {
            sleep_until(client, next_turn(client));
        } else if (client->led) {
            engine_wake(client);
            sleep_until(client, deadline_after(now, OTHERS_TURN));
        } else {
            reading_take(client);
            while (!client->keeper.stop &&
                   (client->renewing > 0 ||
                       timers_next(&client->holds) <= now))
                now = reading_turn(client, now);
            reading_hand_on(client);
        }
        now = clock_now();
    }
    client->keeper.running = false;
    pthread_mutex_unlock(&client->mutex);
    return NULL;
}

/* One that has ended by itself needs no more than to be joined: it holds the
 * mutex to say so, and does nothing after that. */
static void join(struct keeper *keeper)
{
    if (keeper->joinable)
        pthread_join(keeper->thread, NULL);
    keeper->joinable = false;
}

bool keeper_start(struct nxl_client *client)
{
    struct keeper *keeper = &client->keeper;
    if (keeper->running)
        return true;
    errno = ECANCELED;
    if (keeper->stop) /* the client is being freed */
        return false;
    join(keeper);
    if (keeper->fd < 0)
        keeper->fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC);
    if (keeper->fd < 0)
        return false;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    keeper->needed_until = deadline_after(clock_now(), LINGER);
    keeper->running = true;
    keeper->armed = NEVER;
    int error = pthread_create(&keeper->thread, NULL, keep, client);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    keeper->joinable = keeper->running = !error;
    errno = error;
    return !error;
}

void keeper_stop(struct nxl_client *client)
{
    struct keeper *keeper = &client->keeper;
    keeper->stop = true;
    if (keeper->running) {
        arm(keeper, 0);
        engine_wake(client);
    }
    if (keeper->joinable) {
        keeper->joinable = false; /* nobody else is to join it meanwhile */
        pthread_mutex_unlock(&client->mutex);
        pthread_join(keeper->thread, NULL);
        pthread_mutex_lock(&client->mutex);
    }
    if (keeper->fd >= 0)
        close(keeper->fd);
    keeper->fd = -1;
}
