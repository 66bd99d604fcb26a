/* SPDX-License-Identifier: MIT */
/*
 * One connection plays its section. Whatever had arrived before the play was
 * ended is still read and judged, so that the verdict does not depend on how
 * far a thread had come.
 */
#include "support/fake_inner.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { QUIET_MS = 100, LOG_ARG_MAX = 200, FLIGHT_SCRIPTS = 3 };

enum came { CAME_COMMAND, CAME_CLOSE, CAME_STOP, CAME_QUIET, CAME_GARBAGE };

void play_problem(struct link *link, const char *format, ...)
{
    char text[900];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    pthread_mutex_lock(&link->fake->lock);
    struct bytes *problem = &link->fake->problem;
    if (problem->len == 0) {
        bytes_addf(problem, "connection %zu", link->number);
        if (link->step)
            bytes_addf(problem, ", script line %d (%s)", link->step->line,
                link->step->shown);
        bytes_addf(problem, ": %s", text);
    }
    pthread_cond_broadcast(&link->fake->changed);
    pthread_mutex_unlock(&link->fake->lock);
}

void command_show(struct bytes *out, const struct resp_command *command)
{
    for (size_t i = 0; i < command->count; i++) {
        size_t len = command->arg[i].len;
        bytes_add(out, " ", i > 0);
        if (len == 0)
            bytes_add(out, "\"\"", 2);
        bytes_add_visible(out, command->arg[i].data,
            len > LOG_ARG_MAX ? LOG_ARG_MAX : len, "");
        if (len > LOG_ARG_MAX)
            bytes_add(out, "...", 3);
    }
}

static void log_command(struct link *link)
{
    struct fake *f = link->fake;

    pthread_mutex_lock(&f->lock);
    bytes_addf(&f->log, "%zu ", link->number);
    command_show(&f->log, &link->command);
    bytes_add(&f->log, "\n", 1);
    pthread_mutex_unlock(&f->lock);
}

/* Reads once, for quiet_ms at most (-1: for ever). What the client sent goes
 * before the end of the play. */
static enum came read_more(struct link *link, int quiet_ms)
{
    struct pollfd fds[2] = {
        {link->fd, POLLIN, 0}, {link->fake->stop[0], POLLIN, 0}};
    char data[16384];
    int n;

    while ((n = poll(fds, 2, quiet_ms)) < 0 && errno == EINTR)
        ;
    if (n == 0)
        return CAME_QUIET;
    if (fds[0].revents == 0)
        return CAME_STOP;
    ssize_t got = recv(link->fd, data, sizeof(data), 0);
    if (got <= 0)
        return CAME_CLOSE;
    bytes_add(&link->in, data, (size_t)got);
    return CAME_COMMAND;
}

/* Makes link->command the next command; COMMAND unless something else came
 * first. */
static enum came next_command(struct link *link, int quiet_ms)
{
    if (link->kept) {
        link->kept = false;
        return CAME_COMMAND;
    }
    bytes_drop(&link->in, link->used);
    link->used = 0;
    for (;;) {
        long used = resp_parse(link->in.data, link->in.len, &link->command);
        if (used < 0)
            return CAME_GARBAGE;
        if (used > 0) {
            link->used = (size_t)used;
            log_command(link);
            return CAME_COMMAND;
        }
        enum came came = read_more(link, quiet_ms);
        if (came != CAME_COMMAND)
            return came;
    }
}

static const char *came_name(enum came came)
{
    switch (came) {
    case CAME_COMMAND:
        return "a command";
    case CAME_CLOSE:
        return "the client's close";
    case CAME_STOP:
        return "nothing, until the test ended";
    case CAME_QUIET:
        return "nothing";
    case CAME_GARBAGE:
        break;
    }
    return "bytes that are no command";
}

