/* SPDX-License-Identifier: MIT */
/*
 * One thread, one lock, as in proxy.c: the thread lets go of it only inside
 * poll(), and it alone closes descriptors.
 */
#include "support/aged_inner.h"

#include "support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>

enum { FDS = 2 + 2 * AGED_LINKS };

/* ------------------------------------------------------------ the thread */

static void wake(struct aged *a)
{
    if (write(a->wake[1], "", 1) != 1 && errno != EAGAIN)
        abort();
}

static void fill(const struct aged *a, struct pollfd *fds)
{
    fds[0] = (struct pollfd){a->wake[0], POLLIN, 0};
    fds[1] = (struct pollfd){a->listener, POLLIN, 0};
    for (size_t i = 0; i < AGED_LINKS; i++)
        for (int side = 0; side < 2; side++) {
            const struct aged_link *l = &a->links[i];
            bool ask = l->used && !l->closed[side];
            short more = ask && l->out[side].len > 0 ? POLLOUT : 0;
            fds[2 + 2 * i + (size_t)side] = (struct pollfd){
                ask ? l->fd[side] : -1, (short)(POLLIN | more), 0};
        }
}

static void serve(struct aged *a, const struct pollfd *fds)
{
    for (size_t i = 0; i < AGED_LINKS; i++) {
        struct aged_link *l = &a->links[i];
        const struct pollfd *own = &fds[2 + 2 * i];
        if (!l->used)
            continue;
        for (int side = 0; side < 2; side++)
            if (own[side].fd >= 0 && (own[side].revents & ~POLLOUT) != 0)
                aged_link_take_in(l, (enum aged_side)side);
        if (own[AGED_CLIENT].revents != 0 || own[AGED_SERVER].revents != 0)
            aged_link_work(a, l);
    }
}

static void end_turn(struct aged *a)
{
    for (size_t i = 0; i < AGED_LINKS; i++)
        if (a->links[i].used && (a->links[i].cut || a->cutting || a->stopping))
            aged_link_close(&a->links[i]);
    a->cutting = false;
    a->turns++;
    pthread_cond_broadcast(&a->changed);
}

static void *run(void *data)
{
    struct aged *a = data;
    struct pollfd fds[FDS];
    char drain[64];

    pthread_mutex_lock(&a->lock);
    for (end_turn(a); !a->stopping; end_turn(a)) {
        fill(a, fds);
        pthread_mutex_unlock(&a->lock);
        if (poll(fds, FDS, -1) < 0 && errno != EINTR)
            abort();
        pthread_mutex_lock(&a->lock);
        if (fds[0].revents != 0 && read(a->wake[0], drain, sizeof(drain)) < 0 &&
            errno != EAGAIN)
            abort();
        serve(a, fds);
        int fd = fds[1].revents != 0
                     ? accept4(a->listener, NULL, NULL, SOCK_CLOEXEC)
                     : -1;
        if (fd >= 0)
            aged_link_open(a, fd);
    }
    pthread_mutex_unlock(&a->lock);
    return NULL;
}

/* ---------------------------------------------------------- for the test */

static void listen_at(struct aged *a)
{
    local_dir_make(a->dir);
    local_path(a->path, a->dir, "aged.sock");
    a->listener = local_listen_unix(a->path);
    if (a->listener < 0)
        abort();
    fcntl(a->listener, F_SETFL, O_NONBLOCK);
    snprintf(a->url, sizeof(a->url), "unix://%s", a->path);
}

struct aged *aged_start(enum aged_profile profile, const struct redis *behind)
{
    struct aged *a = calloc(1, sizeof(*a));
    sigset_t all, before;

    if (!a || pipe2(a->wake, O_CLOEXEC | O_NONBLOCK) != 0)
        abort();
    memcpy(a->behind, behind->path, sizeof(a->behind));
    a->book.age = &aged_ages[profile];
    listen_at(a);
    pthread_mutex_init(&a->lock, NULL);
    pthread_cond_init(&a->changed, NULL);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    if (pthread_create(&a->thread, NULL, run, a) != 0)
        abort();
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return a;
}

