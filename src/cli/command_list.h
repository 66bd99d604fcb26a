/* SPDX-License-Identifier: MIT */
/*
 * The list of commands. Besides its row here, a command needs only the files
 * NAME.c, with subcommand_NAME(), and help/NAME.txt. The enum, the table, the
 * calls and the build are made from this list.
 *
 * COMMAND(NUMBER, name, operands, purpose, synopsis, members of command_info)
 */
#ifndef NXLOCK_CLI_COMMAND_LIST_H
#define NXLOCK_CLI_COMMAND_LIST_H

/* clang-format off */
#define COMMAND_LIST \
COMMAND(RUN, run, "NAME -- CMD...", "run CMD while holding the lock", \
    "nxlock run NAME [OPTION...] -- CMD...\n" \
    "nxlock run NAME [OPTION...] -c STRING\n", \
    .leases = true, .runs = true) \
COMMAND(ONCE, once, "NAME -- CMD...", "run CMD unless it was done before", \
    "nxlock once NAME [OPTION...] -- CMD...\n" \
    "nxlock once NAME [OPTION...] -c STRING\n" \
    "nxlock once NAME --show|--forget|--confirm [OPTION...]\n", \
    .leases = true, .runs = true) \
COMMAND(ACQUIRE, acquire, "NAME", "acquire it, print its token, and exit", \
    "nxlock acquire NAME [OPTION...]\n", .leases = true) \
COMMAND(RENEW, renew, "NAME TOKEN", "extend the lease of a lock left held", \
    "nxlock renew NAME TOKEN [OPTION...]\n", \
    .takes_token = true, .leases = true) \
COMMAND(RELEASE, release, "NAME TOKEN", "release a lock left held", \
    "nxlock release NAME TOKEN [OPTION...]\n", .takes_token = true) \
COMMAND(STATUS, status, "NAME", "show who holds it, and for how long", \
    "nxlock status NAME [OPTION...]\n") \
COMMAND(WAIT, wait, "NAME", "wait until it is free, without acquiring it", \
    "nxlock wait NAME [OPTION...]\n") \
COMMAND(LIST, list, "[GLOB]", "list the locks that are held", \
    "nxlock list [GLOB] [OPTION...]\n", .name_optional = true) \
COMMAND(UNLOCK, unlock, "NAME", "remove the lock of a dead holder", \
    "nxlock unlock NAME --token TOKEN [OPTION...]\n" \
    "nxlock unlock NAME --force [--yes] [OPTION...]\n" \
    "nxlock unlock NAME --line [--yes] [OPTION...]\n") \
COMMAND(DOCTOR, doctor, "[NAME]", "check whether the server suits locks", \
    "nxlock doctor [NAME] [OPTION...]\n", .name_optional = true) \
COMMAND(DRILL, drill, "[NAME]", "kill and cut off holders of its own lock", \
    "nxlock drill [NAME] [OPTION...]\n", .name_optional = true, \
    .leases = true)
/* clang-format on */

#endif
