/* SPDX-License-Identifier: MIT */
/*
 * Words of the command line that no message may repeat: tokens and passwords.
 */
#ifndef NXLOCK_CLI_SERVERS_SECRET_H
#define NXLOCK_CLI_SERVERS_SECRET_H

#include <stdbool.h>

/* Is it "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx", or that with "+weight/permits",
 * "@label", or both in this order behind it? */
bool is_token(const char *word);

/* Is it what is shown of a token, its first 8 characters? */
bool is_token_id(const char *word);

/* Does it begin with 8-4-4- hexadecimal digits, or 7-4-4-? Then it is probably
 * a token, perhaps badly copied. */
bool begins_like_token(const char *text);

/* Is it a URL, or the user:password@host of one? */
bool holds_password(const char *word);

/* Is it an option such as "-pSECRET" or "-a", as in other tools' commands? */
bool is_password_letter(const char *word);

/* Copies a word for a message: without what looks like a token or a URL's
 * password, and cut. Returns out, of DISCREET_ROOM bytes. */
#define DISCREET_ROOM 128
const char *discreet(char *out, const char *word);

#endif
