/* SPDX-License-Identifier: MIT */
/*
 * The one table of permissions: the least that each feature needs of an ACL,
 * and what happens without each of them. acl_table.py makes docs/acl.md from
 * it, check_pages.py compares doctor's remedy with it, and test_acl_least.c
 * tries every row on a real server.
 */
#ifndef NXLOCK_TESTS_DOCS_ACL_TABLE_H
#define NXLOCK_TESTS_DOCS_ACL_TABLE_H

/* What happens without a permission: EFFECT(NAME, words) */
/* clang-format off */
#define ACL_EFFECTS \
EFFECT(NO_LOGIN, "every call fails: NXL_E_DENIED") \
EFFECT(NO_ACQUIRE, "acquire fails: NXL_E_DENIED; no lock key is set") \
EFFECT(NO_RUN, "run --every exits with 77 and starts nothing") \
EFFECT(NO_RELEASE, "release fails: NXL_E_DENIED; the lock ends by its TTL") \
EFFECT(NO_EXTEND, "extend fails: NXL_E_DENIED; the old deadline remains") \
EFFECT(NO_INSPECT, "inspect and adopt fail: NXL_E_DENIED") \
EFFECT(NO_HOLDERS, "inspect fails: NXL_E_DENIED") \
EFFECT(NO_ADOPT, "adopt fails: NXL_E_DENIED") \
EFFECT(NO_REMOVE, "the removal fails: NXL_E_DENIED; the lock stays") \
EFFECT(NO_BEGIN, "nxl_once_begin() fails: NXL_E_DENIED; nothing is begun") \
EFFECT(NO_TELL, "nxl_once_tell() fails: NXL_E_DENIED; the work is in doubt") \
EFFECT(NO_FORGET, "nxl_once_forget() fails: NXL_E_DENIED; the record stays") \
EFFECT(NO_FSYNC, "works; warns that how often the server syncs its file is " \
    "unknown") \
EFFECT(NO_LIST, "the list fails: NXL_E_DENIED") \
EFFECT(NO_TIME, "waits all the same, without knowing how long it is held") \
EFFECT(NO_TAKEOVER, "busy: the expired lock is not taken over") \
EFFECT(NO_VOTE, "several servers: NXL_E_DENIED; one: works, its role and " \
    "restarts unknown") \
EFFECT(NO_AGE, "works; after a failover each new program waits for " \
    "max_ttl_ms and more, by itself") \
EFFECT(BY_MARKER, "works by the key nxl-p; ACL LOG notes CLIENT LIST") \
EFFECT(SLOW_CLEANUP, "works; after a lost connection a name may stay taken " \
    "up to its TTL") \
EFFECT(BY_SET, "works by SET; ACL LOG notes each PSETEX") \
EFFECT(NO_DISCARD, "works; the connection is replaced if the lock was lost") \
EFFECT(NO_WATCH, "works without WATCH, with weaker guarantees and a warning") \
EFFECT(BY_TEXT, "works; scripts are sent as text, and each connection is " \
    "checked first") \
EFFECT(NO_HAND_OVER, "works; does not hand over: the first in line finds " \
    "out by asking") \
EFFECT(BLIND_HAND_OVER, "works; may hand over to a waiter that has died") \
EFFECT(SILENT_HAND_OVER, "works; the next in line finds out by asking") \
EFFECT(NO_GAP, "works; programs outside the line get no turn; ACL LOG " \
    "notes each hand-over") \
EFFECT(NO_LINE, "works; waits by asking at random intervals, not in line") \
EFFECT(NO_NEWS, "works; finds out by asking that it is its turn") \
EFFECT(NO_WAITERS, "works; who waits in line is unknown") \
EFFECT(NO_TRIAL, "doctor cannot try a lock, and says so") \
EFFECT(UNKNOWN_TO_DOCTOR, "doctor says what it cannot find out")

#define EFFECT(name, ...) ACL_##name,
enum acl_effect { ACL_WORKS, ACL_EFFECTS ACL_EFFECT_COUNT };
#undef EFFECT

/* Keys, in the terms of a lock called NAME. A NAME with a tag in braces has no
 * further ones. */
#define ACL_KEY "~NAME"
#define ACL_COUNTER "~{NAME}:f"
#define ACL_RECORD "~{NAME}:every"
#define ACL_WORK "~{NAME}:once"
#define ACL_LINE_KEY "~{NAME}:nxl-l"
#define ACL_LINE_MARK "~{NAME}:nxl-w"
#define ACL_LINE_GAP "~{NAME}:nxl-g"
#define ACL_TRIAL "~NAME:doctor:*"
#define ACL_TRIAL_COMPANIONS "~{NAME:doctor:*}:*"

