/* SPDX-License-Identifier: MIT */
/*
 * Which commands an old server has, of those that nxlock and its scripts send,
 * and which lines INFO has. Anything else is unknown to it, so nothing that
 * came later can slip through.
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

#define INFO_2_2                                                               \
    "redis_version uptime_in_seconds loading aof_enabled role "                \
    "connected_slaves"
#define INFO_2_4 INFO_2_2 " run_id"

const struct age aged_ages[] = {
    [AGED_PLAIN] = {NULL, -1, NULL, NULL},
    [AGED_2_2] = {"2.2.15", 0, NULL, INFO_2_2},
    [AGED_2_4] = {"2.4.18", 1, "LIST KILL", INFO_2_4},
    [AGED_2_6] = {"2.6.9", 2, "LIST KILL GETNAME SETNAME",
        INFO_2_4 " redis_mode"},
};
