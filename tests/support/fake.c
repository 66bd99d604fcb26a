/* SPDX-License-Identifier: MIT */
/*
 * The threads of a fake: one accepts, one plays each connection. All shared
 * state is under one lock; one pipe, readable once the play is to end, is in
 * every poll. The threads take no signals and use no cmocka.
 */
#include "support/fake_inner.h"

#include "support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <strings.h>
#include <sys/socket.h>

enum { JOIN_MS = 30000, AWAIT_MS = 30000 };

struct pair *pair_find(struct pair *list, const char *name, size_t len)
{
    for (; list; list = list->next)
        if (strlen(list->name) == len && memcmp(list->name, name, len) == 0)
            return list;
    return NULL;
}

struct pair *pair_add(struct pair **list, const char *name, size_t len)
{
    struct pair *pair = calloc(1, sizeof(*pair));

    if (!pair || !(pair->name = strndup(name, len)))
        abort();
    pair->next = *list;
    *list = pair;
    return pair;
}

void pairs_free(struct pair *list)
{
    while (list) {
        struct pair *pair = list;
        list = pair->next;
        bytes_free(&pair->value);
        free(pair->name);
        free(pair);
    }
}

static struct timespec ends_in(int ms)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_sec += ms / 1000;
    t.tv_nsec += (ms % 1000) * 1000000L;
    if (t.tv_nsec >= 1000000000L) {
        t.tv_sec++;
        t.tv_nsec -= 1000000000L;
    }
    return t;
}

static void note(struct fake *f, const char *text, size_t number)
{
    if (f->problem.len == 0)
        bytes_addf(&f->problem, "connection %zu: %s", number, text);
}

void fake_refuse(struct fake *f)
{
    pthread_mutex_lock(&f->lock);
    if (f->listeners[0] >= 0) {
        /* Wakes the accepting thread, which may be in poll. */
        shutdown(f->listeners[0], SHUT_RDWR);
        close(f->listeners[0]);
        local_refuse_tcp(f->listeners[1], true);
        f->refused = f->listeners[1];
    }
    f->listeners[0] = f->listeners[1] = -1;
    pthread_mutex_unlock(&f->lock);
}

static void *link_run(void *data)
{
    struct link *link = data;

    play(link);
    pthread_mutex_lock(&link->fake->lock);
    close(link->fd);
    link->fd = -1;
    link->settled = true;
    pthread_cond_broadcast(&link->fake->changed);
    pthread_mutex_unlock(&link->fake->lock);
    return NULL;
}

/* The section for the connection that comes now, or NULL. */
static struct section *next_section(struct fake *f)
{
    struct section *section = f->sections;

    for (size_t i = 0; i < f->accepted && section; i++)
        if (!section->many)
            section = section->next;
    return section;
}

static void welcome(struct fake *f, int fd)
{
    local_no_delay(fd);
    pthread_mutex_lock(&f->lock);
    struct section *section = next_section(f);
    if (!section) {
        note(f, "it was not expected", f->accepted);
        f->accepted++;
        close(fd);
    } else {
        struct link *link = calloc(1, sizeof(*link));
        if (!link)
            abort();
        link->fake = f;
        link->fd = fd;
        link->section = section;
        link->number = f->accepted++;
        link->next = f->links;
        f->links = link;
        if (pthread_create(&link->thread, NULL, link_run, link) != 0)
            abort();
    }
    pthread_cond_broadcast(&f->changed);
    pthread_mutex_unlock(&f->lock);
}

/* Accepts what is there, one by one, in the order it came. */
static void *accept_run(void *data)
{
    struct fake *f = data;

    for (;;) {
        struct pollfd fds[3] = {{f->stop[0], POLLIN, 0}};
        pthread_mutex_lock(&f->lock);
        fds[1] = (struct pollfd){f->listeners[0], POLLIN, 0};
        fds[2] = (struct pollfd){f->listeners[1], POLLIN, 0};
        pthread_mutex_unlock(&f->lock);
        if (poll(fds, 3, -1) < 0 && errno != EINTR)
            abort();
        for (int i = 1; i <= 2; i++) {
            if (fds[i].revents == 0)
                continue;
            pthread_mutex_lock(&f->lock);
            int fd = f->listeners[i - 1] < 0 ? -1
                                             : accept4(f->listeners[i - 1],
                                                   NULL, NULL, SOCK_CLOEXEC);
            pthread_mutex_unlock(&f->lock);
            if (fd >= 0)
                welcome(f, fd);
        }
        if (fds[0].revents != 0 && fds[1].revents == 0 && fds[2].revents == 0)
            return NULL;
    }
}

