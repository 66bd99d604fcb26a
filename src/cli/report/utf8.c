/* SPDX-License-Identifier: MIT */
/* Recognizes UTF-8: RFC 3629, section 4. */
#include "cli/report/utf8.h"

size_t utf8_length(const char *given, size_t length)
{
    const unsigned char *text = (const unsigned char *)given;
    unsigned char first = text[0];
    unsigned char low = 0x80;
    unsigned char high = 0xbf;
    size_t size = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;

    if ((first >= 0x80 && first < 0xc2) || first > 0xf4 || size > length)
        return 0;
    if (first == 0xe0)
        low = 0xa0; /* shorter forms exist */
    else if (first == 0xed)
        high = 0x9f; /* surrogates */
    else if (first == 0xf0)
        low = 0x90;
    else if (first == 0xf4)
        high = 0x8f; /* beyond U+10FFFF */
    for (size_t i = 1; i < size; i++) {
        if (text[i] < low || text[i] > high)
            return 0;
        low = 0x80;
        high = 0xbf;
    }
    return size;
}

bool utf8_is_valid(const char *text, size_t length)
{
    for (size_t size; length > 0; text += size, length -= size) {
        size = utf8_length(text, length);
        if (size == 0)
            return false;
    }
    return true;
}
