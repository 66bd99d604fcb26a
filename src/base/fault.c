/* SPDX-License-Identifier: MIT */
/*
 * Every class has a word, a remedy and a rank. No switch has a default, so
 * that the compiler names the one a new class is missing from.
 */
#include "base/fault.h"

const char *fault_name(enum fault fault)
{
    switch (fault) {
    case FAULT_NONE:
        return "none";
    case FAULT_UNREACHABLE:
        return "unreachable";
    case FAULT_SILENT:
        return "silent";
    case FAULT_RETRY:
        return "retry";
    case FAULT_ELSEWHERE:
        return "elsewhere";
    case FAULT_FULL:
        return "full";
    case FAULT_REFUSING:
        return "refusing";
    case FAULT_DENIED:
        return "denied";
    case FAULT_WRONG_TYPE:
        return "wrong type";
    case FAULT_UNSUPPORTED:
        return "unsupported";
    case FAULT_NOT_REDIS:
        return "not redis";
    case FAULT_SERVER:
        return "server";
    case FAULT_SYSTEM:
        return "system";
    case FAULT_RESTARTED:
        return "restarted";
    case FAULT_UNTOLD:
        return "untold";
    case FAULT_FORGETS:
        return "forgets";
    case FAULT_SETUP:
        return "setup";
    case FAULT_CLASSES:
        break;
    }
    return "?";
}

const char *fault_remedy(enum fault fault)
{
    switch (fault) {
    case FAULT_UNREACHABLE:
        return "check that the server runs and that the URL's host, port or "
               "socket path is right";
    case FAULT_SILENT:
        return "the server or the network is stopped or slower than "
               "timeout_ms, or this is another service's port (a TLS port?)";
    case FAULT_RETRY:
        return "the server is starting or busy; try again later";
    case FAULT_ELSEWHERE:
        return "this server is a replica or not in charge of the key; "
               "connect to the primary (of several servers: put its primary, "
               "or an independent server, into the list in its place)";
    case FAULT_FULL:
        return "the server has reached maxmemory; raise it or free memory";
    case FAULT_REFUSING:
        return "the server takes no writes now; mend its persistence "
               "(MISCONF) or its replicas (NOREPLICAS)";
    case FAULT_DENIED:
        return "check user and password of the URL "
               "(redis://USER:PASSWORD@host, or :PASSWORD alone), and that "
               "the user may run the command named (ACL)";
    case FAULT_WRONG_TYPE:
        return "the name is in use for other data; choose another name or "
               "a prefix";
    case FAULT_UNSUPPORTED:
        return "the server does not know this command or option, or it is "
               "renamed or switched off; Redis 2.2 or later is needed, "
               "with WATCH or, from 2.6 on, with scripts";
    case FAULT_NOT_REDIS:
        return "is this the port of a Redis or Valkey server? a TLS port "
               "needs a TLS connection";
    case FAULT_SYSTEM:
        return "this machine is short of memory, descriptors or ports";
    case FAULT_RESTARTED:
        return "wait until it votes, or make it keep what it is told (AOF, "
               "fsync always) and say so in its URL: durable=1";
    case FAULT_UNTOLD:
        return "let its user run INFO (ACL: +info), or give up the guard with "
               "guard_restarts=0 (harm: after a restart of those that granted "
               "a lock a second client gets it)";
    case FAULT_FORGETS:
        return "switch its append-only file on (appendonly yes, appendfsync "
               "always), or take durable=1 out of its URL";
    case FAULT_SETUP:
        return "name each server once";
    case FAULT_NONE:
    case FAULT_SERVER:
    case FAULT_CLASSES:
        break;
    }
    return "";
}

bool fault_passes(enum fault fault)
{
    switch (fault) {
    case FAULT_UNREACHABLE:
    case FAULT_SILENT:
    case FAULT_RETRY:
    case FAULT_FULL:
    case FAULT_REFUSING:
    case FAULT_RESTARTED:
        return true;
    case FAULT_NONE:
    case FAULT_ELSEWHERE:
    case FAULT_DENIED:
    case FAULT_WRONG_TYPE:
    case FAULT_UNSUPPORTED:
    case FAULT_NOT_REDIS:
    case FAULT_SERVER:
    case FAULT_SYSTEM:
    case FAULT_UNTOLD:
    case FAULT_FORGETS:
    case FAULT_SETUP:
    case FAULT_CLASSES:
        break;
    }
    return false;
}

bool fault_wants_mending(enum fault fault)
{
    return fault == FAULT_FULL || fault == FAULT_REFUSING ||
           (fault != FAULT_NONE && !fault_passes(fault));
}

/* Higher is more telling. Ours comes first (it stands in the way of all
 * servers), then what a person must mend, then what passes. */
static int rank(enum fault fault)
{
    switch (fault) {
    case FAULT_SYSTEM:
        return 16;
    case FAULT_DENIED:
        return 15;
    case FAULT_UNTOLD:
        return 14;
    case FAULT_WRONG_TYPE:
        return 13;
    case FAULT_NOT_REDIS:
        return 12;
    case FAULT_FORGETS:
        return 11;
    case FAULT_UNSUPPORTED:
        return 9;
    case FAULT_ELSEWHERE:
        return 8;
    case FAULT_SERVER:
        return 7;
    case FAULT_FULL:
        return 6;
    case FAULT_REFUSING:
        return 5;
    case FAULT_RESTARTED:
        return 4;
    case FAULT_SETUP:
        return 10;
    case FAULT_UNREACHABLE:
        return 3;
    case FAULT_SILENT:
        return 2;
    case FAULT_RETRY:
        return 1;
    case FAULT_NONE:
    case FAULT_CLASSES:
        break;
    }
    return 0;
}

enum fault fault_worse(enum fault a, enum fault b)
{
    return rank(b) > rank(a) ? b : a;
}
