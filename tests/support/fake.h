/* SPDX-License-Identifier: MIT */
/*
 * A server that plays a script, in threads of the test program. One step a
 * line; blank lines and lines that begin with # are nothing. The steps before
 * the first ACCEPT are for the first connection.
 *
 *   ACCEPT             here begin the steps of the next connection
 *   ACCEPT *           ... of every further connection (last section only)
 *   EXPECT w w ...     one command. The first word in any case, the others
 *                      exactly; * is any one argument. $name (a ... z) takes
 *                      what stands there, and must meet the same where it is
 *                      used again
 *   EXPECT-HANDSHAKE   answers AUTH, SELECT, CLIENT ID (:7, then :8 ... for
 *                      later connections), INFO, CONFIG GET (as unknown) and
 *                      SCRIPT LOAD in any order, until another command comes
 *                      or three SCRIPT LOAD were answered. Without those (a
 *                      client that may not script), it ends after 100 ms of
 *                      silence
 *   EXPECT-CLOSE       the client closes; no command comes before
 *   SEND text          bytes; \r \n \\ are escapes; $name (a ... z)
 *                      is what was taken, if it was
 *   SEND-PART text     the same: a reply that is incomplete on purpose
 *   BULK text          text as a bulk string, with its length
 *   INFO text          what INFO is answered with from now on, everywhere
 *   DELAY ms           nothing for that long
 *   WAIT-FOR name      until fake_signal(fake, "name")
 *   TELL name          lets fake_await(fake, "name") return
 *   SILENCE            reads and never answers, until the client closes
 *   SERVE              answers like a server that grants every lock
 *                      (fake_serve.c), until the client closes
 *   CLOSE              closes the connection
 *   RESET              the same with a TCP reset; of a unix socket, unread
 *                      bytes make it a reset
 *   REFUSE             no more connections are accepted: the listeners close
 *
 * After its last step a connection stays open; what comes then must not
 * come, and is reported. So is a connection for which there is no section.
 * $names and INFO are shared by all connections.
 */
#ifndef NXLOCK_TEST_FAKE_H
#define NXLOCK_TEST_FAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fake;

/* Never NULL: a script that cannot be read fails the test. */
struct fake *fake_start(const char *script);

/* unix:///... and redis://127.0.0.1:port; both are listened to. */
const char *fake_url(const struct fake *f);
const char *fake_tcp_url(const struct fake *f);
const char *fake_path(const struct fake *f);

void fake_signal(struct fake *f, const char *name); /* for WAIT-FOR */
/* Waits for TELL, 30 s at most; false: it did not come. */
bool fake_await(struct fake *f, const char *name);

/* Ends the play. NULL: every script ran to its end and nothing came that
 * should not. Else what is wrong, with the script's line and what came
 * instead; the text is the fake's. Gives the threads 30 s to get to their
 * ends. Later calls return the same. */
const char *fake_join(struct fake *f);
const char *fake_join_within(struct fake *f, int ms); /* instead of 30 s */
/* Ends it, asked or not, and frees; NULL is fine. */
void fake_free(struct fake *f);

/* All commands received, "0 SET k v\n": the connection, then the arguments
 * (other bytes as \xNN, long ones cut). Valid until the next call. */
const char *fake_log(struct fake *f);
/* How many of them begin with word ("" any) on connection (-1: on all). */
size_t fake_count(struct fake *f, int connection, const char *word);
size_t fake_connections(struct fake *f); /* how many there were */
/* What a $name took, or NULL; valid until fake_free(). */
const char *fake_taken(struct fake *f, const char *name);

#endif