#define ACL_MARKER "~nxl-p" /* with a prefix P it is Pnxl-p */

/* The feature is in addition to any other. */
#define ACL_ANY (1U << 31)

/* Not of keys: the channels of those who wait in line for this lock. The 36
 * bytes are the UUID of the client. */
#define ACL_CHANNELS "&nxl:????????????????????????????????????:NAME"
#define ACL_TRIAL_CHANNELS \
    "&nxl:????????????????????????????????????:NAME:doctor:*"

/* FEATURE(NUMBER, name, the features that it is in addition to, purpose, the
 * permissions with the effect of each if it is missing) */
#define ACL_FEATURES \
FEATURE(LOCK, "lock", 0, "acquire and release", \
    {ACL_KEY, ACL_NO_ACQUIRE}, {"+set", ACL_NO_ACQUIRE}, \
    {"+evalsha", ACL_NO_ACQUIRE}, {"+eval", ACL_NO_ACQUIRE}, \
    {"+getrange", ACL_NO_RELEASE}, {"+del", ACL_NO_RELEASE}) \
FEATURE(RETRY, "retry", ACL_BIT(LOCK), "wait for a busy lock", \
    {"+pttl", ACL_NO_TIME}) \
FEATURE(HAND_OVER, "hand-over", ACL_BIT(LOCK), \
    "release to the next in line", \
    {ACL_LINE_KEY, ACL_NO_HAND_OVER}, {ACL_LINE_MARK, ACL_NO_HAND_OVER}, \
    {"+time", ACL_NO_HAND_OVER}, {"+zrange", ACL_NO_HAND_OVER}, \
    {"+zrem", ACL_NO_HAND_OVER}, {"+exists", ACL_NO_HAND_OVER}, \
    {ACL_LINE_GAP, ACL_NO_GAP}, {"+pubsub|numsub", ACL_BLIND_HAND_OVER}, \
    {"+publish", ACL_SILENT_HAND_OVER}, {ACL_CHANNELS, ACL_SILENT_HAND_OVER}) \
FEATURE(LINE, "line", ACL_BIT(RETRY) | ACL_BIT(HAND_OVER), \
    "wait in line for a busy lock", \
    {ACL_LINE_GAP, ACL_NO_LINE}, {"+pexpire", ACL_NO_LINE}, \
    {"+zscore", ACL_NO_LINE}, {"+zrank", ACL_NO_LINE}, \
    {"+zcard", ACL_NO_LINE}, {"+zadd", ACL_NO_LINE}, \
    {"+subscribe", ACL_NO_NEWS}, {"+ping", ACL_NO_NEWS}) \
FEATURE(WAITERS, "waiters", ACL_BIT(INSPECT), "who waits in line", \
    {ACL_LINE_KEY, ACL_NO_WAITERS}, {"+zcard", ACL_NO_WAITERS}, \
    {"+zrange", ACL_NO_WAITERS}, {"+time", ACL_NO_WAITERS}) \
FEATURE(EXTEND, "extend", ACL_BIT(LOCK), "extend and renew", \
    {"+pttl", ACL_NO_EXTEND}, {"+pexpire", ACL_NO_EXTEND}) \
FEATURE(FENCE, "fence", ACL_BIT(LOCK), "acquire with a fencing token", \
    {ACL_COUNTER, ACL_NO_ACQUIRE}, {"+exists", ACL_NO_ACQUIRE}, \
    {"+pttl", ACL_NO_ACQUIRE}, {"+time", ACL_NO_ACQUIRE}, \
    {"+psetex", ACL_BY_SET}) \
FEATURE(MIN_HOLD, "min-hold", ACL_BIT(LOCK), \
    "release before min_hold_ms is over", {"+pexpire", ACL_NO_RELEASE}) \
FEATURE(INSPECT, "inspect", 0, "inspect and adopt", \
    {ACL_KEY, ACL_NO_INSPECT}, {"+getrange", ACL_NO_INSPECT}, \
    {"+pttl", ACL_NO_INSPECT}, {"+exists", ACL_NO_INSPECT}) \
FEATURE(PERMITS, "permits", ACL_BIT(LOCK), \
    "acquire, extend and release a lock that several hold", \
    {ACL_LINE_KEY, ACL_NO_ACQUIRE}, {ACL_LINE_MARK, ACL_NO_ACQUIRE}, \
    {ACL_LINE_GAP, ACL_NO_ACQUIRE}, {"+pttl", ACL_NO_ACQUIRE}, \
    {"+time", ACL_NO_ACQUIRE}, {"+exists", ACL_NO_ACQUIRE}, \
    {"+pexpire", ACL_NO_ACQUIRE}, {"+zadd", ACL_NO_ACQUIRE}, \
    {"+zrange", ACL_NO_ACQUIRE}, {"+zscore", ACL_NO_ACQUIRE}, \
    {"+zrem", ACL_NO_ACQUIRE}, {"+zcount", ACL_NO_ACQUIRE}, \
    {"+zremrangebyscore", ACL_NO_ACQUIRE}) \
