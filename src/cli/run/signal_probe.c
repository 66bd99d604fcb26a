/* SPDX-License-Identifier: MIT */
/*
 * The probe is a process that only waits. It blocks all signals, so a signal to
 * its group stays pending and can be read in /proc, even if the probe never
 * runs.
 *
 * Invariant: it keeps no descriptor of its parent open, and does not outlive
 * it.
 */
#include "cli/run/signal_probe.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/run/descriptors.h"

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

pid_t signal_probe_start(pid_t group)
{
    pid_t self = getpid();
    pid_t probe = fork();

    if (probe == 0)
        wait_for_end(self);
    if (probe < 0)
        return 0;
    setpgid(probe, group);
    return probe;
}

bool signal_probe_saw(pid_t probe, int signo)
{
    static const char title[] = "ShdPnd:"; /* pending for the whole process */
    char path[PATH_ROOM], line[LINE_ROOM];
    bool saw = true;

    snprintf(path, sizeof(path), "/proc/%d/status", (int)probe);
    FILE *file = probe > 0 ? fopen(path, "re") : NULL;
    while (file && fgets(line, sizeof(line), file)) {
        if (strncmp(line, title, strlen(title)) == 0)
            saw = strtoull(line + strlen(title), NULL, 16) >> (signo - 1) & 1;
    }
    if (file)
        fclose(file);
    return saw;
}

void signal_probe_end(pid_t probe)
{
    if (probe <= 0)
        return;
    kill(probe, SIGKILL);
    while (waitpid(probe, NULL, __WALL) < 0 && errno == EINTR)
        ;
}
