/* SPDX-License-Identifier: MIT */
/* What a server needs of RESP2: reading commands, and a script's name. */
#ifndef NXLOCK_TEST_RESP_H
#define NXLOCK_TEST_RESP_H

#include <stdbool.h>
#include <stddef.h>

#include "support/bytes.h"

#define RESP_ARGS 64

struct resp_arg {
    const char *data; /* within the bytes that were parsed */
    size_t len;
};

struct resp_command {
    size_t count;
    struct resp_arg arg[RESP_ARGS];
};

/* Bytes of the first whole command; 0: more are needed; -1: not a command. */
long resp_parse(const char *data, size_t len, struct resp_command *command);

/* The argument is this word, in any case. */
bool resp_is(const struct resp_command *command, size_t i, const char *word);

void resp_bulk(struct bytes *out, const char *data, size_t len);

/* 40 hex digits and a zero byte, as SCRIPT LOAD names a script. */
void sha1_hex(const char *data, size_t len, char out[41]);

#endif
