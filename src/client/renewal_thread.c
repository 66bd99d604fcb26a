/* SPDX-License-Identifier: MIT */
/* The thread that renews the locks of a blocking client. */
#include "client/renewal_thread.h"

#include <errno.h>
#include <signal.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/deadline.h"
#include "client/poller_thread.h"
#include "client/loop.h"
#include "client/sentinel_watch.h"

/* How long a new thread waits for its first renewal. */
#define START_GRACE (100 * NS_PER_MS)

static void sleep_until(struct nxl_client *client, uint64_t at)
{
    uint64_t times;
    int fd = client->alarm.fd;
    alarm_set(&client->alarm, at);
    pthread_mutex_unlock(&client->mutex);
    while (read(fd, &times, sizeof(times)) < 0 && errno == EINTR)
        ;
    pthread_mutex_lock(&client->mutex);
}

static bool thread_wanted(const struct nxl_client *client, uint64_t now)
{
    const struct alarm *alarm = &client->alarm;
    return !alarm->stop &&
           (client->renewed_locks > 0 || client->running_renewals > 0 ||
               now < alarm->needed_until);
}

/* When a renewal is due, or a question to the Sentinels. */
static uint64_t cleanup_next_at(const struct nxl_client *client)
{
    const struct sentinel_watch *watch = client->sentinel_watch;
    uint64_t renewal = timers_next(&client->renewals);
    return watch && client->renewed_locks > 0
               ? earlier(renewal, sentinel_watch_asks_at(watch, true))
               : renewal;
}

static uint64_t next_turn(const struct nxl_client *client)
{
    uint64_t due = cleanup_next_at(client);
    return client->renewed_locks > 0 ? due
                                     : earlier(due, client->alarm.needed_until);
}

static bool is_due(const struct nxl_client *client, uint64_t now)
{
    return cleanup_next_at(client) <= now;
}

static bool is_asking(const struct nxl_client *client, uint64_t now)
{
    const struct sentinel_watch *watch = client->sentinel_watch;
    return watch && sentinel_watch_is_asking(watch, now);
}

/* Is the poller thread until no renewal is due or under way, or another thread
 * takes over. */
static void poll_renewals(struct nxl_client *client)
{
    uint64_t now = clock_now();
    while (now != 0 && !client->alarm.stop &&
           (client->running_renewals > 0 || is_due(client, now) ||
               is_asking(client, now)))
        now = poller_thread_iterate(client, now);
    if (now != 0)
        poller_thread_hand_on(client);
}

/* Something is due that the poller thread has not done. Takes over if it does
 * not run. */
static void press_poller_thread(struct nxl_client *client, uint64_t now)
{
    unsigned iterations = client->iterations;
    loop_wake(client);
    sleep_until(client, deadline_after(now, POLLER_THREAD_GRACE));
    if (client->has_poller_thread && client->iterations == iterations &&
        !client->alarm.stop && poller_thread_take_over(client, NULL))
        poll_renewals(client);
}

static void *renewal_thread_main(void *arg)
{
    struct nxl_client *client = arg;
    pthread_mutex_lock(&client->mutex);
    uint64_t now = clock_now();
    while (thread_wanted(client, now)) {
        bool due = is_due(client, now);
        if (!due &&
            (client->has_poller_thread || client->running_renewals == 0)) {
            sleep_until(client, next_turn(client));
        } else if (client->has_poller_thread) {
            press_poller_thread(client, now);
        } else {
            poller_thread_become(client, NULL);
            poll_renewals(client);
        }
        now = clock_now();
    }
    client->alarm.running = false;
    pthread_mutex_unlock(&client->mutex);
    return NULL;
}

/* The thread may have ended by itself. Then joining it cannot block: the last
 * thing it does under the mutex is to clear `running`. */
static void join(struct alarm *alarm)
{
    if (alarm->joinable)
        pthread_join(alarm->thread, NULL);
    alarm->joinable = false;
}

bool renewal_thread_start(struct nxl_client *client)
{
    struct alarm *alarm = &client->alarm;
    if (alarm->running)
        return true;
    errno = ECANCELED;
    if (alarm->stop) /* the client is being freed */
        return false;
    join(alarm);
    if (alarm->fd < 0)
        alarm->fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC);
    if (alarm->fd < 0)
        return false;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    alarm->needed_until = deadline_after(clock_now(), START_GRACE);
    alarm->running = true;
    alarm->armed = NEVER;
    int error =
        pthread_create(&alarm->thread, NULL, renewal_thread_main, client);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    alarm->joinable = alarm->running = !error;
    errno = error;
    return !error;
}

void renewal_thread_stop(struct nxl_client *client)
{
    struct alarm *alarm = &client->alarm;
    alarm->stop = true;
    if (alarm->running) {
        alarm_set(alarm, 0);
        loop_wake(client);
    }
    if (alarm->joinable) {
        alarm->joinable = false; /* no other thread may join it meanwhile */
        pthread_mutex_unlock(&client->mutex);
        pthread_join(alarm->thread, NULL);
        pthread_mutex_lock(&client->mutex);
    }
    if (alarm->fd >= 0)
        close(alarm->fd);
    alarm->fd = -1;
}