static void start_thread(struct fake *f)
{
    sigset_t all, before;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    if (pthread_create(&f->thread, NULL, accept_run, f) != 0)
        abort();
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

struct fake *fake_start(const char *script)
{
    struct fake *f = calloc(1, sizeof(*f));
    pthread_condattr_t monotonic;

    if (!f)
        abort();
    f->sections = script_read(script, &f->problem);
    if (!f->sections) {
        print_error("%s\n", f->problem.data);
        bytes_free(&f->problem);
        free(f);
        fail();
        return NULL;
    }
    local_dir_make(f->dir);
    local_path(f->path, f->dir, "fake.sock");
    f->listeners[0] = local_listen_unix(f->path);
    f->listeners[1] = local_listen_tcp(&f->port);
    if (f->listeners[0] < 0 || f->listeners[1] < 0 ||
        pipe2(f->stop, O_CLOEXEC) != 0)
        abort();
    for (int i = 0; i < 2; i++)
        fcntl(f->listeners[i], F_SETFL, O_NONBLOCK);
    snprintf(f->url, sizeof(f->url), "unix://%s", f->path);
    snprintf(f->tcp_url, sizeof(f->tcp_url), "redis://127.0.0.1:%u",
        (unsigned)f->port);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&f->lock, NULL);
    pthread_cond_init(&f->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    start_thread(f);
    return f;
}

const char *fake_url(const struct fake *f)
{
    return f->url;
}

const char *fake_tcp_url(const struct fake *f)
{
    return f->tcp_url;
}

const char *fake_path(const struct fake *f)
{
    return f->path;
}

void fake_signal(struct fake *f, const char *name)
{
    pthread_mutex_lock(&f->lock);
    if (!pair_find(f->signals, name, strlen(name)))
        pair_add(&f->signals, name, strlen(name));
    pthread_cond_broadcast(&f->changed);
    pthread_mutex_unlock(&f->lock);
}

bool fake_await(struct fake *f, const char *name)
{
    struct timespec end = ends_in(AWAIT_MS);
    bool came = false;
    int rc = 0;

    pthread_mutex_lock(&f->lock);
    while (!came && rc == 0) {
        came = pair_find(f->signals, name, strlen(name)) != NULL;
        if (!came && f->problem.len > 0)
            break; /* it will not come any more */
        if (!came)
            rc = pthread_cond_timedwait(&f->changed, &f->lock, &end);
    }
    pthread_mutex_unlock(&f->lock);
    return came;
}

/* Every section was begun, and every connection is where it may end. */
static bool all_settled(const struct fake *f)
{
    size_t sections = 0;

    for (const struct section *s = f->sections; s; s = s->next)
        sections += !s->many;
    if (f->accepted < sections)
        return false;
    for (const struct link *l = f->links; l; l = l->next)
        if (!l->settled)
            return false;
    return true;
}

static void check_made(struct fake *f)
{
    size_t number = 0;

    for (const struct section *s = f->sections; s; s = s->next)
        if (!s->many && number++ >= f->accepted)
            note(f, "it was never made", number - 1);
}

const char *fake_join(struct fake *f)
{
    return fake_join_within(f, JOIN_MS);
}

const char *fake_join_within(struct fake *f, int ms)
{
    struct timespec end = ends_in(ms);
    int rc = 0;

    if (f->joined)
        return f->problem.len > 0 ? f->problem.data : NULL;
    pthread_mutex_lock(&f->lock);
    while (!all_settled(f) && f->problem.len == 0 && rc == 0)
        rc = pthread_cond_timedwait(&f->changed, &f->lock, &end);
    f->stopping = true;
    for (struct link *l = f->links; l; l = l->next)
        if (!l->settled)
            shutdown(l->fd, SHUT_WR); /* it may be stuck in a SEND */
    pthread_cond_broadcast(&f->changed);
    pthread_mutex_unlock(&f->lock);
    if (write(f->stop[1], "", 1) != 1)
        abort();
    pthread_join(f->thread, NULL);
    for (struct link *l = f->links; l; l = l->next)
        pthread_join(l->thread, NULL);
    check_made(f);
    fake_refuse(f);
    f->joined = true;
    return f->problem.len > 0 ? f->problem.data : NULL;
}

void fake_free(struct fake *f)
{
    if (!f)
        return;
    /* Without waiting for what the test did not ask about. */
    pthread_mutex_lock(&f->lock);
    note(f, "freed", 0);
    pthread_mutex_unlock(&f->lock);
    fake_join(f);
    while (f->links) {
        struct link *link = f->links;
        f->links = link->next;
        bytes_free(&link->in);
        free(link);
    }
    close(f->stop[0]);
    close(f->stop[1]);
    close(f->refused);
    local_dir_remove(f->dir);
    script_free(f->sections);
    pairs_free(f->signals);
    pairs_free(f->taken);
    bytes_free(&f->problem);
    bytes_free(&f->log);
    bytes_free(&f->info);
    bytes_free(&f->shown);
    pthread_cond_destroy(&f->changed);
    pthread_mutex_destroy(&f->lock);
    free(f);
}

const char *fake_log(struct fake *f)
{
    pthread_mutex_lock(&f->lock);
    bytes_free(&f->shown);
    bytes_add(&f->shown, f->log.data, f->log.len);
    pthread_mutex_unlock(&f->lock);
    return f->shown.data;
}

size_t fake_count(struct fake *f, int connection, const char *word)
{
    size_t count = 0;

    for (const char *at = fake_log(f); *at != '\0';) {
        char *command;
        long number = strtol(at, &command, 10);
        size_t len = strlen(word);
        command++;
        if ((connection < 0 || number == connection) &&
            (len == 0 || (strncasecmp(command, word, len) == 0 &&
                             strchr(" \n", command[len]))))
            count++;
        at = strchr(command, '\n') + 1;
    }
    return count;
}

size_t fake_connections(struct fake *f)
{
    pthread_mutex_lock(&f->lock);
    size_t count = f->accepted;
    pthread_mutex_unlock(&f->lock);
    return count;
}

const char *fake_taken(struct fake *f, const char *name)
{
    pthread_mutex_lock(&f->lock);
    const struct pair *pair = pair_find(f->taken, name, strlen(name));
    const char *value = pair ? pair->value.data : NULL;
    pthread_mutex_unlock(&f->lock);
    return value;
}
