/* SPDX-License-Identifier: MIT */
/*
 * The wire between a server and a client: what one of them has encrypted waits
 * there, and a man in the middle may change it.
 */
#ifndef NXLOCK_TESTS_FUZZ_TLS_WIRE_H
#define NXLOCK_TESTS_FUZZ_TLS_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct wire {
    uint8_t *bytes;
    size_t len, room;
    bool changed; /* not only what the sender sent, or not all of it */
};

void wire_add(struct wire *w, const void *bytes, size_t len);
void wire_remove(struct wire *w, size_t at, size_t len);

/* The length of the first record, as far as it is there. */
size_t wire_record(const struct wire *w);

/* How many records begin in these bytes, if the first byte begins one. */
size_t wire_count(const uint8_t *bytes, size_t len);

/* What a man in the middle does, at the front except for the flip:
 * f  flip a bit
 * x  lose n bytes
 * c  lose a record; p repeat it; o swap it with the next
 * g  insert n bytes of garbage
 * l  insert an alert; h the header of a huge record; i a reply of Redis; j the
 *    same in a plain record; y a change of ciphers */
void wire_change(struct wire *w, char letter, size_t n);

#endif
