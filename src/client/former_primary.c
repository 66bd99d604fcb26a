/* SPDX-License-Identifier: MIT */
/*
 * Asks the former primary.
 *
 * Invariant: no connection is left when it is no longer asked.
 */
#include "client/former_primary.h"

#include <stdlib.h>

#include "base/deadline.h"
#include "net/cancel.h"

void former_primary_init(struct former_primary *f, struct nodes *nodes,
    const struct endpoint *endpoint)
{
    struct target to = target_of(endpoint);
    struct server *s = &f->server;
    *f = (struct former_primary){.until = 0};
    to.address = &f->address;
    server_init(s, &to, false, (uint64_t)(uintptr_t)f);
    /* The clocks are compared, as those of the primary are. */
    s->handshake_terms.age = &nodes_first(nodes)->server.age;
    server_share_secrets(s, &nodes->secrets);
    s->spares = &nodes->spares;
    f->source.kind = SOURCE_FORMER_PRIMARY;
    server_set_poller(s, nodes->poller, &f->source);
    f->word = slice_of("PING");
    f->verb = (struct verb){.kind = VERB_QUERY,
        .args = &f->word,
        .arg_count = 1,
        .values = &f->values};
    f->request.server = s;
    f->request.owner = f;
    list_init(&f->request.node);
}

struct job *former_primary_stop(struct former_primary *f)
{
    f->until = 0;
    return server_stop(&f->server);
}

void former_primary_free(struct former_primary *f)
{
    request_free(&f->request);
    reply_values_free(&f->values);
    server_free(&f->server);
    free(f->address.host);
}

static void cease(struct former_primary *f, uint64_t now)
{
    f->until = 0;
    (void)server_cancel(&f->request, false, now);
    server_leave(&f->server, "its answer is no longer waited for", now);
}

void former_primary_ask(struct former_primary *f, char *host, uint16_t port,
    const struct text *name, uint64_t now)
{
    if (former_primary_is_asked(f))
        cease(f, now);
    free(f->address.host);
    f->address.host = host;
    f->address.port = port;
    f->address.name = *name;
    f->server.not_before = now;
    f->until = deadline_after_ms(now, FORMER_PRIMARY_PATIENCE_MS);
    f->again = false;
    reply_values_clear(&f->values);
    server_submit(&f->request, &f->verb, NULL, now);
}

/* Nobody drove the client in time, so what it has said was not read. */
static bool wait_again(struct former_primary *f, uint64_t now)
{
    if (f->again ||
        now < deadline_after_ms(f->until, FORMER_PRIMARY_PATIENCE_MS / 4))
        return false;
    f->until = deadline_after_ms(now, FORMER_PRIMARY_PATIENCE_MS);
    f->again = true;
    return true;
}

bool former_primary_process(
    struct former_primary *f, bool *answered, uint64_t now)
{
    struct completion c;
    *answered = false;
    if (!former_primary_is_asked(f))
        return false;
    bool over = server_next(&f->server, &c, now);
    /* PING may be refused: what matters came before its answer. */
    *answered = over && f->server.state == SERVER_UP;
    if (!over && (now < f->until || wait_again(f, now)))
        return false;
    cease(f, now);
    return true;
}

uint64_t former_primary_deadline(struct former_primary *f)
{
    return former_primary_is_asked(f)
               ? earlier(f->until, server_deadline(&f->server))
               : NEVER;
}
