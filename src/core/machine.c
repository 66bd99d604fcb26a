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

struct tally tally_of(const struct ballot *ballots, unsigned servers)
{
    unsigned in[PARTS] = {0};
    for (unsigned i = 0; i < servers; i++)
        in[ballots[i].part]++;
    return (struct tally){
        .servers = servers,
        .quorum = quorum_of(servers),
        .yes = in[PART_YES],
        .no = in[PART_NO],
        .fault = in[PART_FAULT],
        .unsure = in[PART_UNSURE],
        .open = in[PART_TO_SEND] + in[PART_SENT],
    };
}

bool parts_pending(const struct ballot *ballots, unsigned servers)
{
    unsigned server;
    return part_find(ballots, servers, PART_TO_SEND, &server) ||
           part_find(ballots, servers, PART_TO_UNDO, &server) ||
           part_find(ballots, servers, PART_TO_ABANDON, &server);
}
