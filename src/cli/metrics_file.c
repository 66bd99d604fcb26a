/* SPDX-License-Identifier: MIT */
/*
 * Writes the file of --metrics: into a new file in the same directory, which
 * then replaces the old one.
 *
 * The directory itself is locked meanwhile, so no lock file is left behind, and
 * what a run that was killed has left is removed by the next one.
 */
#include "cli/metrics_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <nxlock.h>

#include "cli/clock.h"

#define WAIT_MOST (5000 * NS_PER_MS)
#define PAUSE (5 * NS_PER_MS)
#define SIZE_MOST (64 << 20)
/* Nobody else's file has it, so what is found there can be removed. */
#define SUFFIX ".nxlock-new"

struct update {
    int directory; /* open and locked; -1: it is not */
    const char *base;
    char *fresh; /* base and SUFFIX */
    struct metrics_table table;
    char *why;
    size_t size;
};

static bool update_fails(struct update *u, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static bool update_fails(struct update *u, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(u->why, u->size, format, arguments);
    va_end(arguments);
    return false;
}

/* ------------------------------------------------------------ the directory */

static bool lock_directory(struct update *u)
{
    uint64_t end = nxl_now_ns() + WAIT_MOST;
    struct timespec pause = {0, PAUSE};

    while (flock(u->directory, LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            return update_fails(
                u, "cannot lock its directory: %s", strerror(errno));
        if (nxl_now_ns() >= end)
            return update_fails(u,
                "another process has kept its directory locked for 5 s; find "
                "it with lslocks(8)");
        nanosleep(&pause, NULL);
    }
    return true;
}

static bool open_directory(struct update *u, const char *path)
{
    const char *slash = strrchr(path, '/');
    char *folder = strndup(path, slash ? (size_t)(slash - path) + 1 : 0);

    u->base = slash ? slash + 1 : path;
    if (!folder || asprintf(&u->fresh, "%s" SUFFIX, u->base) < 0) {
        u->fresh = NULL;
        free(folder);
        return update_fails(u, "out of memory");
    }
    if (u->base[0] == '\0') {
        free(folder);
        return update_fails(u, "it is a directory; name a file in it");
    }
    u->directory =
        open(slash ? folder : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    free(folder);
    return u->directory >= 0 ||
           update_fails(u, "cannot open its directory: %s", strerror(errno));
}

/* ---------------------------------------------------------------- the file */

static char *read_all(struct update *u, int fd, size_t length)
{
    char *text = malloc(length + 1);
    size_t had = 0;
    ssize_t got = 1;

    while (text && had < length && got > 0) {
        got = read(fd, text + had, length - had);
        had += got > 0 ? (size_t)got : 0;
    }
    if (text && had == length) {
        text[length] = '\0';
        return text;
    }
    update_fails(u, "cannot read it: %s",
        !text     ? "out of memory"
        : got < 0 ? strerror(errno)
                  : "another process is changing it");
    free(text);
    return NULL;
}

/* The file of another program may be worth keeping. */
#define LEFT_ALONE                                                             \
    "so it is left as it is; name another file, or remove this one"

static bool read_rows(struct update *u, char *text, size_t length)
{
    /* A zero byte would hide what follows it. */
    size_t visible = strlen(text);
    long line = metrics_read(&u->table, text);

    if (line < 0)
        return update_fails(u, "out of memory");
    if (line > 0 || visible != length)
        return update_fails(u,
            "line %ld is not what nxlock writes, " LEFT_ALONE,
            line > 0 ? line : 1);
    return true;
}

static bool read_open_file(struct update *u, int fd)
{
    struct stat info;

    if (fstat(fd, &info) != 0)
        return update_fails(u, "cannot read it: %s", strerror(errno));
    if (!S_ISREG(info.st_mode))
        return update_fails(u, "it is not a regular file; name another one");
    if (info.st_size > SIZE_MOST)
        return update_fails(u, "it is larger than 64 MiB, " LEFT_ALONE);
    char *text = read_all(u, fd, (size_t)info.st_size);
    bool understood = text && read_rows(u, text, (size_t)info.st_size);
    free(text);
    return understood;
}

/* A file that does not exist yet has no rows. */
static bool read_metrics_file(struct update *u)
{
    int fd = openat(u->directory, u->base,
        O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

    if (fd < 0 && errno == ENOENT)
        return true;
    if (fd < 0 && errno == ELOOP)
        return update_fails(u, "it is a symbolic link; name the file itself");
    if (fd < 0)
        return update_fails(u, "cannot read it: %s", strerror(errno));
    bool read = read_open_file(u, fd);
    close(fd);
    return read;
}

static bool print_to(const struct metrics_table *table, int fd)
{
    FILE *out = fdopen(fd, "w");

    if (!out) {
        close(fd);
        return false;
    }
    metrics_print(table, out);
    /* Whatever umask says: node_exporter runs as another user. Without fsync()
     * the file could be empty after a power failure. */
    bool written = fflush(out) == 0 && !ferror(out) && fchmod(fd, 0644) == 0 &&
                   fsync(fd) == 0;
    int error = errno;
    if (fclose(out) == 0)
        errno = error;
    return written;
}

/* As in /tmp: there only the owner of a file may replace it. */
static bool is_sticky(const struct update *u)
{
    struct stat info;

    return fstat(u->directory, &info) == 0 && (info.st_mode & S_ISVTX) != 0;
}

static bool write_file(struct update *u)
{
    (void)unlinkat(u->directory, u->fresh, 0);
    int fd = openat(u->directory, u->fresh,
        O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (fd < 0)
        return update_fails(
            u, "cannot create %s beside it: %s", u->fresh, strerror(errno));
    if (print_to(&u->table, fd) &&
        renameat(u->directory, u->fresh, u->directory, u->base) == 0)
        return true;
    int error = errno;
    update_fails(u,
        error == EPERM && is_sticky(u)
            ? "%s: its directory is sticky, so only the owner of the file may "
              "replace it; give each user a file of its own, or use another "
              "directory"
            : "%s",
        strerror(error));
    (void)unlinkat(u->directory, u->fresh, 0);
    return false;
}

static bool change_row(
    struct update *u, const char *name, void (*change)(struct metrics_row *row))
{
    struct metrics_row *row = metrics_row(&u->table, name);

    if (row)
        change(row);
    else if (errno == E2BIG)
        update_fails(u,
            "it has %d names already, too many for a monitoring system; use "
            "--metrics for locks whose names stay the same",
            METRICS_NAMES);
    else
        update_fails(u, "out of memory");
    return row != NULL;
}

bool metrics_update(const char *path, const char *name,
    void (*change)(struct metrics_row *row), char *why, size_t size)
{
    struct update u = {.directory = -1, .why = why, .size = size};
    bool done = open_directory(&u, path) && lock_directory(&u) &&
                read_metrics_file(&u) && change_row(&u, name, change) &&
                write_file(&u);

    metrics_free(&u.table);
    free(u.fresh);
    if (u.directory >= 0)
        close(u.directory);
    return done;
}
