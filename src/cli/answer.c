/* SPDX-License-Identifier: MIT */
/* Reads the values in a server's answer. */
#include "cli/answer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool number_read(const char *text, int64_t most, int64_t *number)
{
    const char *digits = text + (*text == '-');

    if (*digits == '\0' || digits[strspn(digits, "0123456789")] != '\0')
        return false;
    errno = 0;
    long long n = strtoll(text, NULL, 10);
    if (errno != 0 || n > most || n < -most)
        return false;
    *number = n;
    return true;
}

bool answer_number(
    const struct answer *answer, size_t item, int64_t most, int64_t *number)
{
    const char *text = answer_item(answer, item, NULL);

    return text && number_read(text, most, number);
}

struct slice answer_slice(const struct answer *answer, size_t item)
{
    struct slice value = {NULL, 0};

    value.data = answer_item(answer, item, &value.len);
    return value;
}
