/* SPDX-License-Identifier: MIT */
/* Attempts to connect, told to the program that makes them. */
#ifndef NXLOCK_TEST_DIALS_H
#define NXLOCK_TEST_DIALS_H

/* The program's: called in front of each attempt to connect to that port of an
 * IPv4 address, in the thread that makes it. */
void on_dial(unsigned port);

#endif
