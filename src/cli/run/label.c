/* SPDX-License-Identifier: MIT */
/*
 * Makes the label of a lock, "host:pid:program".
 *
 * Invariant: a label is one printable word, whatever the host and the program
 * are called.
 */
#include "cli/run/label.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *label_make(char *out, long pid, const char *program)
{
    char host[65] = "";
    const char *slash = strrchr(program, '/');

    if (gethostname(host, sizeof(host) - 1) != 0 || host[0] == '\0')
        snprintf(host, sizeof(host), "localhost");
    if (slash && slash[1] != '\0')
        program = slash + 1;
    snprintf(out, LABEL_ROOM, "%s:%ld:%s", host, pid, program);
    for (char *at = out; *at != '\0'; at++) {
        if (*at <= ' ' || *at > '~')
            *at = '_';
    }
    return out;
}

/* For acquire: the holder is the caller, perhaps a script, since this process
 * ends in a moment. */
const char *label_of_caller(char *out)
{
    char path[64];
    char name[64] = "";
    long pid = (long)getppid();

    snprintf(path, sizeof(path), "/proc/%ld/comm", pid);
    FILE *file = fopen(path, "re");
    if (file) {
        if (fgets(name, sizeof(name), file))
            name[strcspn(name, "\n")] = '\0';
        fclose(file);
    }
    return label_make(out, pid, name[0] != '\0' ? name : "nxlock");
}

bool label_read(const char *label, struct label_parts *parts)
{
    const char *colon = strchr(label, ':');
    char *end;

    if (!colon || colon[1] < '0' || colon[1] > '9')
        return false;
    parts->host = (size_t)(colon - label);
    parts->pid = strtol(colon + 1, &end, 10);
    if (*end != ':' || parts->pid == LONG_MAX)
        return false;
    parts->program = end + 1;
    return true;
}