FEATURE(HOLDERS, "holders", ACL_BIT(INSPECT), \
    "inspect and adopt a lock that several hold", \
    {"+evalsha", ACL_NO_HOLDERS}, {"+eval", ACL_NO_HOLDERS}, \
    {"+time", ACL_NO_HOLDERS}, {"+zrange", ACL_NO_HOLDERS}, \
    {"+zcount", ACL_NO_HOLDERS}, {"+zscore", ACL_NO_ADOPT}) \
FEATURE(REMOVE, "remove", ACL_BIT(INSPECT), \
    "release an adopted lock, or break one", {"+evalsha", ACL_NO_REMOVE}, \
    {"+eval", ACL_NO_REMOVE}, {"+del", ACL_NO_REMOVE}) \
FEATURE(TAKEOVER, "takeover", ACL_BIT(LOCK), \
    "acquire what a dead SETNX program left", {"+time", ACL_NO_TAKEOVER}, \
    {"+pttl", ACL_NO_TAKEOVER}, {"+psetex", ACL_BY_SET}) \
FEATURE(NO_SCRIPTS, "no-scripts", 0, \
    "acquire, extend and release without scripts", \
    {ACL_KEY, ACL_NO_ACQUIRE}, {"+set", ACL_NO_ACQUIRE}, \
    {"+watch", ACL_NO_ACQUIRE}, {"+multi", ACL_NO_RELEASE}, \
    {"+exec", ACL_NO_RELEASE}, {"+getrange", ACL_NO_RELEASE}, \
    {"+exists", ACL_NO_RELEASE}, {"+pttl", ACL_NO_RELEASE}, \
    {"+del", ACL_NO_RELEASE}, {"+pexpire", ACL_NO_EXTEND}, \
    {"+discard", ACL_NO_DISCARD}) \
FEATURE(SETNX, "timestamp", 0, \
    "acquire, extend, inspect and release with scheme=timestamp", \
    {ACL_KEY, ACL_NO_ACQUIRE}, {"+setnx", ACL_NO_ACQUIRE}, \
    {"+getset", ACL_NO_ACQUIRE}, {"+getrange", ACL_NO_ACQUIRE}, \
    {"+time", ACL_NO_ACQUIRE}, {"+ttl", ACL_NO_ACQUIRE}, \
    {"+exists", ACL_NO_INSPECT}, {"+watch", ACL_NO_WATCH}, \
    {"+multi", ACL_NO_WATCH}, {"+exec", ACL_NO_WATCH}, \
    {"+discard", ACL_NO_DISCARD}, {"+del", ACL_NO_RELEASE}) \
FEATURE(EVERY, "every", ACL_BIT(LOCK), "the record of run --every", \
    {ACL_RECORD, ACL_NO_RUN}) \
FEATURE(ONCE, "record", 0, "begin work that must be done once, and tell", \
    {ACL_KEY, ACL_NO_BEGIN}, {ACL_WORK, ACL_NO_BEGIN}, \
    {ACL_COUNTER, ACL_NO_BEGIN}, {"+evalsha", ACL_NO_BEGIN}, \
    {"+eval", ACL_NO_BEGIN}, {"+getrange", ACL_NO_BEGIN}, \
    {"+exists", ACL_NO_BEGIN}, {"+pttl", ACL_NO_BEGIN}, \
    {"+time", ACL_NO_BEGIN}, {"+set", ACL_NO_BEGIN}, \
    {"+del", ACL_NO_TELL}, {"+psetex", ACL_BY_SET}, \
    {"+config|get", ACL_NO_FSYNC}) \
FEATURE(LOOK, "look", 0, "look at a record", \
    {ACL_KEY, ACL_NO_BEGIN}, {ACL_WORK, ACL_NO_BEGIN}, \
    {ACL_COUNTER, ACL_NO_BEGIN}, {"+evalsha", ACL_NO_BEGIN}, \
    {"+eval", ACL_NO_BEGIN}, {"+getrange", ACL_NO_BEGIN}, \
    {"+exists", ACL_NO_BEGIN}, {"+pttl", ACL_NO_BEGIN}) \
FEATURE(FORGET, "forget", ACL_BIT(LOOK), "remove a record", \
    {"+del", ACL_NO_FORGET}) \
