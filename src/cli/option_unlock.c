/* SPDX-License-Identifier: MIT */
/* The options of unlock alone. Keeps: what is not all of a token is none. */
#include "cli/option.h"
#include "cli/secret.h"

int option_set_token(
    struct args *args, const char *shown, const char *value)
{
    if (!is_token(value)) {
        say("%s wants the word that 'nxlock acquire' printed, UUID or "
            "UUID@label, all of it", shown);
        return EXIT_USAGE;
    }
    args->token = value;
    return 0;
}

int option_set_force(
    struct args *args, const char *shown, const char *value)
{
    (void)shown;
    (void)value;
    args->force = true;
    return 0;
}

int option_set_yes(
    struct args *args, const char *shown, const char *value)
{
    (void)shown;
    (void)value;
    args->yes = true;
    return 0;
}
