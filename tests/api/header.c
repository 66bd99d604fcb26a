/* SPDX-License-Identifier: MIT */
/* nxlock.h needs no other header and no extension, and may come twice. */
#include <nxlock.h>
#include <nxlock.h>

int main(void)
{
    nxl_client_options client = NXL_CLIENT_OPTIONS_INIT, other;
    nxl_lock_options lock = NXL_LOCK_OPTIONS_INIT, another;

    nxl_client_options_init(&other);
    nxl_lock_options_init(&another);
    if (client.size != other.size || client.errbuf != other.errbuf)
        return 1;
    if (lock.size != another.size || lock.user != another.user)
        return 1;
    return nxl_strerror(NXL_OK) && nxl_now_ns() > 0 ? 0 : 1;
}
