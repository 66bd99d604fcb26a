/* SPDX-License-Identifier: MIT */
/*
 * The Lua scripts, embedded by the build from scripts/NAME.lua together with
 * their SHA1. A script does everything that can fail before its first write
 * (begin.lua: the counter may skip a number), and reads a value with GETRANGE,
 * because another program may have stored half a gigabyte there. RELEASE, BEGIN
 * and TELL hand locks over, for which they derive the keys of the line; the
 * others touch only their KEYS. The first lines of each file say what the
 * script is called with and what it replies.
 */
#ifndef NXLOCK_WIRE_SCRIPT_H
#define NXLOCK_WIRE_SCRIPT_H

#include "base/slice.h"
#include "wire/script_id.h" /* enum script_id: SCRIPT_NAME for each NAME.lua */

struct script {
    const char *name;
    struct slice body;
    const char *sha1; /* 40 lower-case hex digits */
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
