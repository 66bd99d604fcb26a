/* SPDX-License-Identifier: MIT */
/*
 * Counts the parts of servers in a round.
 *
 * Invariant: a quorum is more than half of all servers, so that two quorums
 * share a server; every server that has a part is counted once.
 */
#include "core/machine.h"

unsigned quorum_of(unsigned servers)
{
    return servers / 2 + 1;
}

struct tally tally_of(const struct ballot *ballots, unsigned servers)
{
    struct tally t = {.servers = servers, .quorum = quorum_of(servers)};
    for (unsigned i = 0; i < servers; i++) {
        enum part part = ballots[i].part;
        t.yes += part == PART_YES;
        t.no += part == PART_NO;
        t.fault += part == PART_FAULT;
        t.unsure += part == PART_UNSURE;
        t.open += part == PART_TO_ASK || part == PART_ASKED;
    }
    return t;
}

bool part_find(const struct ballot *ballots, unsigned servers, enum part wanted,
    unsigned *server)
{
    for (unsigned i = 0; i < servers; i++) {
        if (ballots[i].part == wanted) {
            *server = i;
            return true;
        }
    }
    return false;
}

bool parts_asking(const struct ballot *ballots, unsigned servers)
{
    unsigned server;
    return part_find(ballots, servers, PART_TO_ASK, &server) ||
           part_find(ballots, servers, PART_TO_UNDO, &server) ||
           part_find(ballots, servers, PART_TO_LEAVE, &server);
}
