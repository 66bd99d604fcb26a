/* SPDX-License-Identifier: MIT */
/*
 * Matches names against GLOB. A lock and its record have keys that no single
 * pattern of the server describes, and a second SCAN would take as long as the
 * first. So the server is given a wider pattern, and names are matched here.
 *
 * Invariant: a name matches here if and only if it would match on a server.
 */
#include "cli/glob.h"

#include <stdlib.h>
#include <string.h>

/* Matches c against the class at *at, behind its '['; moves *at behind it. One
 * without a ']' ends with the pattern. */
static bool class_matches(const char **at, unsigned char c)
{
    const char *p = *at;
    bool inverse = *p == '^', found = false;

    for (p += inverse; *p != '\0' && *p != ']'; p++) {
        if (*p == '\\' && p[1] != '\0') {
            p++;
            found = found || (unsigned char)*p == c;
        } else if (p[1] == '-' && p[2] != '\0') {
            unsigned char one = (unsigned char)p[0], two = (unsigned char)p[2];
            found = found || (c >= one && c <= two) || (c >= two && c <= one);
            p += 2;
        } else {
            found = found || (unsigned char)*p == c;
        }
    }
    *at = p + (*p == ']');
    return found != inverse;
}

/* Matches c against what is at *at, which is no '*'; moves *at behind it. */
static bool byte_matches(const char **at, unsigned char c)
{
    const char *p = (*at)++;

    if (*p == '?')
        return true;
    if (*p == '[')
        return class_matches(at, c);
    if (*p == '\\' && p[1] != '\0')
        p = (*at)++;
    return (unsigned char)*p == c;
}

bool glob_matches(const char *glob, const char *name, size_t length)
{
    const char *star = NULL; /* behind the last '*' that was met */
    size_t i = 0, skipped = 0;

    while (i < length) {
        if (*glob == '*') {
            star = ++glob;
            skipped = i;
        } else if (*glob != '\0' &&
                   byte_matches(&glob, (unsigned char)name[i])) {
            i++;
        } else if (star) { /* the '*' takes one byte more */
            glob = star;
            i = ++skipped;
        } else {
            return false;
        }
    }
    return glob[strspn(glob, "*")] == '\0';
}

char *glob_around(const char *prefix, const char *glob)
{
    /* What follows a class or a backslash could become a part of it. */
    bool plain = glob[strcspn(glob, "[\\")] == '\0';
    char *pattern = malloc(2 * strlen(prefix) + strlen(glob) + sizeof("**"));
    char *at = pattern;

    if (!pattern)
        return NULL;
    *at++ = '*';
    for (; *prefix != '\0'; prefix++) {
        if (strchr("*?[]\\", *prefix))
            *at++ = '\\';
        *at++ = *prefix;
    }
    for (; plain && *glob != '\0'; glob++)
        *at++ = *glob;
    memcpy(at, "*", sizeof("*"));
    return pattern;
}
