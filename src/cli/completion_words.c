/* SPDX-License-Identifier: MIT */
/*
 * Words of the completion scripts that are neither commands nor options, and
 * what values are.
 */
#include "cli/completion_words.h"

#include <string.h>

#include "cli/acl_rules.h"

const struct offer completion_first[] = {{"help", "explain a command"},
    {"completion", "print a script that completes words in a shell"},
    {"--help", "show the commands and the exit codes"},
    {"--version", "show the version"}, {NULL, NULL}};

const struct offer completion_shells[] = {
    {"bash", NULL}, {"zsh", NULL}, {"fish", NULL}, {NULL, NULL}};

struct offer completion_feature(size_t i)
{
    size_t commands = 0;

    while (acl_commands[commands].name) {
        if (i == commands++) {
            const char *name = acl_commands[i].name;
            return (struct offer){
                name, command_table[command_by_name(name)].purpose};
        }
    }
    i -= commands;
    return i < ACL_FEATURE_COUNT
               ? (struct offer){acl_features[i].name, acl_features[i].purpose}
               : (struct offer){NULL, NULL};
}

enum completion_value completion_value(const struct option *option)
{
    if (option->choices)
        return COMPLETE_CHOICES;
    if (option->type == VALUE_NAME)
        return COMPLETE_NAMES;
    if (strcmp(option->value, "FILE") == 0)
        return COMPLETE_FILES;
    return strcmp(option->value, "DIR") == 0 ? COMPLETE_FOLDERS
                                             : COMPLETE_NOTHING;
}

void completion_print_choices(FILE *out, const struct option *option)
{
    for (const struct choice *c = option->choices; c->name; c++)
        fprintf(out, "%s%s", c == option->choices ? "" : " ", c->name);
}

void completion_escape(FILE *out, const char *text, const char *special)
{
    for (; *text != '\0'; text++) {
        if (*text == '\'')
            fputs("'\\'", out); /* ends the quotes, and begins them again */
        else if (strchr(special, *text))
            fputc('\\', out);
        fputc(*text, out);
    }
}