void aged_stop(struct aged *a)
{
    if (!a)
        return;
    pthread_mutex_lock(&a->lock);
    a->stopping = true;
    wake(a);
    pthread_mutex_unlock(&a->lock);
    pthread_join(a->thread, NULL);
    close(a->wake[0]);
    close(a->wake[1]);
    close(a->listener);
    local_dir_remove(a->dir);
    aged_scripts_free(&a->book);
    bytes_free(&a->log);
    bytes_free(&a->shown);
    pthread_cond_destroy(&a->changed);
    pthread_mutex_destroy(&a->lock);
    free(a);
}

const char *aged_url(const struct aged *a)
{
    return a->url;
}

const char *aged_path(const struct aged *a)
{
    return a->path;
}

/* Lets the thread carry out what was ordered; the lock is held. */
static void carry_out(struct aged *a)
{
    uint64_t turn = a->turns + 1;

    wake(a);
    while (a->turns < turn)
        pthread_cond_wait(&a->changed, &a->lock);
}

void aged_profile_now(struct aged *a, enum aged_profile profile, bool cut)
{
    pthread_mutex_lock(&a->lock);
    a->book.age = &aged_ages[profile];
    aged_scripts_free(&a->book);
    if (cut) {
        a->cutting = true;
        carry_out(a);
    }
    pthread_mutex_unlock(&a->lock);
}

void aged_refuse(struct aged *a, const char *commands, const char *reply)
{
    pthread_mutex_lock(&a->lock);
    a->book.refused = commands;
    a->book.refusal = reply;
    pthread_mutex_unlock(&a->lock);
}

/* The word that begins at *at, without its blank, and *at after it. */
static struct resp_arg next_word(const char **at)
{
    struct resp_arg word = {*at, strcspn(*at, " \n")};

    *at += word.len + ((*at)[word.len] == ' ');
    return word;
}

/* line: "0 SET k v\n". */
static bool begins_so(const char *line, const char *words)
{
    next_word(&line);
    for (bool first = true; *words != '\0'; first = false) {
        struct resp_arg asked = next_word(&words), is = next_word(&line);
        if (is.len == 0)
            return false;
        if (asked.len == 1 && *asked.data == '*')
            continue;
        if (asked.len != is.len ||
            (first ? strncasecmp(asked.data, is.data, is.len)
                   : strncmp(asked.data, is.data, is.len)) != 0)
            return false;
    }
    return true;
}

size_t aged_count(struct aged *a, const char *words)
{
    size_t found = 0;

    pthread_mutex_lock(&a->lock);
    for (const char *at = a->log.len > 0 ? a->log.data : ""; *at != '\0';
         at = strchr(at, '\n') + 1)
        found += begins_so(at, words);
    pthread_mutex_unlock(&a->lock);
    return found;
}

const char *aged_log(struct aged *a)
{
    pthread_mutex_lock(&a->lock);
    a->shown.len = 0;
    bytes_add(&a->shown, a->log.data, a->log.len);
    pthread_mutex_unlock(&a->lock);
    return a->shown.data;
}

void aged_forget(struct aged *a)
{
    pthread_mutex_lock(&a->lock);
    bytes_free(&a->log);
    pthread_mutex_unlock(&a->lock);
}

bool aged_idle(struct aged *a)
{
    bool idle = true;

    pthread_mutex_lock(&a->lock);
    for (const struct aged_link *l = a->links; l < a->links + AGED_LINKS; l++)
        idle = idle && (!l->used || (!l->now && l->in[AGED_CLIENT].len == 0 &&
                                        l->out[AGED_CLIENT].len == 0));
    pthread_mutex_unlock(&a->lock);
    return idle;
}
