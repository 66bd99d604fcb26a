/* SPDX-License-Identifier: MIT */
/*
 * An old server for the command's tests: aged PROFILE SOCKET puts the proxy of
 * support/aged.h in front of the redis-server at SOCKET, prints its URL, and
 * ends when standard input does.
 */
#include "support/aged.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct {
    const char *name;
    enum aged_profile profile;
} profiles[] = {{"2.2", AGED_2_2}, {"2.4", AGED_2_4}, {"2.6", AGED_2_6}};

int main(int argc, char **argv)
{
    struct redis behind = {0};
    char byte;

    for (size_t i = 0; i < sizeof(profiles) / sizeof(profiles[0]); i++) {
        if (argc != 3 || strcmp(argv[1], profiles[i].name) != 0)
            continue;
        snprintf(behind.path, sizeof(behind.path), "%s", argv[2]);
        struct aged *a = aged_start(profiles[i].profile, &behind);
        printf("%s\n", aged_url(a));
        fflush(stdout);
        while (read(STDIN_FILENO, &byte, 1) > 0)
            ;
        aged_stop(a);
        return 0;
    }
    fprintf(stderr, "usage: aged 2.2|2.4|2.6 SOCKET\n");
    return 2;
}
