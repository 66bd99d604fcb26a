/* SPDX-License-Identifier: MIT */
/*
 * The holders of a lock that several have, at a model server: the sorted set at
 * the key, and what src/wire/scripts/lock.lua and the files that it includes do
 * with it. Of a key that holds one token it answers too, so that the line need
 * not tell them apart.
 *
 * Invariant: at a key are holders or one token, never both.
 */
#ifndef NXLOCK_SIM_HOLDERS_H
#define NXLOCK_SIM_HOLDERS_H

#include <stdbool.h>
#include <stdint.h>

#include "model/token.h"

struct message;
struct model_server;
struct world;

#define HOLDERS_MAX 256
/* For so long nobody joins the holders, at the end of each period. */
#define HOLDERS_PAUSE_MS 100
#define HOLDERS_PAUSE_EVERY_MS 30100
#define HOLDERS_BATCH 128 /* granted by one script */

#define NO_LIMIT UINT64_MAX

struct holder {
    uint64_t token;
    int64_t until_ms; /* by the server's clock */
};

struct holders {
    unsigned count;    /* with those whose lease is over; 0: there is no set */
    struct share head; /* of all of them; weight 0: they differ */
    int64_t since_ms, until_ms; /* the head's; and when the key expires */
    struct holder holder[HOLDERS_MAX]; /* last, see server_copy_data() */
};

/* What a script sees of a key. */
struct state {
    enum {
        KEY_FREE,
        KEY_ALONE,  /* one token */
        KEY_SHARED, /* holders, of whom one at least has a lease */
        KEY_CLOSED  /* nobody fits: it is left to others */
    } is;
    uint64_t token; /* ALONE */
    int64_t left_ms;
    int64_t now_ms; /* by the clock of the leases */
    /* SHARED */
    int64_t ends_ms;
    uint64_t used, most;
    bool pause;
};

/* What the text of a token says. Weight 0: it is exclusive. */
struct share share_of(const struct world *w, uint64_t token);

/* The set at the key; none if it has expired. */
struct holders *holders_of(
    const struct world *w, struct model_server *s, unsigned name);
/* Has the key a holder, or a token, whose lease is not over? That leaves no
 * trace, not even in the server's clock. */
bool holders_peek(const struct world *w, const struct model_server *s,
    unsigned name, uint64_t token);

struct state holders_look(
    const struct world *w, struct model_server *s, unsigned name);
bool holders_fit(
    const struct world *w, const struct state *state, uint64_t token);
/* How long it takes at least until the token may be granted the lock. */
int64_t holders_wait_ms(const struct world *w, struct model_server *s,
    unsigned name, const struct state *state, uint64_t token);
/* Grants the lock to a token that fits. */
void holders_put(struct world *w, struct model_server *s, unsigned name,
    struct state *state, uint64_t token, uint32_t lease_ms);
/* The token of m holds the lock: then its lease lasts so long at least. */
bool holders_held(struct world *w, struct model_server *s, struct state *state,
    const struct message *m);

/* The commands of a token that shares its lock. */
void holders_take(struct world *w, struct model_server *s, struct message *m);
void holders_extend(struct world *w, struct model_server *s, struct message *m);
void holders_release(
    struct world *w, struct model_server *s, struct message *m);
void holders_see(struct world *w, struct model_server *s, struct message *m);
void holders_cap(struct world *w, struct model_server *s, struct message *m);

#endif
