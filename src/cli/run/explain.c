/* SPDX-License-Identifier: MIT */
/*
 * Explains why a command could not be started.
 */
#include "cli/run/explain.h"

#include <errno.h>
#include <string.h>

#include "cli/report/event.h"
#include "cli/name.h"
#include "cli/report/report.h"
#include "cli/servers/secret.h"

int explain_no_process(int error)
{
    const char *why = strerror(error);

    event_report((struct event){.kind = EVENT_FAILED, .why = why},
        "cannot start a process: %s%s", why,
        error == EAGAIN ? "; raise the limit of processes of this user or "
                          "its service (ulimit -u, TasksMax)"
                        : "");
    return error == EMFILE || error == ENFILE ? EXIT_INTERNAL : EXIT_NO_PROCESS;
}

/* Is CMD a single word that looks like a shell command? */
static bool is_shell_line(char *const *words)
{
    return !words[1] && strpbrk(words[0], " \t\n|&;<>()$`*?");
}

void explain_not_run(const struct args *args, char *const *words, int error)
{
    char word[DISCREET_ROOM], pasted[NAME_PASTED];
    const char *shown = discreet(word, words[0]);

    if (error != ENOENT || !is_shell_line(words)) {
        say("cannot run '%s': %s", shown, strerror(error));
        return;
    }
    /* A word that is not shown in full cannot be proposed. */
    bool whole =
        strcmp(shown, words[0]) == 0 && 4 * strlen(shown) + 8 < NAME_PASTED;
    say("cannot run '%s': there is no program of that name; for a shell "
        "command write: nxlock %s %s -c %s",
        shown, args->word, args->pasted,
        whole ? word_pasted(pasted, shown) : "'CMD...'");
}
