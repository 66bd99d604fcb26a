/* SPDX-License-Identifier: MIT */
/* What the rows of the table about records of work allow. */
#ifndef NXLOCK_TESTS_ACL_ONCE_H
#define NXLOCK_TESTS_ACL_ONCE_H

#include "live/acl_rig.h"

static const char stranger[] = "123e4567-e89b-42d3-a456-426614174000";

/* Begins work: a lock and a record, or neither. */
static inline enum acl_effect begins(nxl_lock *lock)
{
    int rc = nxl_once_begin(lock, NULL, 0);
    bool held = redis_exists(&server, NAME);
    bool begun = redis_exists(&server, "{" NAME "}:once");

    if (rc == NXL_OK && held && begun)
        return ACL_WORKS;
    return rc == NXL_E_DENIED && !held && !begun ? ACL_NO_BEGIN : ODD;
}

static inline enum acl_effect use_record(nxl_client *client, nxl_lock *lock)
{
    enum acl_effect effect = begins(lock);

    if (effect != ACL_WORKS)
        return effect;
    int rc = nxl_once_tell(lock, NXL_ONCE_DONE, 0, "ok", 2);
    bool held = redis_exists(&server, NAME);
    if (rc == NXL_E_DENIED && held)
        return nxl_once_begin(lock, NULL, 0) == NXL_BUSY ? ACL_NO_TELL : ODD;
    if (rc != NXL_OK || held || nxl_once_begin(lock, NULL, 0) != NXL_DONE)
        return ODD;
    return logged("psetex")       ? ACL_BY_SET
           : logged("config|get") ? ACL_NO_FSYNC
                                  : ACL_WORKS;
}

static inline enum acl_effect use_forget(nxl_client *client, nxl_lock *lock)
{
    static const nxl_once_options look = {
        .size = sizeof(look), .mode = NXL_ONCE_LOOK};

    int rc = nxl_once_begin(lock, &look, 0);
    if (rc == NXL_E_DENIED)
        return ACL_NO_BEGIN;
    if (rc != NXL_FREE)
        return ODD;
    redis_run(&server, "SET", "{" NAME "}:once",
        "once1 doubt 6fa459ea-ee8a-4ca4-894e-db77e160355e 7 1 0 9 9 9 1 0 9 - "
        "0\n",
        NULL);
    if (nxl_once_begin(lock, &look, 0) != NXL_DOUBT)
        return ODD;
    rc = nxl_once_forget(lock);
    bool gone = !redis_exists(&server, "{" NAME "}:once");
    return rc == NXL_OK && gone          ? ACL_WORKS
           : rc == NXL_E_DENIED && !gone ? ACL_NO_FORGET
                                         : ODD;
}

static inline enum acl_effect use_scan(nxl_client *client, nxl_lock *lock)
{
    static const char *const questions[][8] = {
        {"SCAN", "0", "MATCH", NAME "*", "COUNT", "250"},
        {"GETRANGE", NAME, "0", "511"}, {"PTTL", NAME}, {NULL}};

    static const char *const records[][8] = {
        {"GETRANGE", "{" NAME "}:once", "0", "1023"}, {NULL}};

    static const char *const members[][8] = {
        {"ZRANGE", NAME, "-1001", "-1", "WITHSCORES"}, {NULL}};

    stranger_sets(NAME, stranger, TTL_MS);
    enum acl_effect effect = asks(client, questions, ACL_NO_LIST);
    if (effect == ACL_WORKS) {
        redis_run(&server, "DEL", NAME, NULL);
        effect = asks(client, members, ACL_NO_MEMBERS);
    }
    return effect == ACL_WORKS ? asks(client, records, ACL_NO_RECORDS) : effect;
}

#endif
