/* SPDX-License-Identifier: MIT */
/*
 * Counts the answers of servers in a round.
 *
 * Invariant: a quorum is more than half of all servers, so that two quorums
 * share a server; every server that has a part is counted once.
 */
#include "core/machine.h"

unsigned quorum_of(unsigned servers)
{
    return servers / 2 + 1;
}

struct tally tally_of(const enum part *part, unsigned servers)
{
    struct tally t = {.servers = servers, .quorum = quorum_of(servers)};
    for (unsigned i = 0; i < servers; i++) {
        t.yes += part[i] == PART_YES;
        t.no += part[i] == PART_NO;
        t.fault += part[i] == PART_FAULT;
        t.unsure += part[i] == PART_UNSURE;
        t.open += part[i] == PART_TO_ASK || part[i] == PART_ASKED;
    }
    return t;
}

bool part_find(
    const enum part *part, unsigned servers, enum part wanted, unsigned *server)
{
    for (unsigned i = 0; i < servers; i++) {
        if (part[i] == wanted) {
            *server = i;
            return true;
        }
    }
    return false;
}

bool parts_asking(const enum part *part, unsigned servers)
{
    unsigned server;
    return part_find(part, servers, PART_TO_ASK, &server) ||
           part_find(part, servers, PART_TO_UNDO, &server) ||
           part_find(part, servers, PART_TO_LEAVE, &server);
}
