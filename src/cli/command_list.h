/* SPDX-License-Identifier: MIT */
/*
 * The list of commands. Besides its row here, a command needs only the files
 * NAME.c, with subcommand_NAME(), and NAME.txt, its help, in the folder of its
 * subject. The enum, the table, the calls and the build are made from this
 * list.
 *
 * COMMAND(NUMBER, name, the other members of command_info)
 */
#ifndef NXLOCK_CLI_COMMAND_LIST_H
#define NXLOCK_CLI_COMMAND_LIST_H

/* clang-format off */
#define COMMAND_LIST \
COMMAND(RUN, run, .operands = "NAME -- CMD...", \
    .purpose = "run CMD while holding the lock", \
    .synopsis = "nxlock run NAME [OPTION...] -- CMD...\n" \
    "nxlock run NAME [OPTION...] -c STRING\n", \
    .leases = true, .runs = true) \
COMMAND(ONCE, once, .operands = "NAME -- CMD...", \
    .purpose = "run CMD unless it was done before", \
    .synopsis = "nxlock once NAME [OPTION...] -- CMD...\n" \
    "nxlock once NAME [OPTION...] -c STRING\n" \
    "nxlock once show|confirm|forget NAME [OPTION...]\n", \
    .leases = true, .runs = true) \
COMMAND(ACQUIRE, acquire, .operands = "NAME", \
    .purpose = "acquire a lock, print its token, and exit", \
    .synopsis = "nxlock acquire NAME [OPTION...]\n", .leases = true) \
COMMAND(RENEW, renew, .operands = "NAME TOKEN", \
    .purpose = "extend the lease of a lock held under TOKEN", \
    .synopsis = "nxlock renew NAME TOKEN [OPTION...]\n", \
    .takes_token = true, .leases = true) \
COMMAND(RELEASE, release, .operands = "NAME TOKEN", \
    .purpose = "release a lock held under TOKEN", \
    .synopsis = "nxlock release NAME TOKEN [OPTION...]\n", \
    .takes_token = true) \
COMMAND(STATUS, status, .operands = "NAME", \
    .purpose = "show who holds a lock, and the time left", \
    .synopsis = "nxlock status NAME [OPTION...]\n") \
COMMAND(WAIT, wait, .operands = "NAME", \
    .purpose = "wait until a lock is free, without acquiring it", \
    .synopsis = "nxlock wait NAME [OPTION...]\n") \
COMMAND(LIST, list, .operands = "[GLOB]", \
    .purpose = "list the locks that are held", \
    .synopsis = "nxlock list [GLOB] [OPTION...]\n", .name_optional = true) \
COMMAND(UNLOCK, unlock, .operands = "NAME", \
    .purpose = "remove the lock of a dead holder", \
    .synopsis = "nxlock unlock NAME --token TOKEN [OPTION...]\n" \
    "nxlock unlock NAME --force [--yes] [OPTION...]\n" \
    "nxlock unlock NAME --holder ID|--all [--yes] [OPTION...]\n" \
    "nxlock unlock NAME --line [--yes] [OPTION...]\n") \
COMMAND(DOCTOR, doctor, .operands = "[NAME]", \
    .purpose = "check whether the server suits locks", \
    .synopsis = "nxlock doctor [NAME] [OPTION...]\n", .name_optional = true)
/* clang-format on */

#endif
