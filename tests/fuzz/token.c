/* SPDX-License-Identifier: MIT */
/*
 * Tokens. What is one is decided a second time here, by a regular expression;
 * and a token, taken apart and written again, is the same one. So a value that
 * differs in any byte from what nxlock writes is of another program.
 */
#include "model/token.h"

#include <inttypes.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/fuzz.h"

#define MOST 300 /* bytes of an input: more than a token may have */
#define HEX "[0-9a-f]"
#define DIGITS_MAX 10 /* of PERMITS_MAX */

enum { ALL, SHARE, WEIGHT, PERMITS, AT, LABEL, PARTS };

/* What token.h and permits in nxlock.h say of it. */
static const char shape[] =
    "^" HEX "{8}-" HEX "{4}-[48]" HEX "{3}-[89ab]" HEX "{3}-" HEX "{12}"
    "([+]([1-9][0-9]*)/(0|[1-9][0-9]*))?(@([!-~]+))?$";

static bool matches(const char *text, regmatch_t part[PARTS])
{
    static regex_t compiled;
    static bool known;

    if (!known)
        CHECK(regcomp(&compiled, shape, REG_EXTENDED) == 0);
    known = true;
    return regexec(&compiled, text, PARTS, part, 0) == 0;
}

static size_t len_of(const regmatch_t *part)
{
    return part->rm_so < 0 ? 0 : (size_t)(part->rm_eo - part->rm_so);
}

static uint64_t number_of(const char *text, const regmatch_t *part)
{
    return len_of(part) > DIGITS_MAX ? UINT64_MAX
                                     : strtoull(text + part->rm_so, NULL, 10);
}

static bool share_is_allowed(uint64_t weight, uint64_t permits)
{
    if (permits == 0)
        return weight == 1;
    return permits > 1 && permits <= PERMITS_MAX && weight <= permits;
}

static bool is_token(const char *text, size_t len, regmatch_t part[PARTS])
{
    if (memchr(text, '\0', len) || !matches(text, part))
        return false;
    if (part[SHARE].rm_so >= 0 &&
        !share_is_allowed(
            number_of(text, &part[WEIGHT]), number_of(text, &part[PERMITS])))
        return false;
    return len_of(&part[LABEL]) <= LABEL_MAX;
}

static void check_parts(const char *text, size_t len, const regmatch_t *part)
{
    const struct slice token = {text, len};
    const struct share share = token_share(token);
    const char *label = token_label(token);
    bool shares = part[SHARE].rm_so >= 0;
    char again[TOKEN_MAX + 1];

    CHECK(share.weight == (shares ? number_of(text, &part[WEIGHT]) : 0));
    CHECK(share.permits == (shares ? number_of(text, &part[PERMITS]) : 0));
    CHECK(token_has_share(token) == shares);
    CHECK(part[LABEL].rm_so < 0 ? !label : label == text + part[LABEL].rm_so);
    CHECK(token_layout(again, share, label) == len);
    memcpy(again, text, UUID_TEXT);
    CHECK(memcmp(again, text, len + 1) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    regmatch_t part[PARTS];
    size_t len;
    char *text = fuzz_expand(data, size, MOST, &len);
    bool valid;

    if (len > 0 && text[len - 1] == '\n') /* of a corpus file */
        text[--len] = '\0';
    valid = is_token(text, len, part);
    fuzz_count(valid);
    CHECK(token_valid((struct slice){text, len}) == valid);
    if (valid) {
        check_parts(text, len, part);
    } else {
        const struct share share = token_share((struct slice){text, len});
        CHECK(share.weight == 0 && share.permits == 0);
        CHECK(!token_label((struct slice){text, len}));
    }
    free(text);
    return 0;
}
