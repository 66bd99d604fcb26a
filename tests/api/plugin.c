/* SPDX-License-Identifier: MIT */
/* A plugin that uses the library, for test_unload.c. */
#include <nxlock.h>

/* One acquire that gives up before the host name is resolved. */
int plugin_run(const char *url);

int plugin_run(const char *url)
{
    nxl_client_options options = NXL_CLIENT_OPTIONS_INIT;
    nxl_client *client;
    nxl_lock *lock;

    options.timeout_ms = 50;
    int rc = nxl_client_new(&client, url, &options);
    if (rc != NXL_OK)
        return rc;
    rc = nxl_lock_new(&lock, client, "unload", NULL);
    if (rc == NXL_OK) {
        rc = nxl_lock_acquire(lock, 0);
        nxl_lock_free(lock);
    }
    nxl_client_free(client);
    return rc;
}
