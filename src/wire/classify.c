/* SPDX-License-Identifier: MIT */
/*
 * Sorts error replies into faults. Invariant: the first rule that matches
 * decides, and an error that matches no rule is FAULT_SERVER: an unknown text
 * is never mistaken for a known one.
 */
#include "wire/classify.h"

#include <string.h>

/* code: text is the error's first word. Otherwise text is what follows "ERR ",
 * as far as all server versions have the same words. */
struct rule {
    enum fault fault;
    bool code;
    const char *text;
};

static const struct rule rules[] = {
    {FAULT_NOT_PRIMARY, true, "READONLY"},
    {FAULT_NOT_PRIMARY, true, "MASTERDOWN"},
    {FAULT_CLUSTER, true, "MOVED"},
    {FAULT_CLUSTER, true, "ASK"},
    {FAULT_CLUSTER, false, "SELECT is not allowed in cluster mode"},
    {FAULT_NOT_PRIMARY, true, "REDIRECT"},
    {FAULT_NOT_PRIMARY, false, "link with MASTER is down"},
    /* WAIT, when the server becomes a replica, and on one. */
    {FAULT_NOT_PRIMARY, true, "UNBLOCKED"},
    {FAULT_NOT_PRIMARY, false, "WAIT cannot be used with replica"},
    {FAULT_NOT_PRIMARY, false, "WAITAOF cannot be used with replica"},
    {FAULT_RETRY, true, "LOADING"},
    {FAULT_RETRY, true, "BUSY"},
    {FAULT_RETRY, true, "TRYAGAIN"},
    {FAULT_CLUSTER_DOWN, true, "CLUSTERDOWN"},
    {FAULT_SLOTS, true, "CROSSSLOT"},
    {FAULT_RETRY, true, "EXECABORT"},
    {FAULT_RETRY, true, "NOSCRIPT"},
    {FAULT_RETRY, false, "max number of clients"},
    {FAULT_FULL, true, "OOM"},
    {FAULT_FULL, false, "command not allowed when used memory"},
    {FAULT_REFUSING, true, "MISCONF"},
    {FAULT_REFUSING, true, "NOREPLICAS"},
    {FAULT_DENIED, true, "NOAUTH"},
    {FAULT_DENIED, true, "WRONGPASS"},
    {FAULT_DENIED, true, "DENIED"}, /* protected mode */
    /* A long request, read before the server asks for a password. */
    {FAULT_DENIED, false, "Protocol error: unauthenticated"},
    {FAULT_DENIED, false, "operation not permitted"},
    {FAULT_DENIED, false, "invalid password"},
    {FAULT_DENIED, false, "Client sent AUTH"},
    {FAULT_DENIED, false, "AUTH <password> called without"},
    {FAULT_NO_PERMISSION, true, "NOPERM"},
    {FAULT_SCRIPT_DENIED, false, "The user executing the script can't"},
    {FAULT_SCRIPT_DENIED, false, "ACL failure in script"},
    {FAULT_WRONG_TYPE, true, "WRONGTYPE"},
    {FAULT_WRONG_TYPE, false, "Operation against a key holding the wrong kind"},
    {FAULT_UNSUPPORTED, false, "unknown command"},
    {FAULT_UNSUPPORTED, false, "unknown subcommand"},
    {FAULT_UNSUPPORTED, false, "Unknown subcommand"},
    {FAULT_UNSUPPORTED, false, "wrong number of arguments"},
    {FAULT_UNSUPPORTED, false, "syntax error"},
    {FAULT_UNSUPPORTED, false, "Syntax error"},
    {FAULT_UNSUPPORTED, false, "Function not found"},
    {FAULT_UNSUPPORTED, false, "WAITAOF cannot be used when numlocal is set"},
    {FAULT_UNSUPPORTED, false, "Could not find scripting engine"},
    {FAULT_UNSUPPORTED, false, "Unknown Redis command called from"},
    {FAULT_UNSUPPORTED, false, "Unknown command called from"},
    {FAULT_UNSUPPORTED, false, "Wrong number of args calling"},
    {FAULT_UNSUPPORTED, false, "This Redis command is not allowed from"},
    {FAULT_UNSUPPORTED, false, "This command is not allowed from"},
    {FAULT_UNSUPPORTED, false, "This Valkey command is not allowed from"},
    {FAULT_UNSUPPORTED, false, "Write commands not allowed after"},
    /* The words of our own script, record.lua and take.lua. */
    {FAULT_UNSUPPORTED, false, "a record needs"},
    {FAULT_UNSUPPORTED, false, "a lock with several holders needs"},
};

