/* SPDX-License-Identifier: MIT */
/* A word for each class of fault, for what a test prints and compares. */
#ifndef NXLOCK_TESTS_FAULT_NAMES_H
#define NXLOCK_TESTS_FAULT_NAMES_H

#include "model/fault.h"

static inline const char *fault_name(enum fault fault)
{
    static const char *const names[FAULT_CLASSES] = {
        [FAULT_NONE] = "none",
        [FAULT_UNREACHABLE] = "unreachable",
        [FAULT_TIMEOUT] = "silent",
        [FAULT_RETRY] = "retry",
        [FAULT_NOT_PRIMARY] = "elsewhere",
        [FAULT_FULL] = "full",
        [FAULT_REFUSING] = "refusing",
        [FAULT_DENIED] = "denied",
        [FAULT_NO_PERMISSION] = "no permission",
        [FAULT_SCRIPT_DENIED] = "script denied",
        [FAULT_WRONG_TYPE] = "wrong type",
        [FAULT_UNSUPPORTED] = "unsupported",
        [FAULT_NOT_REDIS] = "not redis",
        [FAULT_SERVER] = "server",
        [FAULT_SYSTEM] = "system",
        [FAULT_RESTARTED] = "restarted",
        [FAULT_PROMOTED] = "promoted",
        [FAULT_DEMOTED] = "demoted",
        [FAULT_NO_INFO] = "untold",
        [FAULT_NOT_DURABLE] = "forgets",
        [FAULT_DUPLICATE] = "setup",
        [FAULT_IS_SENTINEL] = "sentinel",
        [FAULT_TLS] = "tls",
        [FAULT_CERTIFICATE] = "certificate",
        [FAULT_ACTIVE_REPLICA] = "active replica",
        [FAULT_CLUSTER] = "cluster",
        [FAULT_CLUSTER_DOWN] = "cluster down",
        [FAULT_CREDENTIALS] = "credentials",
        [FAULT_NO_DATABASE] = "no database",
        [FAULT_SLOTS] = "slots",
        [FAULT_COPIES] = "copies",
        [FAULT_UNCONFIRMED] = "unconfirmed",
        [FAULT_NAMED_LATE] = "named late",
        [FAULT_WRONG_SENTINELS] = "sentinels",
        [FAULT_SENTINEL_DENIED] = "sentinel denied",
        [FAULT_SENTINEL_RIGHTS] = "sentinel rights",
    };

    return names[fault];
}

#endif
