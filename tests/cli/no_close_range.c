/* SPDX-License-Identifier: MIT */
/*
 * Preloaded: a system without close_range(), as before Linux 5.9 and in some
 * containers, whose processes may have 2^30 descriptors.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MANY (1L << 30)
#define WORDS 6 /* of a system call */

long syscall(long number, ...)
{
    long (*next)(long, ...);
    long word[WORDS];
    va_list words;

#if defined(SYS_close_range)
    if (number == SYS_close_range) {
        errno = ENOSYS;
        return -1;
    }
#endif
    *(void **)&next = dlsym(RTLD_NEXT, "syscall");
    va_start(words, number);
    for (int i = 0; i < WORDS; i++)
        word[i] = va_arg(words, long);
    va_end(words);
    return next(number, word[0], word[1], word[2], word[3], word[4], word[5]);
}

int close_range(unsigned first, unsigned last, int flags)
{
    (void)first;
    (void)last;
    (void)flags;
    errno = ENOSYS;
    return -1;
}

long sysconf(int name)
{
    long (*next)(int);

    *(void **)&next = dlsym(RTLD_NEXT, "sysconf");
    return name == _SC_OPEN_MAX ? MANY : next(name);
}