static bool has_code(struct slice error, const char *code)
{
    size_t len = strlen(code);
    return slice_starts(error, code) &&
           (error.len == len || error.data[len] == ' ');
}

/* Old servers put the cause somewhere after "f_<sha1>): @user_script:1: ...",
 * or, of an error that a script returns, after "@user_script: 1: "; an error
 * code there has its '-' in front. */
static bool rule_in_script_error(struct slice error, const struct rule *rule)
{
    size_t len = strlen(rule->text);
    struct slice rest = error;

    for (;;) {
        const char *at = memmem(rest.data, rest.len, rule->text, len);
        if (!at)
            return false;
        size_t skip = (size_t)(at - rest.data);
        rest.data += skip;
        rest.len -= skip;
        if (!rule->code || (at[-1] == '-' && has_code(rest, rule->text)))
            return true;
        rest.data++;
        rest.len--;
    }
}

static bool rule_matches(struct slice error, const struct rule *rule)
{
    struct slice words = error;

    if (slice_starts(error, "ERR ")) {
        words.data += 4;
        words.len -= 4;
    }
    if (slice_starts(words, "Error running script") ||
        slice_starts(words, "@user_script: "))
        return rule_in_script_error(words, rule);
    if (rule->code)
        return has_code(error, rule->text);
    return slice_starts(words, rule->text);
}

/* Since 7.0 the reply to a failed EXEC ends with the cause. */
static struct slice strip_execabort(struct slice error)
{
    static const char abort[] = "EXECABORT Transaction discarded because of: ";

    if (slice_starts(error, abort)) {
        error.data += sizeof(abort) - 1;
        error.len -= sizeof(abort) - 1;
    }
    return error;
}

/* The first rule that matches, or NULL. */
static const struct rule *rule_of(struct slice error)
{
    for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
        if (rule_matches(error, &rules[i]))
            return &rules[i];
    return NULL;
}

enum fault classify_error(struct slice error)
{
    const struct rule *rule = rule_of(strip_execabort(error));
    return rule ? rule->fault : FAULT_SERVER;
}

size_t classify_known(struct slice error)
{
    struct slice words = strip_execabort(error);
    const struct rule *rule = rule_of(words);
    size_t before = error.len - words.len;

    if (!rule)
        return before;
    if (slice_starts(words, "ERR "))
        before += 4;
    struct slice rest = {error.data + before, error.len - before};
    return slice_starts(rest, rule->text) ? before + strlen(rule->text)
                                          : before;
}

bool fault_leaves_doubt(enum fault fault)
{
    return fault == FAULT_SERVER;
}

bool error_is_noscript(struct slice error)
{
    return has_code(error, "NOSCRIPT");
}

static bool has_words(struct slice error, const char *words)
{
    return memmem(error.data, error.len, words, strlen(words));
}

bool error_refuses_command(struct slice error)
{
    enum fault fault = classify_error(error);
    bool denied = fault == FAULT_NO_PERMISSION || fault == FAULT_SCRIPT_DENIED;

    return fault == FAULT_UNSUPPORTED ||
           (denied && (has_words(error, " to run the ") ||
                          has_words(error, " can't run this command")));
}

bool error_ends_transaction(struct slice error)
{
    return slice_starts(error, "EXECABORT") ||
           slice_starts(error, "ERR DISCARD without MULTI");
}
