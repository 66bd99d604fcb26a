/* SPDX-License-Identifier: MIT */
/*
 * Asks the user.
 *
 * Invariant: only a y or yes that was typed, or --yes, means yes.
 */
#include "cli/look/ask.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/report/report.h"

static bool answer_is_yes(void)
{
    char answer[16];

    if (!fgets(answer, sizeof(answer), stdin))
        return false;
    answer[strcspn(answer, "\n")] = '\0';
    return strcmp(answer, "y") == 0 || strcmp(answer, "yes") == 0;
}

int ask_user(const struct args *args, const char *question, const char *what)
{
    if (args->yes)
        return 0;
    if (!isatty(STDIN_FILENO)) {
        say("standard input is not a terminal, cannot ask; add --yes to %s "
            "anyway",
            what);
        return EXIT_USAGE;
    }
    fputs(question, stderr);
    fflush(stderr);
    if (answer_is_yes())
        return 0;
    say("nothing was changed");
    return EXIT_BUSY;
}
