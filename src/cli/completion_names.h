/* SPDX-License-Identifier: MIT */
/*
 * "nxlock completion names": the names of held locks, for the scripts with
 * which shells complete words.
 */
#ifndef NXLOCK_CLI_COMPLETION_NAMES_H
#define NXLOCK_CLI_COMPLETION_NAMES_H

/* words, ended by NULL: a command whose NAME is that of a held lock, the words
 * behind it and, last, the beginning of the name. Prints the names that begin
 * so, in order, with a zero byte behind each; none if the line has its NAME
 * already. Ends the process if that takes too long. Returns the exit code; if
 * it is not 0, nothing was printed but the reason, to standard error. */
int completion_names(char **words);

#endif
