/* SPDX-License-Identifier: MIT */
/*
 * Chooses the script with which a shell completes commands, options, values and
 * names of held locks.
 *
 * Invariant: all that a script offers is from the tables of the command, or
 * from a server by completion_names(); no script has words of its own.
 */
#include "cli/completion.h"

#include <string.h>

#include "cli/completion_shells.h"
#include "cli/completion_words.h"

bool completion_print(const char *shell, FILE *out)
{
    /* In the order of completion_shells. */
    static void (*const print[])(FILE *) = {
        completion_bash, completion_zsh, completion_fish};

    for (size_t i = 0; completion_shells[i].text; i++) {
        if (strcmp(shell, completion_shells[i].text) == 0) {
            print[i](out);
            return true;
        }
    }
    return false;
}
