/* SPDX-License-Identifier: MIT */
/*
 * The Lua scripts, embedded by the build from scripts/NAME.lua together with
 * their SHA1. A script does everything that can fail before its first write,
 * and reads a value with GETRANGE, because another program may have stored half
 * a gigabyte there. RELEASE, BEGIN and TELL hand locks over, for which they
 * derive the keys of the line; the others touch only their KEYS.
 */
#ifndef NXLOCK_WIRE_SCRIPT_H
#define NXLOCK_WIRE_SCRIPT_H

#include "base/slice.h"

struct script {
    const char *name;
    struct slice body;
    const char *sha1; /* 40 lower-case hex digits */
};

enum script_id {
    SCRIPT_EXTEND,  /* KEYS key  ARGV token, ttl  ->  left ms, -1, or -2 */
    SCRIPT_INSPECT, /* KEYS key  ->  {value up to 512 bytes, left}, or {} */
    /* KEYS key  ARGV token, and maybe: its member in the line, or how to hand
     * over ("", "+", "?" or "-"); for a key with a hash tag, the mark  ->
     * enum release_reply */
    SCRIPT_RELEASE,
    /* The handshake loads those above. The others are sent by EVAL, or by
     * EVALSHA and then by EVAL. */
    SCRIPTS_LOADED,
    /* KEYS key  ARGV token, ttl  ->  OK, or nil if the key exists. For
     * servers whose SET knows no options. */
    SCRIPT_ACQUIRE = SCRIPTS_LOADED,
    /* KEYS key  ARGV token, ttl, old value  ->  OK, or nil: value differs */
    SCRIPT_TAKEOVER,
    SCRIPT_KEEP, /* KEYS key  ARGV token, ttl  ->  1 ttl set, 0 not there */
    /* KEYS key, counter  ARGV token, ttl, the counter's shortest ttl, and if
     * it replaces one, the old value  ->  a fencing token, or nil */
    SCRIPT_FENCE,
    /* KEYS key, counter  ARGV token, number or 0 for the next one, the
     * counter's shortest ttl  ->  the counter, or 0 */
    SCRIPT_RAISE,
    /* KEYS key, line, mark  ARGV token, lease, channel, window, 1 to join, 1
     * to count the channel's listeners  ->  {1} granted, {0, left ms, 1 if
     * first, listeners}, {-1} not in line */
    SCRIPT_WAIT,
    /* KEYS key, record, counter  ARGV token, ttl, "halt", "retry" or "look",
     * keep, "-" or "=fingerprint", the counter's shortest ttl, how to hand
     * over, mark  ->  {enum once_found, number, line, result} */
    SCRIPT_BEGIN,
    /* KEYS key, record  ARGV token, verdict, code, keep, "-" or
     * "=fingerprint", how long the key stays in ms (0: it is deleted, -1: it is
     * left alone), how to hand over, mark, result if it is kept  ->
     * {1 told or 0, enum release_reply, line}; "unbegun": 1 or 0 */
    SCRIPT_TELL,
    /* KEYS key, record  ARGV line  ->  1 removed, 0 not there, -1 in progress
     */
    SCRIPT_FORGET,
    SCRIPTS
};

/* What the release scripts reply. */
enum release_reply {
    RELEASE_NOT_THERE, /* neither the key nor the line has the token */
    RELEASE_REMOVED,
    RELEASE_HANDED_OVER,
    RELEASE_LEFT_LINE,
    RELEASE_NOT_ALLOWED, /* removed; this user may not hand a lock over */
    RELEASE_GAP          /* removed, and left to programs outside the line */
};

extern const struct script scripts[SCRIPTS];

#endif
