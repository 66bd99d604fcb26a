/* SPDX-License-Identifier: MIT */
/* Preloaded: there is no memory for a name of the command's own, which ends
 * with its process id and the time (name_own()); there is for all else. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int asprintf(char **out, const char *format, ...);
int __asprintf_chk(char **out, int flag, const char *format, ...);
int vasprintf(char **out, const char *format, va_list arguments);

static int print(char **out, const char *format, va_list arguments)
{
    if (!strstr(format, ":%d:%llx"))
        return vasprintf(out, format, arguments);
    *out = NULL;
    return -1;
}

int asprintf(char **out, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    int length = print(out, format, arguments);
    va_end(arguments);
    return length;
}

/* The same, compiled with _FORTIFY_SOURCE. */
int __asprintf_chk(char **out, int flag, const char *format, ...)
{
    va_list arguments;

    (void)flag;
    va_start(arguments, format);
    int length = print(out, format, arguments);
    va_end(arguments);
    return length;
}
