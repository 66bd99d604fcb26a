/* SPDX-License-Identifier: MIT */
/* The UUID 01234567-89ab-4def-8123-456789abcdef as it is behind the seconds of
 * a timestamp lock: spelled out, not computed. */
#ifndef NXLOCK_TEST_BLANKS_H
#define NXLOCK_TEST_BLANKS_H

/* A hex digit each. */
#define B0 "    "
#define B1 "   \t"
#define B2 "  \t "
#define B3 "  \t\t"
#define B4 " \t  "
#define B5 " \t \t"
#define B6 " \t\t "
#define B7 " \t\t\t"
#define B8 "\t   "
#define B9 "\t  \t"
#define BA "\t \t "
#define BB "\t \t\t"
#define BC "\t\t  "
#define BD "\t\t \t"
#define BE "\t\t\t "
#define BF "\t\t\t\t"
#define BLANKS                                                                 \
    B0 B1 B2 B3 B4 B5 B6 B7 B8 B9 BA BB B4 BD BE BF B8 B1 B2 B3 B4 B5 B6 B7 B8 \
        B9 BA BB BC BD BE BF

#endif
