/* SPDX-License-Identifier: MIT */
/*
 * Shares OpenSSL's contexts among the clients of this process, because reading
 * a certificate takes longer than a round trip. The last one that is no longer
 * in use is kept for the next client, unless it has a private key: that goes
 * with the last client that named it.
 *
 * Invariant: a context in the list was made by this process, not by a parent
 * that was fork()ed, from the files that its settings name. The mutex is held
 * for a few instructions only, never while a file is read.
 */
#include "net/tls/parts.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The only global of the library that can change. */
static struct {
    _Atomic pid_t maker; /* the process whose list it is; 0: there is none */
    pthread_mutex_t mutex;
    struct context *list;
    struct context *unused; /* the one in the list that has no owner */
} shared_contexts = {.mutex = PTHREAD_MUTEX_INITIALIZER};

/* In a child of fork(), the mutex and those that OpenSSL has in a context may
 * be locked for ever by a thread of the parent. Such a child shares nothing. */
static bool is_own_list(void)
{
    pid_t expected = 0, self = getpid();

    return atomic_compare_exchange_strong(
               &shared_contexts.maker, &expected, self) ||
           expected == self;
}

/* What the system trusts is in files that are not compared, so each client
 * reads them itself. */
static bool may_share(const struct settings *set)
{
    return (set->cacert || set->cacertdir || set->verify == TLS_VERIFY_NONE) &&
           is_own_list();
}

bool context_is_of(const struct context *c, const struct settings *set,
    const struct file_version *versions)
{
    return !c->spoiled && c->user == geteuid() &&
           memcmp(c->versions, versions, sizeof(c->versions)) == 0 &&
           params_of_tls_equal(&c->settings, set);
}

struct context *context_find(
    const struct settings *set, const struct file_version *versions)
{
    if (!may_share(set))
        return NULL;
    pthread_mutex_lock(&shared_contexts.mutex);
    struct context *c = shared_contexts.list;
    while (c && !context_is_of(c, set, versions))
        c = c->next;
    if (c)
        c->owners++;
    if (c == shared_contexts.unused)
        shared_contexts.unused = NULL;
    pthread_mutex_unlock(&shared_contexts.mutex);
    return c;
}

static void free_context(struct context *c)
{
    if (!c)
        return;
    SSL_CTX_free(c->ssl);
    settings_free(&c->settings);
    free(c);
}

struct context *context_new(SSL_CTX *ssl, const struct settings *set,
    const struct file_version *versions)
{
    struct context *c = calloc(1, sizeof(*c));

    if (!c) {
        SSL_CTX_free(ssl);
        return NULL;
    }
    c->ssl = ssl;
    if (!params_of_tls_copy(&c->settings, set)) {
        free_context(c);
        return NULL;
    }
    memcpy(c->versions, versions, sizeof(c->versions));
    c->user = geteuid();
    c->owners = 1;
    c->listed = may_share(set);
    if (!c->listed)
        return c;
    pthread_mutex_lock(&shared_contexts.mutex);
    c->next = shared_contexts.list;
    shared_contexts.list = c;
    pthread_mutex_unlock(&shared_contexts.mutex);
    return c;
}

/* Removes one owner of a context in the list; the mutex is held. Returns the
 * context that nothing needs any longer, which is out of the list; or NULL. */
static struct context *leave(struct context *c)
{
    struct context *end = c, **at = &shared_contexts.list;

    if (--c->owners > 0)
        return NULL;
    if (!c->spoiled && !c->settings.key) {
        end = shared_contexts.unused;
        shared_contexts.unused = c;
    }
    while (end && *at != end)
        at = &(*at)->next;
    if (end)
        *at = end->next;
    return end;
}

void context_release(struct context *c)
{
    if (c && c->listed) {
        pthread_mutex_lock(&shared_contexts.mutex);
        c = leave(c);
        pthread_mutex_unlock(&shared_contexts.mutex);
    }
    free_context(c);
}

void context_spoil(struct context *c)
{
    if (c)
        c->spoiled = true;
}
