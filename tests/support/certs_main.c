/* SPDX-License-Identifier: MIT */
/* Certificates for tests that are not in C: DIR NAME..., the names that
 * certs.h lists. */
#include "support/certs.h"

#include <stdio.h>

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: nxlock-certs DIR NAME...\n");
        return 2;
    }
    return certs_make_all(argv[1], (const char *const *)argv + 2) == 0 ? 0 : 1;
}
