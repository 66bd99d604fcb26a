/* SPDX-License-Identifier: MIT */
/*
 * Finds and ends the processes that descend from this one.
 *
 * Invariant: a signal never reaches an unrelated process. A child that has not
 * been reaped keeps its pid, and only this process reaps it; any other
 * descendant is opened as a pidfd before it is examined. That no descendant is
 * left is decided by the kernel (ECHILD), never by a /proc that shows none.
 */
#include "cli/run/descendants.h"

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

enum mark {
    NOT_SEEN = 0,
    ON_THE_WAY, /* its chain of parents is being followed */
    OURS,
    NOT_OURS
};

struct process {
    pid_t pid;
    pid_t parent;
    pid_t group;
    unsigned long long start; /* ticks since boot */
    char state;
    enum mark mark;
};

struct processes {
    struct process *rows; /* owned; sorted by pid */
    size_t count;
    size_t room;
};

/* Reads /proc/PID/stat. 0, or an errno: ESRCH if the process does not exist or
 * is hidden from us. */
static int read_process(pid_t pid, struct process *process)
{
    char path[64];
    char text[512];

    snprintf(path, sizeof(path), "/proc/%ld/stat", (long)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    int why = errno;
    ssize_t length = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    if (fd >= 0) {
        why = length < 0 ? errno : ESRCH;
        close(fd);
    }
    if (length <= 0)
        return why == ENOENT || why == EACCES || why == EPERM ? ESRCH : why;
    text[length] = '\0';
    /* "PID (NAME) STATE PARENT GROUP ...": a name may hold anything. */
    const char *at = strrchr(text, ')');
    long parent = 0;
    long group = 0;
    if (!at || sscanf(at + 1,
                   " %c %ld %ld %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s"
                   " %*s %*s %*s %*s %llu",
                   &process->state, &parent, &group, &process->start) != 4)
        return EPROTO;
    process->pid = pid;
    process->parent = (pid_t)parent;
    process->group = (pid_t)group;
    process->mark = NOT_SEEN;
    return 0;
}

static bool add_process(struct processes *all, pid_t pid)
{
    if (all->count == all->room) {
        size_t room = all->room * 2 + 64;
        struct process *rows = realloc(all->rows, room * sizeof(*rows));
        if (!rows)
            return false;
        all->rows = rows;
        all->room = room;
    }
    all->rows[all->count++].pid = pid;
    return true;
}

/* The numbers of all processes. False: not all of them could be read. */
static bool read_numbers(struct processes *all)
{
    DIR *dir = opendir("/proc");
    bool ok = dir != NULL;

    while (ok) {
        errno = 0;
        struct dirent *entry = readdir(dir);
        if (!entry) {
            ok = errno == 0;
            break;
        }
        char *end;
        long pid = strtol(entry->d_name, &end, 10);
        if (*end == '\0' && pid > 0)
            ok = add_process(all, (pid_t)pid);
    }
    if (dir)
        closedir(dir);
    return ok;
}

static int by_pid(const void *a, const void *b)
{
    pid_t one = ((const struct process *)a)->pid;
    pid_t other = ((const struct process *)b)->pid;

    return (one > other) - (one < other);
}

bool descendants_visible(void)
{
    char text[32];
    ssize_t length = readlink("/proc/self", text, sizeof(text) - 1);

    if (length <= 0)
        return false;
    text[length] = '\0';
    /* The /proc of another pid namespace shows other pids. */
    return strtol(text, NULL, 10) == (long)getpid();
}

/* Reads all processes that are visible. False: the list is unreliable, and
 * left empty. Uses one descriptor at a time, because there may be no more. A
 * process that was our child when the pids were listed is still our child when
 * its entry is read, because only we reap. */
static bool read_processes(struct processes *all)
{
    size_t count = 0;

    memset(all, 0, sizeof(*all));
    bool ok = descendants_visible() && read_numbers(all);
    for (size_t i = 0; ok && i < all->count; i++) {
        int why = read_process(all->rows[i].pid, &all->rows[count]);
        if (why == 0)
            count++;
        else
            ok = why == ESRCH;
    }
    all->count = ok ? count : 0;
    if (all->count > 1)
        qsort(all->rows, all->count, sizeof(*all->rows), by_pid);
    return ok;
}

static struct process *find_process(const struct processes *all, pid_t pid)
{
    struct process wanted = {.pid = pid};

    return all->count == 0 ? NULL
                           : bsearch(&wanted, all->rows, all->count,
                                 sizeof(wanted), by_pid);
}

/* NULL: not in the list. A "parent" that is younger than its child is another
 * process: it got the pid of the real parent while the list was read. */
static struct process *parent_of(
    const struct processes *all, const struct process *process)
{
    struct process *parent = find_process(all, process->parent);

    return parent && parent->start > process->start ? NULL : parent;
}

static bool is_spared(const struct spared *spared, pid_t pid)
{
    for (size_t i = 0; spared && i < spared->count; i++) {
        if (spared->pids[i] == pid)
            return true;
    }
    return false;
}

/* Marks the descendants, except the spared ones and their descendants. Each
 * process is marked once, so chains of parents are not followed twice. */
static void mark_descendants(struct processes *all, const struct spared *spared)
{
    pid_t self = getpid();

    for (size_t i = 0; i < all->count; i++) {
        struct process *at = &all->rows[i];
        enum mark verdict = NOT_OURS;
        while (at && at->mark == NOT_SEEN) {
            at->mark = ON_THE_WAY;
            if (at->parent == self) {
                verdict = is_spared(spared, at->pid) ? NOT_OURS : OURS;
                break;
            }
            at = parent_of(all, at);
        }
        if (at && at->mark == OURS)
            verdict = OURS;
        for (at = &all->rows[i]; at && at->mark == ON_THE_WAY;
             at = parent_of(all, at))
            at->mark = verdict;
    }
}

/* Signals a descendant that is not our own child. It may end at any time, and
 * its pid may be reused, but a pidfd stays with one process. That process is
 * the one in the list if its start time is the same, and still our descendant
 * if its parent is the same or, if that has ended, this process. */
static void signal_by_pidfd(const struct process *process, int signo, bool wake)
{
#if defined(SYS_pidfd_open) && defined(SYS_pidfd_send_signal)
    struct process now;
    int fd = (int)syscall(SYS_pidfd_open, process->pid, 0);

    if (fd < 0)
        return;
    if (read_process(process->pid, &now) == 0 && now.start == process->start &&
        (now.parent == process->parent || now.parent == getpid())) {
        (void)syscall(SYS_pidfd_send_signal, fd, signo, NULL, 0);
        if (wake)
            (void)syscall(SYS_pidfd_send_signal, fd, SIGCONT, NULL, 0);
    }
    close(fd);
#else
    (void)process;
    (void)signo;
    (void)wake;
#endif
}

void descendants_signal(int signo, pid_t except)
{
    struct processes all;

    /* The list is empty if it cannot be read. */
    (void)read_processes(&all);
    mark_descendants(&all, NULL);
    for (size_t i = 0; i < all.count; i++) {
        const struct process *process = &all.rows[i];
        if (process->mark != OURS || process->group == except)
            continue;
        if (process->parent == getpid()) {
            kill(process->pid, signo);
            kill(process->pid, SIGCONT);
        } else {
            signal_by_pidfd(process, signo, true);
        }
    }
    free(all.rows);
}

/* Has this process children? Zombies count. */
static bool has_children(void)
{
    siginfo_t info;

    return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) == 0 ||
           errno != ECHILD;
}

