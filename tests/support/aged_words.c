/* SPDX-License-Identifier: MIT */
/*
 * What 7.0 says, and what the ages say instead: errors as they were measured
 * on servers of each version, and the lines of INFO.
 */
#include "support/aged_inner.h"

#define WRONG_KIND "Operation against a key holding the wrong kind of value"
#define OOM "OOM command not allowed when used memory > 'maxmemory'."
#define NO_SUCH_CLIENT "-ERR Syntax error, try CLIENT (LIST | KILL ip:port)"
#define AUTH_UNASKED "-ERR AUTH <password> called without any password *"
#define MANY "Unknown subcommand or wrong number of arguments for "

/* 7.0 says where in a script; before, that was in front. 2.6 wraps what was
 * said to the script with no place, and line ends become blanks. */
#define IN_SCRIPT " script: *, on @user_script:*."
#define WRAP "-ERR Error running script (call to f_$s): "
#define WRAP_2(line) WRAP "@user_script:" line ": "
#define WRAP_3(line) WRAP_2(line) "@user_script: " line ": "
#define SLAVE "-READONLY You can't write against a read only slave."

const struct aged_words aged_words[] = {
    {AGE_2_X, "-NOAUTH *", "-ERR operation not permitted"},
    {AGE_2_X, "-WRONGPASS *", "-ERR invalid password"},
    {AGE_2_2, AUTH_UNASKED, "+OK"},
    {AGE_2_4 | AGE_2_6, AUTH_UNASKED,
        "-ERR Client sent AUTH, but no password is set"},
    {AGE_2_X, "-WRONGTYPE " WRONG_KIND, "-ERR " WRONG_KIND},
    {AGE_2_2 | AGE_2_4, "-" OOM,
        "-ERR command not allowed when used memory > 'maxmemory'"},
    {AGE_2_2 | AGE_2_4, "-MASTERDOWN *",
        "-ERR link with MASTER is down and slave-serve-stale-data is set to "
        "no"},
    {AGE_2_6, "-MASTERDOWN *",
        "-MASTERDOWN Link with MASTER is down and slave-serve-stale-data is "
        "set to 'no'."},
    {AGE_2_X, "-READONLY You can't write against a read only replica.", SLAVE},
    {AGE_2_X, "-ERR DB index is out of range", "-ERR invalid DB index"},
    {AGE_2_X, "-ERR invalid expire time in '*' command",
        "-ERR invalid expire time in SETEX"},
    {AGE_2_4 | AGE_2_6, "-ERR wrong number of arguments for 'client|*' *",
        NO_SUCH_CLIENT},
    {AGE_2_4 | AGE_2_6, "-ERR unknown subcommand '*'. Try CLIENT HELP.",
        NO_SUCH_CLIENT},
    {AGE_2_6, "-ERR wrong number of arguments for 'script|*' *",
        "-ERR Unknown SCRIPT subcommand or wrong # of args."},
    {AGE_2_6, "-ERR unknown subcommand '*'. Try SCRIPT HELP.",
        "-ERR Unknown SCRIPT subcommand or wrong # of args."},
    {AGE_6_2, "-ERR invalid expire time in '*' command",
        "-ERR invalid expire time in $1"},
    {AGE_6_2, "-ERR unknown subcommand '*'. Try * HELP.",
        "-ERR " MANY "'$1'. Try $2 HELP."},
    {AGE_6_2, "-NOPERM this user has no permissions to run the '*' command",
        "-NOPERM this user has no permissions to run the '$1' command or its "
        "subcommand"},
    {AGE_6_2, "-ERR Unknown Redis command called from script" IN_SCRIPT,
        WRAP_3("$2") "Unknown Redis command called from Lua script"},
    {AGE_6_2,
        "-ERR Wrong number of args calling Redis command from script" IN_SCRIPT,
        WRAP_3(
            "$2") "Wrong number of args calling Redis command From Lua script"},
    {AGE_6_2, "-ERR This Redis command is not allowed from script" IN_SCRIPT,
        WRAP_3("$2") "This Redis command is not allowed from scripts"},
    {AGE_6_2, "-ERR The user executing the script *" IN_SCRIPT,
        WRAP_3("$3") "The user executing the script $1"},
    {AGE_6_2, "-READONLY *" IN_SCRIPT, WRAP_3("$3") "-READONLY $1"},
    {AGE_6_2, "-OOM *" IN_SCRIPT, WRAP_3("$3") "-OOM $1"},
    {AGE_6_2, "-MISCONF *" IN_SCRIPT, WRAP_3("$3") "-MISCONF $1"},
    {AGE_6_2, "-NOREPLICAS *" IN_SCRIPT, WRAP_3("$3") "-NOREPLICAS $1"},
    {AGE_6_2, "-ERR Script killed by user *" IN_SCRIPT,
        WRAP_2("$3") "Script killed by user $1"},
    {AGE_6_2, "-ERR user_script:*" IN_SCRIPT, WRAP_2("$3") "user_script:$1"},
    {AGE_6_2, "-*" IN_SCRIPT, WRAP_2("$3") "$1"},

    {AGE_2_6, "-READONLY *" IN_SCRIPT, WRAP SLAVE "   "},
    {AGE_2_6, "-OOM *" IN_SCRIPT, WRAP "-OOM $1   "},
    {AGE_2_6, "-MISCONF *" IN_SCRIPT, WRAP "-MISCONF $1   "},
    {AGE_2_6, "-WRONGTYPE " WRONG_KIND IN_SCRIPT, WRAP "ERR " WRONG_KIND " "},
    {AGE_2_6, "-ERR This Redis command is not allowed from script" IN_SCRIPT,
        WRAP "This Redis command is not allowed from scripts "},
    {AGE_2_6, "-ERR Script killed by user *" IN_SCRIPT,
        WRAP "Script killed by user $1 "},
    {AGE_2_6, "-ERR user_script:*" IN_SCRIPT, WRAP "user_script:$1 "},
    {AGE_2_6, "-*" IN_SCRIPT, WRAP "$1 "},
    {0, NULL, NULL},
};

/* Of 7.0's fields those that the old ones had. */
#define FIELDS_2_2                                                             \
    "redis_version redis_git_sha1 redis_git_dirty arch_bits "                  \
    "multiplexing_api process_id uptime_in_seconds uptime_in_days lru_clock "  \
    "used_cpu_sys used_cpu_user used_cpu_sys_children "                        \
    "used_cpu_user_children connected_clients connected_slaves "               \
    "blocked_clients used_memory used_memory_human used_memory_rss "           \
    "mem_fragmentation_ratio loading aof_enabled "                             \
    "total_connections_received total_commands_processed expired_keys "        \
    "evicted_keys keyspace_hits keyspace_misses pubsub_channels "              \
    "pubsub_patterns role master_host master_port master_link_status "         \
    "master_last_io_seconds_ago master_sync_in_progress db*"
#define FIELDS_2_4                                                             \
    FIELDS_2_2 " gcc_version run_id used_memory_peak "                         \
               "used_memory_peak_human mem_allocator latest_fork_usec"

const char *aged_info_fields(const struct age *age)
{
    if (age->bit == AGE_2_2)
        return FIELDS_2_2;
    return age->bit == AGE_2_4 ? FIELDS_2_4 : NULL;
}

const struct aged_field aged_fields[] = {
    {AGE_2_6, "maxmemory*", NULL},
    {AGE_2_6, "server_time_usec", NULL},
    {AGE_2_6 | AGE_6_2, "monotonic_clock", NULL},
    {0, NULL, NULL},
};
