/* SPDX-License-Identifier: MIT */
/*
 * What people are told about a record of once.
 */
#ifndef NXLOCK_CLI_ONCE_ONCE_WORDS_H
#define NXLOCK_CLI_ONCE_ONCE_WORDS_H

#include "cli/report/json.h"
#include "cli/run/session.h"

#define RECORD_WORDS 768

/* Writes "in doubt: attempt 1 by db7:41233:pay began 2026-11-22 02:15:00 UTC
 * ..." into out, of RECORD_WORDS bytes. in_progress: its lock is held, so what
 * only was begun is not in doubt. */
const char *record_words(char *out, const nxl_record *record, bool in_progress);

/* Its state in a word: done, failed, begun, doubt or none. */
const char *record_word(const nxl_record *record, bool in_progress);

/* Writes its attempts and times as members; not its texts. */
void record_json(struct json *json, const nxl_record *record);

/* Reports that the session's work is in doubt, and what to do. */
void say_doubt(const struct session *session, const nxl_record *record);
/* Reports that the record is about other work. */
void say_mismatch(const struct session *session, const nxl_record *record);

#endif
