/* SPDX-License-Identifier: MIT */
/*
 * Which commands an old server has, of those that nxlock and its scripts send.
 * Any other is unknown to it, so nothing that came later can slip through.
 */
#include "support/aged_inner.h"

/* clang-format off */
const struct aged_command aged_commands[] = {
    {"auth", {2, 2, 2}, ' '}, {"client", {0, -2, -2}, ' '},
    {"config", {-2, -2, -2}, ' '}, {"dbsize", {1, 1, 1}, ' '},
    {"del", {-2, -2, -2}, 'w'}, {"discard", {1, 1, 1}, ' '},
    {"eval", {0, 0, -3}, ' '}, {"evalsha", {0, 0, -3}, ' '},
    {"exec", {1, 1, 1}, ' '}, {"exists", {2, 2, 2}, ' '},
    {"expireat", {3, 3, 3}, 'w'}, {"flushall", {1, 1, 1}, 'w'},
    {"get", {2, 2, 2}, ' '}, {"getrange", {4, 4, 4}, ' '},
    {"getset", {3, 3, 3}, 'w'}, {"incr", {2, 2, 2}, 'w'},
    {"info", {1, 1, -1}, ' '}, {"llen", {2, 2, 2}, ' '},
    {"lpush", {3, -3, -3}, 'w'}, {"multi", {1, 1, 1}, ' '},
    {"pexpire", {0, 0, 3}, 'w'}, {"ping", {1, 1, 1}, ' '},
    {"psetex", {0, 0, 4}, 'w'}, {"pttl", {0, 0, 2}, ' '},
    {"publish", {3, 3, 3}, ' '}, {"rpush", {3, -3, -3}, 'w'},
    {"script", {0, 0, -2}, ' '}, {"select", {2, 2, 2}, ' '},
    {"set", {3, 3, 3}, 'w'}, {"setex", {4, 4, 4}, 'w'},
    {"setnx", {3, 3, 3}, 'w'}, {"slaveof", {3, 3, 3}, ' '},
    {"subscribe", {-2, -2, -2}, ' '}, {"substr", {4, 4, 4}, ' '},
    {"time", {0, 0, 1}, 'r'}, {"ttl", {2, 2, 2}, ' '}, {"type", {2, 2, 2}, ' '},
    {"unsubscribe", {-1, -1, -1}, ' '}, {"unwatch", {1, 1, 1}, ' '},
    {"watch", {-2, -2, -2}, ' '}, {"zadd", {4, -4, -4}, 'w'},
    {"zcard", {2, 2, 2}, ' '}, {"zcount", {4, 4, 4}, ' '},
    {"zrange", {-4, -4, -4}, ' '}, {"zrank", {3, 3, 3}, ' '},
    {"zrem", {3, -3, -3}, 'w'}, {"zremrangebyscore", {4, 4, 4}, 'w'},
    {"zscore", {3, 3, 3}, ' '},
    {NULL, {0}, ' '},
};
/* clang-format on */

#define UNKNOWN_2 "-ERR unknown command '*'"
#define UNKNOWN_6 "-ERR unknown command `*`, with args beginning with: "
#define UNKNOWN_7 "-ERR unknown command '*', with args beginning with: "
#define DENIED "-NOPERM this user has no permissions to run the '*' command"

const struct age aged_ages[] = {
    [AGED_PLAIN] = {.version = NULL,
        .column = -1,
        .unknown = UNKNOWN_7,
        .argument = "'*' ",
        .denied = DENIED},
    [AGED_2_2] = {.bit = AGE_2_2,
        .version = "2.2.15",
        .column = 0,
        .unknown = UNKNOWN_2,
        .denied = DENIED,
        .queue_runs_on = true,
        .missing_is_none = true},
    [AGED_2_4] = {.bit = AGE_2_4,
        .version = "2.4.18",
        .column = 1,
        .unknown = UNKNOWN_2,
        .denied = DENIED,
        .client = "LIST KILL",
        .queue_runs_on = true,
        .missing_is_none = true},
    [AGED_2_6] = {.bit = AGE_2_6,
        .version = "2.6.9",
        .column = 2,
        .unknown = UNKNOWN_2,
        .denied = DENIED,
        .client = "LIST KILL GETNAME SETNAME",
        .missing_is_none = true},
    [AGED_6_2] = {.bit = AGE_6_2,
        .version = "6.2.16",
        .column = -1,
        .unknown = UNKNOWN_6,
        .argument = "`*`, ",
        .denied = DENIED " or its subcommand"},
};
