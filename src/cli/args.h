/* SPDX-License-Identifier: MIT */
/*
 * The command line after it was parsed: which command, which lock, with which
 * options. The table of options (table.h) says which member each one sets.
 */
#ifndef NXLOCK_CLI_ARGS_H
#define NXLOCK_CLI_ARGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <nxlock.h>

#include "cli/command_list.h"
#include "cli/name.h"

#define COMMAND(number, ...) CMD_##number,
enum command { COMMAND_LIST COMMANDS };
#undef COMMAND

/* --log: where the lines of the events go. */
enum log {
    LOG_NOWHERE,
    LOG_TO_SYSLOG,
    LOG_TO_STDERR,
    LOG_TO_JSON,
    LOG_TO_FILE
};

/* What the value of --log begins with, before the path of a file. */
#define LOG_FILE "file:"

/* The environment variable that names another socket of syslog. */
#define LOG_VARIABLE "NXLOCK_LOG_SOCKET"

enum on_lost { LOST_KILLS, LOST_WARNS };

/* Where the URLs come from. */
enum urls_from {
    URLS_GIVEN, /* an option or a variable */
    URLS_OF_CONF,
    URLS_DEFAULT
};

/* Options of run, and of once; times in ms, 0 if they are not given. */
struct run_args {
    int64_t at_least_ms;
    int64_t at_most_ms;
    int64_t every_ms;
    int64_t grace_ms; /* -1: not given; timing_settle() sets it */
    /* As they were written, for messages; NULL: not given. */
    const char *at_least, *at_most, *every, *grace;
    int64_t request_ms; /* the timeout of a request */
    int on_lost;        /* enum on_lost */
    bool leave;         /* --leave-descendants */
    bool pass_url;      /* NXLOCK_URL of the command keeps its passwords */
};

/* Exit codes of a command. */
struct codes {
    bool has[256];
};

/* What once does: run a command, or something with the record alone. */
enum once_action { ONCE_RUN, ONCE_SHOW, ONCE_CONFIRM, ONCE_FORGET };

/* Options of once; times in ms, 0 if they are not given. */
struct once_args {
    int64_t keep_ms; /* 0: the library's default */
    int64_t keep_trying_ms;
    const char *keep, *keep_trying; /* as they were written, or NULL */
    const char *fingerprint;        /* or NULL */
    const char *check;              /* or NULL */
    int on_doubt;                   /* an enum nxl_once_mode; -1: not given */
    struct codes done_on, retry_on;
    bool quiet;
    enum once_action action;
};

/* Parameters of the URLs that are options too; NULL: not given. */
struct parameter_args {
    const char *password_file, *cacert, *verify, *prefix;
};

struct conf;

struct args {
    enum command command;
    uint64_t given;   /* the options of the command line, see option_bit() */
    const char *word; /* the command as it was written */
    const char *name; /* of the lock; list: GLOB. list, doctor: or NULL */
    const char *also[NXL_NAMES_MAX - 1]; /* --also: names locked with it */
    size_t also_count;
    char shown[NAMES_SHOWN];  /* in messages, see names.h */
    char pasted[NAME_PASTED]; /* in commands that a message proposes */
    const char *token;        /* renew, release and unlock */
    char **child;             /* the words after "--", ends with NULL; NULL: the
                               * command runs nothing */
    const char *script;       /* -c, or NULL */
    char *shell[4];           /* with -c: what child points to */
    const char *urls[NXL_SERVERS_MAX]; /* -u, as often as it was given; then
                                        * those of source_settle() */
    size_t url_count;
    const char *url_file;        /* --url-file, or NULL */
    const char *url_source;      /* what messages call the origin of the URLs */
    const char *url_file_source; /* what names the file of the URLs, or NULL */
    enum urls_from url_from;     /* the same, for what depends on it */
    struct conf *conf;           /* owned: the configuration file, or NULL */
    char *url_text;              /* owned: what urls point into, or NULL */
    char *url_path;              /* owned: the file they are from, or NULL */
    struct parameter_args parameters; /* added to every URL */
    char *password;                   /* owned: of NXLOCK_PASSWORD, or NULL */
    bool password_shown; /* -u has a password, in the command line */
    int64_t wait_ms;     /* as nxl_lock_acquire() */
    int64_t ttl_ms;
    const char *ttl;        /* as it was written, or NULL */
    int64_t timeout_ms;     /* of a request, if no URL sets it; 0: default */
    int64_t max_ttl_ms;     /* the longest lease, if no URL sets it */
    int64_t lease_limit_ms; /* what --ttl and --at-least may be at most */
    struct run_args run;
    struct once_args work;
    int permits; /* --permits; 0: not given */
    int weight;  /* --weight; 0: not given */
    bool shared; /* -s */
    int busy_code;
    bool no_wait;        /* -n */
    const char *wait;    /* -w as it was written, or NULL */
    const char *metrics; /* run, once: --metrics, or NULL */
    bool force;          /* unlock */
    bool every_holder;   /* unlock: --all */
    const char *holder;  /* unlock: --holder, or NULL */
    bool yes;            /* unlock, once */
    bool line;           /* unlock: the line instead of the lock */
    bool records;        /* doctor, list: also those of nxlock once */
    bool verbose;
    int log;              /* enum log */
    const char *log_word; /* as it was written, or NULL */
    bool json;
    bool help;
};

/* Is it for a lock that others may hold too? */
static inline bool args_share(const struct args *args)
{
    return args->shared || args->permits > 1;
}

/* The lease when --ttl is not given: the library's own default, written out
 * because it goes into the child's environment. */
#define DEFAULT_TTL_MS 30000

/* --keep-trying when it is not given. */
#define KEEP_TRYING_MS 60000

#endif
