/* SPDX-License-Identifier: MIT */
/* The thread that renews the locks of a blocking client. */
#include "client/renewal_thread.h"

#include <errno.h>
#include <signal.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/deadline.h"
#include "client/leader.h"
#include "client/turn.h"
#include "client/watch.h"

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
static uint64_t due_next(const struct nxl_client *client)
{
    const struct watch *watch = client->watch;
    uint64_t renewal = timers_next(&client->renewals);
    return watch && client->renewed_locks > 0
               ? earlier(renewal, watch_asks_at(watch, true))
               : renewal;
}

static uint64_t next_turn(const struct nxl_client *client)
{
    uint64_t due = due_next(client);
    return client->renewed_locks > 0 ? due
                                     : earlier(due, client->alarm.needed_until);
}

static bool is_due(const struct nxl_client *client, uint64_t now)
{
    return due_next(client) <= now;
}

static bool is_asking(const struct nxl_client *client, uint64_t now)
{
    const struct watch *watch = client->watch;
    return watch && watch_is_asking(watch, now);
}

/* Leads until no renewal is due or under way, or another thread takes over. */
static void lead(struct nxl_client *client)
{
    uint64_t now = clock_now();
    while (now != 0 && !client->alarm.stop &&
           (client->running_renewals > 0 || is_due(client, now) ||
               is_asking(client, now)))
        now = leader_turn(client, now);
    if (now != 0)
        leader_hand_on(client);
}

/* Something is due that the leader has not done. Takes over if the leader does
 * not run. */
static void press_leader(struct nxl_client *client, uint64_t now)
{
    unsigned turns = client->turns;
    turn_wake(client);
    sleep_until(client, deadline_after(now, LEADER_GRACE));
    if (client->led && client->turns == turns && !client->alarm.stop &&
        leader_take_over(client, NULL))
        lead(client);
}

static void *renewal_thread_main(void *arg)
{
    struct nxl_client *client = arg;
    pthread_mutex_lock(&client->mutex);
    uint64_t now = clock_now();
    while (thread_wanted(client, now)) {
        bool due = is_due(client, now);
        if (!due && (client->led || client->running_renewals == 0)) {
            sleep_until(client, next_turn(client));
        } else if (client->led) {
            press_leader(client, now);
        } else {
            leader_take(client, NULL);
            lead(client);
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
        turn_wake(client);
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
