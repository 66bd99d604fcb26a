/* SPDX-License-Identifier: MIT */
/*
 * Words of the command line that no message may repeat: tokens and passwords.
 */
#ifndef NXLOCK_CLI_SECRET_H
#define NXLOCK_CLI_SECRET_H

#include <stdbool.h>

/* "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx", or that and "@label". */
bool is_token(const char *word);

/* 8-4-4- hexadecimal digits, or one less at first: a token, whole or not. */
bool begins_like_token(const char *text);

/* A URL, or the user:password@host of one. */
bool holds_password(const char *word);

/* "-pSECRET", "-a SECRET": as other tools take a password. */
bool is_password_letter(const char *word);

/* A word as it may be repeated: without what looks like a token or a URL's
 * password, and cut. Returns out, of DISCREET_ROOM bytes. */
#define DISCREET_ROOM 128
const char *discreet(char *out, const char *word);

#endif
