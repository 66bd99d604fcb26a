/* SPDX-License-Identifier: MIT */
/* Bytes that grow, for the test servers. No memory ends the program. */
#ifndef NXLOCK_TEST_BYTES_H
#define NXLOCK_TEST_BYTES_H

#include <stddef.h>

struct bytes {
    char *data; /* followed by a zero byte once something was added */
    size_t len, room;
};

void bytes_add(struct bytes *b, const void *data, size_t len);
void bytes_addf(struct bytes *b, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Printable ASCII as it is, anything else (and what "also" lists) as \xNN. */
void bytes_add_visible(
    struct bytes *b, const char *data, size_t len, const char *also);
void bytes_drop(struct bytes *b, size_t len); /* from the front */
void bytes_free(struct bytes *b);

#endif
