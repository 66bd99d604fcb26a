/* SPDX-License-Identifier: MIT */
/*
 * A process that only waits. It blocks all signals, so what its group gets
 * stays pending, and /proc shows that: it need not run to be asked.
 *
 * Invariant: it keeps nothing of its parent's open, and does not outlive it.
 */
#include "cli/witness.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/descriptors.h"

#define PATH_ROOM 32
#define LINE_ROOM 256

_Noreturn static void wait_for_end(pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(0);
    descriptors_close_others(NULL, 0);
    for (;;)
        pause();
}

pid_t witness_start(pid_t group)
{
    pid_t self = getpid();
    pid_t witness = fork();

    if (witness == 0)
        wait_for_end(self);
    if (witness < 0)
        return 0;
    setpgid(witness, group);
    return witness;
}

bool witness_saw(pid_t witness, int signo)
{
    static const char title[] = "ShdPnd:"; /* pending for the whole process */
    char path[PATH_ROOM], line[LINE_ROOM];
    bool saw = true;

    snprintf(path, sizeof(path), "/proc/%d/status", (int)witness);
    FILE *file = witness > 0 ? fopen(path, "re") : NULL;
    while (file && fgets(line, sizeof(line), file)) {
        if (strncmp(line, title, strlen(title)) == 0)
            saw = strtoull(line + strlen(title), NULL, 16) >> (signo - 1) & 1;
    }
    if (file)
        fclose(file);
    return saw;
}

void witness_end(pid_t witness)
{
    if (witness <= 0)
        return;
    kill(witness, SIGKILL);
    while (waitpid(witness, NULL, __WALL) < 0 && errno == EINTR)
        ;
}