static bool take(struct link *link, const char *name, struct resp_arg arg)
{
    struct fake *f = link->fake;
    bool good = true;

    pthread_mutex_lock(&f->lock);
    struct pair *pair = pair_find(f->taken, name, strlen(name));
    if (pair) {
        good = pair->value.len == arg.len &&
               memcmp(pair->value.data, arg.data, arg.len) == 0;
    } else {
        pair = pair_add(&f->taken, name, strlen(name));
        bytes_add(&pair->value, arg.data, arg.len);
    }
    pthread_mutex_unlock(&f->lock);
    return good;
}

static bool word_meets(struct link *link, const struct word *word, size_t i)
{
    struct resp_arg arg = link->command.arg[i];

    switch (word->kind) {
    case WORD_ANY:
        return true;
    case WORD_TAKE:
        return take(link, word->text.data, arg);
    case WORD_EXACT:
        break;
    }
    if (arg.len != word->text.len)
        return false;
    return i == 0 ? strncasecmp(arg.data, word->text.data, arg.len) == 0
                  : memcmp(arg.data, word->text.data, arg.len) == 0;
}

static bool play_expect(struct link *link, const struct step *step)
{
    enum came came = next_command(link, -1);

    if (came != CAME_COMMAND) {
        play_problem(link, "there came %s", came_name(came));
        return false;
    }
    bool good = link->command.count == step->count;
    for (size_t i = 0; good && i < step->count; i++)
        good = word_meets(link, &step->words[i], i);
    if (!good) {
        struct bytes shown = {NULL, 0, 0};
        command_show(&shown, &link->command);
        play_problem(link, "there came: %.700s", shown.data);
        bytes_free(&shown);
    }
    return good;
}

static bool play_handshake(struct link *link)
{
    int scripts = 0;

    for (bool any = false; scripts < FLIGHT_SCRIPTS; any = true) {
        enum came came = next_command(link, any ? QUIET_MS : -1);
        if (any && came == CAME_QUIET)
            return true;
        if (came != CAME_COMMAND) {
            if (any && came != CAME_GARBAGE)
                return true;
            play_problem(link, "there came %s", came_name(came));
            return false;
        }
        struct bytes out = {NULL, 0, 0};
        bool was_script;
        if (!serve_handshake(link, &out, &was_script)) {
            link->kept = true;
            return true;
        }
        scripts += was_script;
        local_send(link->fd, out.data, out.len);
        bytes_free(&out);
    }
    return true;
}

/* Reads until the client closes or the play ends. */
static bool play_until_close(struct link *link, const char *surplus)
{
    for (;;) {
        enum came came = next_command(link, -1);
        if (came == CAME_CLOSE || came == CAME_STOP)
            return came == CAME_CLOSE;
        if (surplus || came == CAME_GARBAGE) {
            struct bytes shown = {NULL, 0, 0};
            if (came == CAME_COMMAND)
                command_show(&shown, &link->command);
            else
                bytes_addf(&shown, "%s", came_name(came));
            play_problem(link, "%s: %.700s", surplus ? surplus : "there came",
                shown.data);
            bytes_free(&shown);
            return false;
        }
    }
}

static bool play_serve(struct link *link)
{
    for (;;) {
        enum came came = next_command(link, -1);
        if (came == CAME_CLOSE)
            return true;
        if (came != CAME_COMMAND) {
            if (came == CAME_GARBAGE)
                play_problem(link, "there came %s", came_name(came));
            return false;
        }
        struct bytes out = {NULL, 0, 0};
        bool was_script;
        if (!serve_handshake(link, &out, &was_script))
            serve_command(link, &out);
        local_send(link->fd, out.data, out.len);
        bytes_free(&out);
    }
}

/* Puts what $name took in its place. */
static void expand(struct link *link, struct bytes *out, struct bytes text)
{
    for (size_t i = 0; i < text.len;) {
        size_t len = 0;
        if (text.data[i] == '$')
            while (i + 1 + len < text.len && text.data[i + 1 + len] >= 'a' &&
                   text.data[i + 1 + len] <= 'z')
                len++;
        pthread_mutex_lock(&link->fake->lock);
        struct pair *pair =
            len ? pair_find(link->fake->taken, text.data + i + 1, len) : NULL;
        if (pair)
            bytes_add(out, pair->value.data, pair->value.len);
        pthread_mutex_unlock(&link->fake->lock);
        if (!pair)
            bytes_add(out, text.data + i, 1);
        i += pair ? 1 + len : 1;
    }
}

