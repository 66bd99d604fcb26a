/* SPDX-License-Identifier: MIT */
/* The file of the board. */
#include "once_board.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static struct board *map(int fd)
{
    struct stat file;
    void *board = MAP_FAILED;
    if (fd >= 0 && fstat(fd, &file) == 0)
        board = mmap(NULL, (size_t)file.st_size, PROT_READ | PROT_WRITE,
            MAP_SHARED, fd, 0);
    if (fd >= 0)
        close(fd);
    return board == MAP_FAILED ? NULL : board;
}

struct board *board_create(const char *path, uint64_t keys)
{
    size_t size =
        sizeof(struct board) + (size_t)keys * sizeof(struct board_key);
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, (off_t)size) != 0)
        return NULL;
    struct board *board = map(fd);
    if (board)
        board->keys = keys;
    return board;
}

struct board *board_open(const char *path)
{
    return map(open(path, O_RDWR | O_CLOEXEC));
}

void board_print(const struct board *board)
{
    static const char *const names[COUNTS] = {
        [COUNT_DOUBT] = "doubt",
        [COUNT_TOLD] = "told",
        [COUNT_TELL_LOST] = "tell_lost",
        [COUNT_STOPPED] = "stopped",
        [COUNT_WRONG] = "wrong",
    };
    for (int i = 0; i < COUNTS; i++)
        printf("%s %llu\n", names[i], (unsigned long long)board->count[i]);
}
