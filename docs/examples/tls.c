/* SPDX-License-Identifier: MIT */
/*
 * tls: takes a lock over TLS, and shows how the connection is secured;
 * docs/tls.md explains it.
 */
#include <nxlock.h>
#include <stdio.h>

int main(void)
{
    const char *url = "rediss://localhost:27004?cacert=ca.pem";
    nxl_client_options options = NXL_CLIENT_OPTIONS_INIT;
    nxl_server_facts facts = NXL_SERVER_FACTS_INIT;
    nxl_client *client = NULL;
    nxl_lock *lock = NULL;
    char why[256] = "";

    options.errbuf = why;
    options.errbuf_size = sizeof(why);
    int rc = nxl_client_new(&client, url, &options);

    if (rc == NXL_OK)
        rc = nxl_lock_new(&lock, client, "report", NULL);
    if (rc == NXL_OK)
        rc = nxl_lock_acquire(lock, 5000);
    if (rc == NXL_OK && nxl_client_server_facts(client, 0, &facts) == NXL_OK)
        printf("locked over %s\n", facts.tls_version);
    if (rc == NXL_OK)
        rc = nxl_lock_release(lock);
    if (rc != NXL_OK)
        fprintf(stderr, "%s\n",
            lock     ? nxl_lock_errmsg(lock)
            : client ? nxl_client_errmsg(client)
                     : why);
    nxl_lock_free(lock);
    nxl_client_free(client);
    return rc != NXL_OK;
}
