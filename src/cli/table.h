/* SPDX-License-Identifier: MIT */
/*
 * The one table of commands, options and exit codes. Parsing, --help,
 * suggestions, shell completion and the lists in the manual pages are made from
 * it.
 */
#ifndef NXLOCK_CLI_TABLE_H
#define NXLOCK_CLI_TABLE_H

#include "cli/args.h"

enum value_type {
    VALUE_NONE,     /* no value: the member, a bool, becomes true */
    VALUE_DURATION, /* an int64_t, in milliseconds */
    VALUE_NUMBER,   /* an int */
    VALUE_CODES,    /* a struct codes: "0,3" */
    VALUE_CHOICE,   /* an int: the number of one of the choices */
    VALUE_TEXT,     /* a const char *; only once, and not empty */
    VALUE_TOKEN,    /* a const char *, with the form of a token */
    VALUE_ID,   /* a const char *, the beginning of a token as it is shown */
    VALUE_WORD, /* a const char *, with the form of a fingerprint */
    VALUE_URL,  /* added to the URLs */
    VALUE_NAME, /* the lock */
    VALUE_ALSO, /* added to the names that are locked with it */
    VALUE_PARAMETER /* of a URL, a const char *; only once */
};

struct choice {
    const char *name; /* NULL ends the list */
    int number;
};

struct option {
    char letter;          /* 0: none */
    const char *name;     /* without "--" */
    const char *value;    /* placeholder; NULL: the option takes no value */
    const char *variable; /* environment variable, or URL parameter, that
                           * means the same; or NULL */
    enum value_type type;
    unsigned commands;   /* bits 1 << enum command */
    size_t member;       /* offset in struct args */
    size_t written;      /* DURATION, CHOICE: of the value as it was written, a
                          * const char *; 0: not kept */
    int64_t least, most; /* DURATION, NUMBER; most 0: no limit */
    const char *range;   /* the same in words, for messages */
    const struct choice *choices;
    const char *help;
    const char *implied; /* PARAMETER: the value, if the option takes none */
    bool in_file; /* the configuration file may set it: not what changes a lock
                   * or a record of its own accord, nor what an exit code
                   * means */
};

struct command_info {
    const char *name, *operands, *purpose;
    const char *synopsis; /* one form per row; messages show the first */
    bool name_optional;
    bool takes_token; /* as the second word */
    bool leases;      /* needs a lease, so --ttl applies */
    bool runs;        /* a command, after "--" or -c */
};

struct exit_info {
    const char *code;
    unsigned commands;
    const char *meaning;
};

extern const struct command_info command_table[COMMANDS];
extern const struct exit_info exit_table[];
extern const size_t exit_count;

/* The words that once takes before NAME, and what one of them means; ONCE_RUN:
 * it is none of them. */
extern const struct choice once_actions[];
enum once_action once_action(const char *word);

/* The command of that name; COMMANDS: there is none. */
enum command command_by_name(const char *word);

/* Iterates over the options of a command; *i is 0 at first. NULL: no more. The
 * password is no option: other users could read it in the command line. */
const struct option *option_at(enum command command, size_t *i);

/* The same, of all commands: an option that differs between commands is there
 * several times. */
const struct option *option_any(size_t *i);

/* Its bit among those of args->given. */
uint64_t option_bit(const struct option *option);

/* Finds two options of the command line that exclude each other. */
bool options_exclude(const struct args *args, const struct option **one,
    const struct option **other);

/* The value of a parameter of the URLs; NULL: it was not given, or is another
 * kind of option. */
const char *option_parameter(
    const struct args *args, const struct option *option);

/* Is it a parameter for TLS only? */
bool option_of_tls(const struct option *option);

/* Is it a parameter that belongs to one server, because it says how to log in
 * and whom to trust? run passes these on to CMD. The prefix is the one of a
 * client, whatever its servers. */
bool option_of_server(const struct option *option);

/* Does it say how the command that once runs is run, or waited for, or what its
 * end means? */
bool option_of_cmd(const struct option *option);

/* Does it name servers? */
bool option_is_server(const struct option *option);

/* Is its value the path of a file or a directory? */
bool option_names_file(const struct option *option);

/* The option of any command with that name, in which '_' may stand for '-', or
 * NULL. */
const struct option *option_named(const char *name);

/* The option of this command with that letter or, if letter is 0, with that
 * name, in which '_' may stand for '-'; NULL: there is none. */
const struct option *option_find(
    enum command command, char letter, const char *name, size_t length);

#endif