bool descendants_spare(struct spared *spared)
{
    struct processes all;
    bool ok = true;

    memset(spared, 0, sizeof(*spared));
    /* Usually there are none, and then /proc is not needed. */
    if (!has_children())
        return true;
    spared->unknown = !read_processes(&all);
    if (all.count > 0) {
        spared->pids = calloc(all.count, sizeof(*spared->pids));
        ok = spared->pids != NULL;
    }
    for (size_t i = 0; ok && i < all.count; i++) {
        if (all.rows[i].parent == getpid())
            spared->pids[spared->count++] = all.rows[i].pid;
    }
    free(all.rows);
    return ok;
}

void descendants_free(struct spared *spared)
{
    free(spared->pids);
    memset(spared, 0, sizeof(*spared));
}

/* Reaps, and forgets spared children that were reaped: their pids may be reused
 * by other processes. */
static void reap_all(struct spared *spared)
{
    for (pid_t pid; (pid = waitpid(-1, NULL, WNOHANG | __WALL)) > 0;) {
        for (size_t i = 0; i < spared->count; i++) {
            if (spared->pids[i] == pid)
                spared->pids[i] = spared->pids[--spared->count];
        }
    }
}

/* Counts a child that is left, and remembers one to report: preferably one that
 * cannot be signalled, or a zombie that cannot be reaped. */
static void note_left(
    struct left *left, const struct process *process, int error)
{
    left->count++;
    if (left->pid != 0 && error == 0 && process->state != 'Z')
        return;
    left->pid = process->pid;
    left->state = process->state;
    left->error = error;
}

void descendants_kill(struct spared *spared, struct left *left)
{
    struct processes all;

    memset(left, 0, sizeof(*left));
    if (spared)
        reap_all(spared);
    if (!has_children())
        return;
    if (!read_processes(&all) || (spared && spared->unknown)) {
        left->count = 1;
        free(all.rows);
        return;
    }
    mark_descendants(&all, spared);
    /* Zombies count as parents: their children may have been read before they
     * were given to us. */
    for (size_t i = 0; i < all.count; i++) {
        const struct process *process = &all.rows[i];
        if (process->mark != OURS)
            continue;
        if (process->parent != getpid())
            signal_by_pidfd(process, SIGKILL, false);
        else
            note_left(
                left, process, kill(process->pid, SIGKILL) != 0 ? errno : 0);
    }
    free(all.rows);
    /* A child exists, but /proc hides it (hidepid). */
    if (left->count == 0 && (!spared || spared->count == 0))
        left->count = 1;
}
