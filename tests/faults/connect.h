/* SPDX-License-Identifier: MIT */
/* Attempts to connect, told to the program that makes them. */
#ifndef NXLOCK_TEST_CONNECT_H
#define NXLOCK_TEST_CONNECT_H

#include <stdbool.h>

/* The program's, if it has one: called in front of each attempt to connect to
 * that port of an IPv4 address, in the thread that makes it. */
__attribute__((weak)) void on_dial(unsigned port);

#endif
