/* SPDX-License-Identifier: MIT */
/*
 * Servers that speak TLS with the certificates of support/certs.h, and the
 * files beside them, which scenes write and replace.
 */
#ifndef NXLOCK_TESTS_LIVE_SCENE_TLS_H
#define NXLOCK_TESTS_LIVE_SCENE_TLS_H

#include "live/scene_once.h"
#include "support/certs.h"
#include "support/redis_tls.h"

#include <sys/stat.h>

static bool presents_another; /* than the certificate "server" */

static inline int make_certificates(void)
{
    static const char *const all[] = {"other-ca", "intermediate", "expired",
        "not-yet-valid", "wrong-host", "name-only", "cn-only", "self-signed",
        "foreign", "chained", "unchained", "long-names", "foreign-client",
        "expired-client", "locked-client", NULL};
    return certs_make_all(servers[0].dir, all);
}

/* The server answers with the certificate of that name. */
static inline void present(struct redis *r, const char *name)
{
    redis_run(r, "CONFIG", "SET", "tls-cert-file",
        formatted("%s/%s.pem", r->dir, name), "tls-key-file",
        formatted("%s/%s.key", r->dir, name), NULL);
    presents_another = true;
}

static inline void present_usual(void)
{
    if (presents_another)
        present(&servers[0], "server");
    presents_another = false;
}

static inline void needs_ipv6(void)
{
    char line[128];
    bool there = false;
    FILE *list = fopen("/proc/net/if_inet6", "re");
    while (list && fgets(line, sizeof(line), list))
        there |= strstr(line, "00000000000000000000000000000001 ") == line;
    if (list)
        fclose(list);
    if (!there)
        test_skip("this machine has no ::1");
}

/* ------------------------------------------------------------------- files */

static inline void write_file(
    const char *path, const void *bytes, size_t length, mode_t mode)
{
    FILE *out = fopen(path, "we");
    assert_non_null(out);
    assert_int_equal(fwrite(bytes, 1, length, out), length);
    assert_int_equal(fchmod(fileno(out), mode), 0);
    fclose(out);
}

/* In one step, as a renewed certificate should be, or written in place. */
static inline void copy_file(
    const char *from, const char *path, bool in_one_step)
{
    static char bytes[65536];
    FILE *in = fopen(from, "re");
    if (!in)
        file_error("there is no %s", from);
    size_t length = fread(bytes, 1, sizeof(bytes), in);
    fclose(in);
    const char *part = in_one_step ? formatted("%s.part", path) : path;
    write_file(part, bytes, length, 0600);
    if (in_one_step)
        assert_int_equal(rename(part, path), 0);
}

/* "file own.pem: replaced by client.pem" */
static inline void play_file(
    const struct subject *subject, struct words *words, struct outcome *o)
{
    const char *dir = servers[0].dir;
    const char *path = formatted("%s/%s", dir, subject->name);
    bool replaced = accept(words, "replaced");
    if (replaced || accept(words, "overwritten")) {
        if (!accept(words, "by"))
            file_error("by what file?");
        copy_file(formatted("%s/%s", dir, take(words)->text), path, replaced);
    } else if (accept(words, "holds")) {
        const struct word *text = take(words);
        mode_t mode = 0600;
        if (accept(words, "readable") && accept(words, "by"))
            mode = accept(words, "all")      ? 0644
                   : accept(words, "nobody") ? 0
                                             : 1;
        if (mode == 1)
            file_error("readable by all or by nobody?");
        write_file(path, text->text, text->length, mode);
    } else if (accept(words, "removed")) {
        assert_int_equal(unlink(path), 0);
    } else if (accept(words, "fifo")) {
        (void)unlink(path);
        assert_int_equal(mkfifo(path, 0600), 0);
    } else {
        file_error("a file knows no \"%s\"", take(words)->text);
    }
}

#endif
