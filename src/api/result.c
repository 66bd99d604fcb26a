/* SPDX-License-Identifier: MIT */
/* Keeps: every result has a name and a meaning; a new one without them does
 * not compile. */
#include <nxlock.h>

static const char *words(enum nxl_result result)
{
    switch (result) {
    case NXL_OK:
        return "NXL_OK: done";
    case NXL_BUSY:
        return "NXL_BUSY: somebody else holds the name";
    case NXL_LOST:
        return "NXL_LOST: the lock is not held any more";
    case NXL_UNKNOWN:
        return "NXL_UNKNOWN: no answer; neither yes nor no may be assumed";
    case NXL_PENDING:
        return "NXL_PENDING: started, an event will follow";
    case NXL_CANCELLED:
        return "NXL_CANCELLED: the operation was cancelled";
    case NXL_FREE:
        return "NXL_FREE: nobody holds the name";
    case NXL_E_INVALID:
        return "NXL_E_INVALID: an argument or the order of calls is wrong";
    case NXL_E_NOMEM:
        return "NXL_E_NOMEM: no memory";
    case NXL_E_SYSTEM:
        return "NXL_E_SYSTEM: the operating system refused";
    case NXL_E_URL:
        return "NXL_E_URL: the URL cannot be used";
    case NXL_E_UNREACHABLE:
        return "NXL_E_UNREACHABLE: the server was not reached in time";
    case NXL_E_DENIED:
        return "NXL_E_DENIED: the server denies access";
    case NXL_E_REFUSED:
        return "NXL_E_REFUSED: the server takes no writes now";
    case NXL_E_WRONG_TYPE:
        return "NXL_E_WRONG_TYPE: the key holds something else than a lock";
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
    return words((enum nxl_result)result);
}

const char *nxl_version(void)
{
    return NXLOCK_VERSION;
}
