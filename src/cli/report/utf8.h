/* SPDX-License-Identifier: MIT */
/*
 * Valid UTF-8, for output formats that demand it.
 */
#ifndef NXLOCK_CLI_REPORT_UTF8_H
#define NXLOCK_CLI_REPORT_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* The length of the UTF-8 character that text begins with, at most length
 * bytes; 0: it begins with none. */
size_t utf8_length(const char *text, size_t length);

/* Is all of it UTF-8? */
bool utf8_is_valid(const char *text, size_t length);

#endif
