/* SPDX-License-Identifier: MIT */
/*
 * What the library does for its own command and for no other program: queries
 * to one server, and the parts of URLs. The command is linked with the objects
 * of the library, so none of these functions is exported.
 */
#ifndef NXLOCK_API_PRIVATE_H
#define NXLOCK_API_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <nxlock.h>

/* A server's answer to client_ask(). */
struct answer;

/* Sends one command to one server, numbered from 0. argv is the command and its
 * arguments, 1 to 64 words; lengths are theirs, or NULL if none contains a zero
 * byte. The command must only read, since it is sent again after a lost
 * connection, and must not wait, subscribe or select: the client's locks use
 * the same connection, and their commands wait behind the answer.
 *
 * Blocking API only; blocks for timeout_ms at most. NXL_OK: the caller owns
 * *answer and frees it with answer_free(). Otherwise *answer is NULL, and
 * nxl_client_errmsg() says why. NXL_E_INVALID: wrong argument, or no such
 * server. NXL_E_UNSUPPORTED: the server does not know the command, or the
 * answer exceeds 1 MB. NXL_E_DENIED, _REFUSED, _WRONG_TYPE, _SERVER: the server
 * answers with an error. NXL_CANCELLED: another thread freed the client.
 * NXL_E_UNREACHABLE, _URL, _NOT_REDIS, _NOMEM, _SYSTEM, _FORKED. */
int client_ask(nxl_client *client, size_t server, size_t argc,
    const char *const *argv, const size_t *lengths,
    struct answer **answer) NXL_MUST_USE;

/* Returns the number of values: 1, or all elements of an array, with nested
 * arrays flattened. NULL: 0. */
size_t answer_count(const struct answer *answer);

/* Returns value i, from 0, zero-terminated; numbers in decimal. *length, if not
 * NULL, is its length. NULL: the value is nil, or there is no value i. Valid
 * until answer_free(). */
const char *answer_item(const struct answer *answer, size_t i, size_t *length);

/* Frees the answer; NULL is allowed. */
void answer_free(struct answer *answer);

/* Answers and nxl_holder contain the server's exact bytes, which may repeat a
 * password. Returns text if it may be shown; else words that say why it is
 * omitted (see nxl_client_errmsg()), zero-terminated, and their length in
 * *length. No I/O; any thread may call it. */
const char *client_shown(
    const nxl_client *client, const char *text, size_t *length);

/* Empties the line of those who wait for the lock: deletes the line's key. The
 * lock itself is not changed. Whoever still waits joins again within 5 s, in
 * another order. Only a lock on one server has a line. Blocking API only;
 * blocks for timeout_ms at most. NXL_OK: emptied. NXL_FREE: there is no line.
 * NXL_UNKNOWN: no answer, so the line may have been emptied; it is not tried
 * again. Otherwise nxl_client_errmsg() says why; results as of client_ask(). */
int lock_empty_line(nxl_lock *lock) NXL_MUST_USE;

/* From now on releases of this client's locks ignore their lines: they hand
 * over to nobody, and touch no key but the lock's. For locks that nobody waits
 * for in line. Before the first operation. */
void client_ignore_lines(nxl_client *client);

/* Returns whether a URL accepts value, not %-encoded, for the parameter of this
 * name (config/params.h). If not, writes the reason into must, zero-terminated
 * and cut to size: "must be a number from 10 to 600000", or "is unknown" for
 * the name. must may be NULL if size is 0. */
bool url_param_accepts(
    const char *name, const char *value, char *must, size_t size);

/* Creates a client for a replica of the server of url, at that address, to
 * query it with client_ask(): with the login and the TLS of url, but without
 * guards. Results as nxl_client_new(). */
int client_new_replica(nxl_client **client, const char *url, const char *host,
    uint16_t port, const nxl_client_options *options) NXL_MUST_USE;

/* What a client knows of a Sentinel that it asks. */
struct sentinel_facts {
    char at[256];      /* its host and port */
    char primary[300]; /* the address that it names; "": none, because of: */
    char why[512];
    bool is_spare;  /* another address of a Sentinel that answers */
    bool agrees;    /* the client uses that server, or has none yet */
    bool in_clear;  /* a password is sent to it without TLS, over the network */
    unsigned knows; /* how many Sentinels there are to it, with itself */
};

/* Fills in what is known of Sentinel i, from 0; all are asked while a call is
 * under way. False: there is none, or the URL names no Sentinels. No I/O. */
bool client_sentinel(
    nxl_client *client, size_t i, struct sentinel_facts *facts);

/* Returns the length of the first URL in a comma-separated list, split as
 * nxl_client_new() does; the next URL, if any, starts after the comma that
 * follows. NULL: 0. */
size_t url_length(const char *urls);

#endif
