/* SPDX-License-Identifier: MIT */
/*
 * Who says that a lock is taken needs a witness (I11), and a token joins the
 * line of a lock once (I12).
 *
 * Invariant: a witness is what stood in the key when a server said "busy", as
 * the server knows it, and not what the client makes of it.
 */
#include "sim/checker.h"
#include "sim/world.h"

static bool is_of_this_call(
    const struct world *w, const struct worker *k, uint64_t token)
{
    const struct token *t = checker_facts(&w->checker, token);
    return t->process == k->process->index && t->life == k->process->life &&
           t->worker == k->index && t->call == k->began;
}

void checker_asks(struct world *w, const struct worker *k)
{
    w->checker.busy[k->process->index][k->index].asked_at = w->now;
}

void checker_busy_heard(struct world *w, const struct worker *k,
    unsigned server, const struct message *m)
{
    struct busy *busy = &w->checker.busy[k->process->index][k->index];
    bool own = m->stood ? is_of_this_call(w, k, m->stood) : !m->gap;
    busy->heard_at[server] = own ? 0 : w->now;
    busy->until[server] = m->outcome.left_ms == LEFT_UNKNOWN
                              ? m->sent_at + w->setting.timeout_ns
                              : m->stood_until;
}

/* A server has answered that the key holds another one's token, and the key
 * could not end before now; or that it is left free for others until now: or it
 * is the answer that ended the call. Several servers do not answer at the same
 * time. */
static bool has_witness(const struct world *w, const struct worker *k)
{
    const struct busy *busy = &w->checker.busy[k->process->index][k->index];
    bool several = w->options.servers > 1;
    for (unsigned i = 0; i < w->options.servers; i++) {
        uint64_t at = busy->heard_at[i];
        bool last = at == w->now || (several && at >= busy->asked_at &&
                                        w->now <= at + w->setting.timeout_ns);
        if (at != 0 && (last || w->now <= busy->until[i]))
            return true;
    }
    return false;
}

/* Has a request of this call been granted the lock at this server, and it has
 * the token? A hand-over is no answer: its message may be on the way. */
static bool is_own(
    struct world *w, const struct worker *k, unsigned server, uint64_t token)
{
    return token != 0 && is_of_this_call(w, k, token) &&
           checker_facts(&w->checker, token)->answered & 1u << server;
}

/* Likewise, where several hold the lock. */
static unsigned count_own_held(struct world *w, const struct worker *k)
{
    unsigned most = 0;
    for (uint64_t token = 1; token < w->checker.tokens; token++) {
        unsigned count = 0;
        for (unsigned i = 0;
             is_of_this_call(w, k, token) && i < w->options.servers; i++)
            count += is_own(w, k, i, token) &&
                     holders_peek(w, &w->server[i], k->name, token);
        most = count > most ? count : most;
    }
    return most;
}

/* The most servers that have the same token of this call. */
static unsigned count_own(struct world *w, const struct worker *k)
{
    unsigned most = 0;
    if (w->setting.permits)
        return count_own_held(w, k);
    for (unsigned i = 0; i < w->options.servers; i++) {
        uint64_t token = server_peek(w, &w->server[i], k->name);
        unsigned count = 0;
        for (unsigned j = i; j < w->options.servers; j++)
            count += server_peek(w, &w->server[j], k->name) == token &&
                     is_own(w, k, j, token);
        most = count > most ? count : most;
    }
    return most;
}

void checker_busy_ends(struct world *w, const struct worker *k)
{
    unsigned p = k->process->index, own = count_own(w, k);
    if (own >= quorum_of(w->options.servers))
        checker_broken(w, I11,
            "c%u.%u: n%u is busy, and %u servers have its own token", p,
            k->index, k->name, own);
    else if (!has_witness(w, k))
        checker_broken(w, I11,
            "c%u.%u: n%u is busy, and nobody has said so for so long", p,
            k->index, k->name);
}

void checker_joins(struct world *w, const struct worker *k)
{
    struct token *t = checker_facts(&w->checker, k->token);
    if (t->joined)
        checker_broken(w, I12, "c%u.%u: t%llu joins the line of n%u again",
            k->process->index, k->index, (unsigned long long)k->token, k->name);
    t->joined = true;
}
