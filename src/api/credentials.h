/* SPDX-License-Identifier: MIT */
/* The program's callback for credentials, as a source that net can ask. */
#ifndef NXLOCK_API_CREDENTIALS_H
#define NXLOCK_API_CREDENTIALS_H

#include <nxlock.h>

#include "config/login_source.h"

struct login_source credentials_source(
    nxl_credentials_callback callback, void *arg);

#endif
