/* SPDX-License-Identifier: MIT */
/* What the benchmark needs of a server of tests/support beside its places. */
#include "bench.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void server_version(struct redis *server, char version[BENCH_VERSION_SIZE])
{
    redisReply *reply = redis_command(server, "INFO", "server", NULL);
    const char *at = strstr(reply->str, "valkey_version:");

    if (!at)
        at = strstr(reply->str, "redis_version:");
    snprintf(version, BENCH_VERSION_SIZE, "%.*s", (int)strcspn(at, "\r\n"), at);
    freeReplyObject(reply);
}

int server_place(const struct redis *server, const cpu_set_t *cpus)
{
    char path[64];
    struct dirent *entry;
    DIR *tasks;
    int rc = 0;

    snprintf(path, sizeof(path), "/proc/%d/task", (int)server->pid);
    tasks = opendir(path);
    if (!tasks)
        return -1;
    while ((entry = readdir(tasks))) {
        pid_t thread = (pid_t)strtol(entry->d_name, NULL, 10);

        if (thread > 0 && sched_setaffinity(thread, sizeof(*cpus), cpus))
            rc = -1;
    }
    closedir(tasks);
    return rc;
}

bool bench_number(const char *text, double low, double high, double *out)
{
    char *end;

    *out = strtod(text, &end);
    return end != text && !*end && *out >= low && *out <= high;
}