FEATURE(CLEANUP, "cleanup", ACL_ANY, \
    "quick cleanup after a lost connection", \
    {"+client|id", ACL_SLOW_CLEANUP}, {"+client|kill", ACL_SLOW_CLEANUP}, \
    {"+info", ACL_SLOW_CLEANUP}) \
FEATURE(LOAD, "load", ACL_ANY, "scripts loaded ahead of time", \
    {"+script|load", ACL_BY_TEXT}) \
FEATURE(INFO, "info", ACL_ANY, \
    "several servers, guard_restarts", {"+info", ACL_NO_VOTE}) \
FEATURE(FAILOVER, "failover", ACL_ANY, "guard_failover", \
    {"+info", ACL_NO_ACQUIRE}, {ACL_MARKER, ACL_NO_AGE}, \
    {"+eval", ACL_NO_AGE}, {"+getrange", ACL_NO_AGE}, {"+pttl", ACL_NO_AGE}, \
    {"+set", ACL_NO_AGE}, {"+client|list", ACL_BY_MARKER}) \
FEATURE(COPIES, "replicas", ACL_ANY, \
    "wait_replicas (for wait_aof `+waitaof` instead)", \
    {"+wait", ACL_NO_ACQUIRE}) \
FEATURE(DB, "db", ACL_ANY, "a database number in the URL", \
    {"+select", ACL_NO_LOGIN}) \
FEATURE(SCAN, "scan", 0, "list the names", {"+scan", ACL_NO_LIST}) \
FEATURE(EXAMINE, "examine", \
    ACL_BIT(FENCE) | ACL_BIT(EXTEND) | ACL_BIT(LINE), \
    "check servers and permissions", {ACL_TRIAL, ACL_NO_TRIAL}, \
    {ACL_TRIAL_COMPANIONS, ACL_NO_TRIAL}, \
    {ACL_TRIAL_CHANNELS, ACL_NO_NEWS}, \
    {"+config|get", ACL_UNKNOWN_TO_DOCTOR})

/* What a command of nxlock uses, for docs/acl.md: COMMAND(name, features) */
#define ACL_COMMANDS \
COMMAND(run, ACL_BIT(FENCE) | ACL_BIT(LINE) | ACL_BIT(EXTEND) | \
    ACL_BIT(MIN_HOLD) | ACL_SEVERAL | ACL_CONNECTION) \
COMMAND(once, ACL_BIT(ONCE) | ACL_BIT(LINE) | ACL_BIT(EXTEND) | \
    ACL_BIT(FORGET) | ACL_BIT(INSPECT) | ACL_CONNECTION) \
COMMAND(acquire, ACL_BIT(LINE) | ACL_SEVERAL | ACL_CONNECTION) \
COMMAND(renew, ACL_BIT(EXTEND) | ACL_SEVERAL | ACL_CONNECTION) \
COMMAND(release, ACL_BIT(REMOVE) | ACL_BIT(HAND_OVER) | ACL_SEVERAL | \
    ACL_CONNECTION) \
COMMAND(status, ACL_BIT(WAITERS) | ACL_BIT(HOLDERS) | ACL_BIT(INFO)) \
COMMAND(wait, ACL_BIT(HOLDERS) | ACL_BIT(INFO)) \
COMMAND(list, ACL_BIT(SCAN) | ACL_BIT(HOLDERS) | ACL_BIT(LOOK) | \
    ACL_BIT(INFO)) \
COMMAND(unlock, ACL_BIT(REMOVE) | ACL_BIT(HAND_OVER) | ACL_BIT(WAITERS) | \
    ACL_SEVERAL | ACL_CONNECTION) \
COMMAND(doctor, ACL_BIT(EXAMINE) | ACL_BIT(MIN_HOLD) | ACL_BIT(PERMITS) | \
    ACL_CONNECTION)
/* clang-format on */

enum acl_number {
#define FEATURE(number, ...) ACL_##number,
    ACL_FEATURES ACL_FEATURE_COUNT
#undef FEATURE
};
#define ACL_BIT(number) (1U << ACL_##number)
/* What makes every connection better, and fills ACL LOG if it is missing. */
#define ACL_CONNECTION (ACL_BIT(CLEANUP) | ACL_BIT(LOAD) | ACL_BIT(INFO))

/* What a command needs for locks that several hold. */
#define ACL_SEVERAL (ACL_BIT(PERMITS) | ACL_BIT(HOLDERS))

#define ACL_PERMISSIONS_MAX 16

struct acl_permission {
    const char *rule; /* NULL ends the list */
    enum acl_effect missing;
};

struct acl_feature {
    const char *name;
    unsigned base; /* the features that it is in addition to, as bits */
    const char *purpose;
    struct acl_permission permissions[ACL_PERMISSIONS_MAX];
};

#endif