static bool play_send(struct link *link, const struct step *step)
{
    struct bytes text = {NULL, 0, 0}, out = {NULL, 0, 0};

    expand(link, &text, step->text);
    if (step->kind == STEP_BULK)
        resp_bulk(&out, text.data, text.len);
    else
        bytes_add(&out, text.data, text.len);
    /* A client that has gone is noticed by the next EXPECT. */
    local_send(link->fd, out.data, out.len);
    bytes_free(&text);
    bytes_free(&out);
    return true;
}

/* Until the name is signalled or, with a number, for that many ms. False: the
 * play ended first. */
static bool play_wait(struct link *link, const struct step *step)
{
    struct fake *f = link->fake;
    struct timespec end;
    bool timed = step->kind == STEP_DELAY, over = false;

    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += (time_t)(step->count / 1000);
    end.tv_nsec += (long)(step->count % 1000) * 1000000L;
    if (end.tv_nsec >= 1000000000L) {
        end.tv_sec++;
        end.tv_nsec -= 1000000000L;
    }
    pthread_mutex_lock(&f->lock);
    while (!over && !f->stopping) {
        if (timed)
            over = pthread_cond_timedwait(&f->changed, &f->lock, &end) != 0;
        else if (pair_find(f->signals, step->text.data, step->text.len))
            over = true;
        else
            pthread_cond_wait(&f->changed, &f->lock);
    }
    pthread_mutex_unlock(&f->lock);
    if (!over)
        play_problem(link, "the test ended first");
    return over;
}

static void play_tell(struct link *link, const struct step *step)
{
    struct fake *f = link->fake;

    pthread_mutex_lock(&f->lock);
    if (!pair_find(f->signals, step->text.data, step->text.len))
        pair_add(&f->signals, step->text.data, step->text.len);
    pthread_cond_broadcast(&f->changed);
    pthread_mutex_unlock(&f->lock);
}

static bool play_step(struct link *link, const struct step *step)
{
    switch (step->kind) {
    case STEP_EXPECT:
        return play_expect(link, step);
    case STEP_EXPECT_HANDSHAKE:
        return play_handshake(link);
    case STEP_EXPECT_CLOSE:
        if (play_until_close(link, "there came"))
            return true;
        play_problem(link, "the client did not close");
        return false;
    case STEP_SEND:
    case STEP_BULK:
        return play_send(link, step);
    case STEP_INFO:
        pthread_mutex_lock(&link->fake->lock);
        bytes_free(&link->fake->info);
        bytes_add(&link->fake->info, step->text.data, step->text.len);
        pthread_mutex_unlock(&link->fake->lock);
        return true;
    case STEP_DELAY:
    case STEP_WAIT_FOR:
        return play_wait(link, step);
    case STEP_TELL:
        play_tell(link, step);
        return true;
    case STEP_SILENCE:
        return play_until_close(link, NULL);
    case STEP_SERVE:
        return play_serve(link);
    case STEP_RESET:
        local_make_reset(link->fd);
        return false;
    case STEP_CLOSE:
        return false;
    case STEP_REFUSE:
        fake_refuse(link->fake);
        return true;
    }
    return false;
}

static void settle(struct link *link)
{
    pthread_mutex_lock(&link->fake->lock);
    link->settled = true;
    pthread_cond_broadcast(&link->fake->changed);
    pthread_mutex_unlock(&link->fake->lock);
}

void play(struct link *link)
{
    bool open = true;

    for (link->step = link->section->steps; open && link->step;) {
        const struct step *step = link->step;
        bool last = !step->next;
        if (last && (step->kind == STEP_SILENCE || step->kind == STEP_SERVE))
            settle(link);
        open = play_step(link, step);
        if (open)
            link->step = step->next;
    }
    if (!open)
        return;
    settle(link);
    play_until_close(link, "after the last step there came");
}
