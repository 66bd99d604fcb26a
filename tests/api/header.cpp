/* SPDX-License-Identifier: MIT */
/* The same header in C++. */
#include <nxlock.h>
#include <nxlock.h>

int main()
{
    nxl_client_options client;
    nxl_lock_options lock;
    nxl_client *made = nullptr;

    nxl_client_options_init(&client);
    nxl_lock_options_init(&lock);
    if (client.size != sizeof(client) || lock.size != sizeof(lock))
        return 1;
    if (nxl_client_new(&made, "nonsense", &client) >= NXL_OK)
        return 1;
    return nxl_strerror(NXL_BUSY) != nullptr && made == nullptr ? 0 : 1;
}
