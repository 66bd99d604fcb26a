/* SPDX-License-Identifier: MIT */
/* Names and explains results.
 *
 * Invariant: every result has a name and a meaning: without them a new one does
 * not compile (with -Wswitch -Werror). */
#include <nxlock.h>

static const char *result_words(enum nxl_result result)
{
    switch (result) {
    case NXL_OK:
        return "NXL_OK: done";
    case NXL_BUSY:
        return "NXL_BUSY: another client holds the lock";
    case NXL_LOST:
        return "NXL_LOST: the lock is no longer held";
    case NXL_UNKNOWN:
        return "NXL_UNKNOWN: no answer; it may or may not have been done";
    case NXL_PENDING:
        return "NXL_PENDING: started, an event will follow";
    case NXL_CANCELLED:
        return "NXL_CANCELLED: the operation was cancelled";
    case NXL_FREE:
        return "NXL_FREE: the lock is free, or there is no such line or record";
    case NXL_DONE:
        return "NXL_DONE: the work was done before";
    case NXL_DOUBT:
        return "NXL_DOUBT: the work was begun, and may have been done";
    case NXL_MISMATCH:
        return "NXL_MISMATCH: the record is about other work";
    case NXL_E_INVALID:
        return "NXL_E_INVALID: an argument or the order of calls is wrong";
    case NXL_E_NOMEM:
        return "NXL_E_NOMEM: out of memory";
    case NXL_E_SYSTEM:
        return "NXL_E_SYSTEM: the operating system refused";
    case NXL_E_URL:
        return "NXL_E_URL: the URL cannot be used";
    case NXL_E_UNREACHABLE:
        return "NXL_E_UNREACHABLE: the server was not reached in time";
    case NXL_E_DENIED:
        return "NXL_E_DENIED: the server denies access";
    case NXL_E_REFUSED:
        return "NXL_E_REFUSED: the server does not accept writes";
    case NXL_E_WRONG_TYPE:
        return "NXL_E_WRONG_TYPE: the key holds something other than a lock";
    case NXL_E_NOT_REDIS:
        return "NXL_E_NOT_REDIS: the peer does not speak the Redis protocol";
    case NXL_E_UNSUPPORTED:
        return "NXL_E_UNSUPPORTED: the server lacks a command";
    case NXL_E_SERVER:
        return "NXL_E_SERVER: the server answered with an error";
    case NXL_E_FORKED:
        return "NXL_E_FORKED: the handle belongs to the parent process";
    }
    return "unknown result";
}

const char *nxl_strerror(int result)
{
    return result_words((enum nxl_result)result);
}

const char *nxl_version(void)
{
    return NXLOCK_VERSION;
}
