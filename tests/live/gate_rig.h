/* SPDX-License-Identifier: MIT */
/*
 * A gate between one client and the server, a process of its own: it knows
 * where a command ends, and at times holds the next one back, or the replies.
 * What a client that has died had sent is passed on all the same, when its
 * time has come. Counts between which two commands it made somebody wait.
 */
#ifndef NXLOCK_TESTS_GATE_RIG_H
#define NXLOCK_TESTS_GATE_RIG_H

#include "live/live_rig.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

#include "support/bytes.h"
#include "support/local.h"
#include "support/resp.h"

enum { GATE_UP, GATE_DOWN, GATE_LINKS = 8, GATE_WORDS = 10 };

static const char *const gate_word[GATE_WORDS] = {"?", "SETNX", "GETRANGE",
    "WATCH", "MULTI", "GETSET", "DEL", "EXEC", "TIME", "TTL"};

/* Numbers that a seed repeats (splitmix64). */
static inline uint64_t dice_roll(uint64_t *dice)
{
    uint64_t z = *dice += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static inline int dice_below(uint64_t *dice, int sides)
{
    return (int)(dice_roll(dice) % (uint64_t)sides);
}

/* Mostly short ones, of all sizes up to the most. */
static inline int dice_stall_ms(uint64_t *dice, int most_ms)
{
    int kind = dice_below(dice, 10);
    int most = kind < 6 ? 20 : kind < 9 ? most_ms / 8 : most_ms;
    return 1 + dice_below(dice, most > 1 ? most : 1);
}

/* Shared: what the gates did, by the word before and the one after. */
struct gate_tally {
    _Atomic int stalled[GATE_WORDS][GATE_WORDS];
    /* ... after which the client was killed; its command came later on. */
    _Atomic int orphaned[GATE_WORDS][GATE_WORDS];
    /* Killed before it had the reply to that word. */
    _Atomic int unheard[GATE_WORDS];
};

struct gate_orders {
    const char *path; /* where it listens */
    uint64_t dice;
    int most_ms; /* for so long at most something is held back */
    struct gate_tally *tally;
    _Atomic bool *kill_it; /* asks for the client's death */
};

struct gate_link {
    bool used;
    int fd[2];    /* the client's, the server's */
    bool over[2]; /* nothing more comes that way */
    struct bytes in[2];
    bool timed[2]; /* what is next has been given its time */
    uint64_t go_at[2];
    size_t last; /* word that was passed on */
};

static inline size_t gate_word_of(const struct resp_command *command)
{
    size_t word = GATE_WORDS;
    while (--word > 0 && !resp_is(command, 0, gate_word[word]))
        ;
    return word;
}

static inline void gate_close(struct gate_link *l)
{
    for (int way = 0; way < 2; way++) {
        close(l->fd[way]);
        bytes_free(&l->in[way]);
    }
    memset(l, 0, sizeof(*l));
}

static inline void gate_open(struct gate_link *links, int client)
{
    struct gate_link *l = links;
    while (l < links + GATE_LINKS && l->used)
        l++;
    int to_server = local_connect(server.path, 0);
    if (l == links + GATE_LINKS || to_server < 0)
        _exit(20);
    *l = (struct gate_link){.used = true, .fd = {client, to_server}};
}

/* The size of what is next that way; 0: nothing whole. */
static inline size_t gate_next(struct gate_link *l, int way, size_t *word)
{
    struct resp_command command;
    if (way == GATE_DOWN)
        return l->in[way].len;
    long size = resp_parse(l->in[way].data, l->in[way].len, &command);
    if (size < 0)
        _exit(21);
    if (size > 0)
        *word = gate_word_of(&command);
    return (size_t)size;
}

/* Between any two words once, and then most often where a lock is taken over:
 * that keeps nobody else waiting. */
static inline bool gate_stalls(
    struct gate_orders *o, int way, size_t last, size_t word)
{
    const char *next = gate_word[word];
    bool takes_over =
        strcmp(next, "GETSET") == 0 || strcmp(gate_word[last], "GETSET") == 0;
    int one_in = way == GATE_DOWN ? 80 : takes_over ? 5 : 50;
    return (way == GATE_UP && o->tally->stalled[last][word] == 0) ||
           dice_below(&o->dice, one_in) == 0;
}

/* Who is held back may die of it; of those who only look, few do. */
static inline void gate_note(
    struct gate_orders *o, int way, size_t last, size_t word)
{
    bool looks = strcmp(gate_word[last], "SETNX") == 0 ||
                 strcmp(gate_word[last], "GETRANGE") == 0;
    bool dies = dice_below(&o->dice, looks ? 40 : 8) == 0;
    if (way == GATE_UP)
        o->tally->stalled[last][word]++;
    if (!dies)
        return;
    *o->kill_it = true;
    if (way == GATE_UP)
        o->tally->orphaned[last][word]++;
    else
        o->tally->unheard[last]++;
}

/* Passes on what may go; false: its connection is over. */
static inline bool gate_pass(
    struct gate_orders *o, struct gate_link *l, int way, uint64_t now)
{
    size_t word = 0, size;
    while ((size = gate_next(l, way, &word)) > 0) {
        if (!l->timed[way]) {
            bool stalls = gate_stalls(o, way, l->last, word);
            uint64_t ms =
                stalls ? (uint64_t)dice_stall_ms(&o->dice, o->most_ms) : 0;
            l->timed[way] = true;
            l->go_at[way] = now + ms * UINT64_C(1000000);
            if (stalls)
                gate_note(o, way, l->last, word);
        }
        if (now < l->go_at[way])
            return true;
        /* A client that has died reads no more; its commands still go. */
        if (!local_send(l->fd[!way], l->in[way].data, size) && way == GATE_UP)
            return false;
        bytes_drop(&l->in[way], size);
        l->timed[way] = false;
        if (way == GATE_UP)
            l->last = word;
    }
    return !l->over[way];
}

static inline void gate_read(struct gate_link *l, int way)
{
    char chunk[4096];
    ssize_t got = recv(l->fd[way], chunk, sizeof(chunk), MSG_DONTWAIT);
    if (got > 0)
        bytes_add(&l->in[way], chunk, (size_t)got);
    else if (got == 0 || (errno != EAGAIN && errno != EINTR))
        l->over[way] = true;
}

static inline int gate_left_ms(
    const struct gate_link *l, uint64_t now, int left)
{
    for (int way = 0; way < 2; way++)
        if (l->timed[way]) {
            uint64_t ns = l->go_at[way] > now ? l->go_at[way] - now : 0;
            int ms = (int)(ns / 1000000) + 1;
            left = left < 0 || ms < left ? ms : left;
        }
    return left;
}

static inline void gate_run(struct gate_orders *o)
{
    static struct gate_link links[GATE_LINKS];
    int listener = local_listen_unix(o->path);
    if (listener < 0)
        _exit(22);
    for (;;) {
        struct pollfd fds[1 + 2 * GATE_LINKS];
        int left = -1;
        uint64_t now = test_now_ns();
        fds[0] = (struct pollfd){.fd = listener, .events = POLLIN};
        for (size_t i = 0; i < GATE_LINKS; i++) {
            struct gate_link *l = &links[i];
            if (l->used && (!gate_pass(o, l, GATE_UP, now) ||
                               !gate_pass(o, l, GATE_DOWN, now)))
                gate_close(l);
            for (int way = 0; way < 2; way++)
                fds[1 + 2 * i + (size_t)way] = (struct pollfd){
                    .fd = l->used && !l->over[way] ? l->fd[way] : -1,
                    .events = POLLIN};
            left = gate_left_ms(l, now, left);
        }
        if (poll(fds, 1 + 2 * GATE_LINKS, left) < 0)
            continue;
        for (size_t i = 0; i < GATE_LINKS; i++)
            for (int way = 0; way < 2; way++)
                if (fds[1 + 2 * i + (size_t)way].revents)
                    gate_read(&links[i], way);
        if (fds[0].revents)
            gate_open(links, accept(listener, NULL, NULL));
    }
}

#endif
