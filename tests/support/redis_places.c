/* SPDX-License-Identifier: MIT */
/* Where a server is met: its directory, ports and URLs, and what it presents
 * at a port for TLS. */
#include "support/redis_inner.h"
#include "support/test.h"

void redis_find_places(struct redis *r)
{
    local_dir_make(r->dir);
    local_path(r->path, r->dir, "redis.sock");
    local_path(r->log, r->dir, "log");
}

static uint16_t free_port(void)
{
    uint16_t port = 0;
    int fd = local_listen_tcp(&port);

    if (fd < 0)
        fail_msg("no free port on 127.0.0.1");
    close(fd);
    return port;
}

static void make_tls_url(struct redis *r)
{
    snprintf(r->tls_url, sizeof(r->tls_url),
        "rediss://127.0.0.1:%u?cacert=%s/ca.pem", (unsigned)r->tls_port,
        r->tls_dir);
    size_t len = strlen(r->tls_url);
    if (r->tls_certified)
        snprintf(r->tls_url + len, sizeof(r->tls_url) - len,
            "&cert=%s/client.pem&key=%s/client.key", r->tls_dir, r->tls_dir);
}

void redis_find_ports(struct redis *r)
{
    if (!r->tls_only)
        r->port = r->plain_port = free_port();
    if (r->tls) {
        do
            r->tls_port = free_port();
        while (r->tls_port == r->plain_port);
        make_tls_url(r);
    }
    r->scheme = r->tls_always ? "rediss" : "redis";
    if (r->tls_always)
        r->port = r->tls_port;
    if (r->port != 0)
        snprintf(r->url, sizeof(r->url), "%s://127.0.0.1:%u", r->scheme,
            (unsigned)r->port);
    if (r->tls_always)
        snprintf(r->unix_url, sizeof(r->unix_url), "%s", r->url);
    else
        snprintf(r->unix_url, sizeof(r->unix_url), "unix://%s", r->path);
}

void redis_add(struct redis *r, const char *argument)
{
    if (r->extras == REDIS_EXTRA || !(r->extra[r->extras++] = strdup(argument)))
        abort();
}

static void add_file(
    struct redis *r, const char *option, const char *name, const char *kind)
{
    char path[1024];

    snprintf(path, sizeof(path), "%s/%s.%s", r->tls_dir, name, kind);
    redis_add(r, option);
    redis_add(r, path);
}

void redis_add_tls(struct redis *r, const char *dir, const char *certificate,
    const char *clients)
{
    char authority[1024];

    r->tls = true;
    snprintf(r->tls_dir, sizeof(r->tls_dir), "%s", dir);
    add_file(r, "--tls-cert-file", certificate, "pem");
    add_file(r, "--tls-key-file", certificate, "key");
    add_file(r, "--tls-ca-cert-file", "ca", "pem");
    redis_add(r, "--tls-auth-clients");
    redis_add(r, clients);
    if (!r->tls_always)
        return;
    /* What a client trusts that is told nothing about it. */
    snprintf(authority, sizeof(authority), "%s/ca.pem", dir);
    setenv("SSL_CERT_FILE", authority, 1);
}
