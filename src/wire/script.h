/* SPDX-License-Identifier: MIT */
/*
 * The Lua scripts, embedded by the build from scripts/NAME.lua together with
 * their SHA1. A script does everything that can fail before its first write,
 * touches only its KEYS, and reads a value with GETRANGE, because another
 * program may have stored half a gigabyte there.
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
    SCRIPT_RELEASE, /* KEYS key  ARGV token  ->  1 deleted, 0 not there */
    SCRIPTS_LOADED, /* the handshake loads those above; others go by EVAL */
    /* KEYS key  ARGV token, ttl  ->  OK, or nil if the key exists. For
     * servers whose SET knows no options. */
    SCRIPT_ACQUIRE = SCRIPTS_LOADED,
    /* KEYS key  ARGV token, ttl, old value  ->  OK, or nil: value differs */
    SCRIPT_TAKEOVER,
    SCRIPT_KEEP, /* KEYS key  ARGV token, ttl  ->  1 ttl set, 0 not there */
    /* KEYS key, counter  ARGV token, ttl, the counter's shortest ttl, and if
     * it replaces one, the old value  ->  a fencing token, or nil */
    SCRIPT_FENCE,
    /* KEYS key, counter  ARGV token, number, the counter's shortest ttl  ->
     * the counter, or 0 */
    SCRIPT_RAISE,
    SCRIPTS
};

extern const struct script scripts[SCRIPTS];

#endif
