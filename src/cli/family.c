/* SPDX-License-Identifier: MIT */
/*
 * Keeps: a signal never reaches a stranger. A child that is not reaped keeps
 * its number, and only this process reaps; whoever is further away is held by
 * a descriptor before it is looked at.
 */
#include "cli/family.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

struct process {
    pid_t pid;
    pid_t parent;
    pid_t group;
    bool ours;
};

struct table {
    struct process *rows; /* owned */
    size_t count;
    size_t room;
};

/* Reads /proc/PID/stat. False: there is none. */
static bool read_process(pid_t pid, struct process *process)
{
    char path[64];
    char text[512];

    snprintf(path, sizeof(path), "/proc/%ld/stat", (long)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t length = read(fd, text, sizeof(text) - 1);
    close(fd);
    if (length <= 0)
        return false;
    text[length] = '\0';
    /* "PID (NAME) STATE PARENT GROUP ...": a name may hold anything. */
    const char *at = strrchr(text, ')');
    long parent = 0;
    long group = 0;
    char state = 0;
    if (at == NULL ||
        sscanf(at + 1, " %c %ld %ld", &state, &parent, &group) != 3)
        return false;
    process->pid = pid;
    process->parent = (pid_t)parent;
    process->group = (pid_t)group;
    process->ours = false;
    return true;
}

static bool add(struct table *table, const struct process *process)
{
    if (table->count == table->room) {
        size_t room = table->room * 2 + 64;
        struct process *rows = realloc(table->rows, room * sizeof(*rows));
        if (rows == NULL)
            return false;
        table->rows = rows;
        table->room = room;
    }
    table->rows[table->count++] = *process;
    return true;
}

/* All processes of the system, as far as they can be seen. */
static void read_table(struct table *table)
{
    DIR *dir = opendir("/proc");

    memset(table, 0, sizeof(*table));
    if (dir == NULL)
        return;
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        struct process process;
        char *end;
        long pid = strtol(entry->d_name, &end, 10);
        if (*end == '\0' && pid > 0 && read_process((pid_t)pid, &process) &&
            !add(table, &process))
            break;
    }
    closedir(dir);
}

static bool is_ours(const struct table *table, pid_t pid)
{
    for (size_t i = 0; i < table->count; i++) {
        if (table->rows[i].pid == pid)
            return table->rows[i].ours;
    }
    return false;
}

/* Marks the descendants. A child may have a smaller number than its parent,
 * so until a pass finds none. */
static void mark(struct table *table)
{
    pid_t self = getpid();
    bool found;

    do {
        found = false;
        for (size_t i = 0; i < table->count; i++) {
            struct process *process = &table->rows[i];
            if (!process->ours && (process->parent == self ||
                                      is_ours(table, process->parent)))
                found = process->ours = true;
        }
    } while (found);
}

/* Does the line of its parents lead here? */
static bool descends(pid_t pid)
{
    struct process process;
    pid_t self = getpid();

    while (pid > 1 && read_process(pid, &process)) {
        if (process.parent == self)
            return true;
        pid = process.parent;
    }
    return false;
}

/* To who is not our own child: it may end, and its number be given to another
 * one, at any time; a descriptor stays with it. */
static void signal_far(pid_t pid, int signo)
{
#if defined(SYS_pidfd_open) && defined(SYS_pidfd_send_signal)
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);

    if (fd < 0)
        return;
    if (descends(pid)) {
        (void)syscall(SYS_pidfd_send_signal, fd, signo, NULL, 0);
        (void)syscall(SYS_pidfd_send_signal, fd, SIGCONT, NULL, 0);
    }
    close(fd);
#else
    (void)pid;
    (void)signo;
#endif
}

void family_signal(int signo, pid_t except)
{
    struct table table;

    read_table(&table);
    mark(&table);
    for (size_t i = 0; i < table.count; i++) {
        const struct process *process = &table.rows[i];
        if (!process->ours || process->group == except)
            continue;
        if (process->parent == getpid()) {
            kill(process->pid, signo);
            kill(process->pid, SIGCONT);
        } else {
            signal_far(process->pid, signo);
        }
    }
    free(table.rows);
}

static bool is_spared(const struct spared *spared, pid_t pid)
{
    for (size_t i = 0; spared != NULL && i < spared->count; i++) {
        if (spared->pids[i] == pid)
            return true;
    }
    return false;
}

bool family_spare(struct spared *spared)
{
    struct table table;
    siginfo_t info;
    bool ok = true;

    spared->pids = NULL;
    spared->count = 0;
    /* As a rule there are none, and /proc need not be read. */
    if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0)
        return true;
    read_table(&table);
    if (table.count > 0) {
        spared->pids = calloc(table.count, sizeof(*spared->pids));
        ok = spared->pids != NULL;
    }
    for (size_t i = 0; ok && i < table.count; i++) {
        if (table.rows[i].parent == getpid())
            spared->pids[spared->count++] = table.rows[i].pid;
    }
    free(table.rows);
    return ok;
}

void family_free(struct spared *spared)
{
    free(spared->pids);
    spared->pids = NULL;
    spared->count = 0;
}

size_t family_kill(const struct spared *spared, bool reap)
{
    struct table table;
    size_t left = 0;

    /* What has ended but is not reaped counts: its children may have been
     * read before it was, as still its own. */
    read_table(&table);
    for (size_t i = 0; i < table.count; i++) {
        const struct process *process = &table.rows[i];
        if (process->parent != getpid() || is_spared(spared, process->pid))
            continue;
        kill(process->pid, SIGKILL);
        if (reap)
            (void)waitpid(process->pid, NULL, WNOHANG);
        left++;
    }
    free(table.rows);
    return left;
}
