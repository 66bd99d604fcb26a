/* SPDX-License-Identifier: MIT */
/* Reads why a renewed lock was lost, and the descriptor that reports losses. */
#include "lock/loss.h"

#include <stdio.h>
#include <sys/eventfd.h>

int nxl_client_loss_fd(nxl_client *client)
{
    if (!client || client_forked(client))
        return -1;
    client_lock(client);
    if (client->loss_fd < 0 && !client->closed)
        client->loss_fd =
            eventfd(!list_empty(&client->losses), EFD_NONBLOCK | EFD_CLOEXEC);
    int fd = client->loss_fd;
    client_unlock(client);
    return fd;
}

int nxl_lock_loss(const nxl_lock *lock, char *text, size_t size)
{
    if (text && size)
        text[0] = '\0';
    if (!lock || !lock->renewing)
        return NXL_LOSS_NONE;
    struct nxl_client *client = lock->client;
    if (client_forked(client))
        return NXL_LOSS_NONE;
    pthread_mutex_lock(&client->mutex);
    bool told = lock->life.renewal->state == RENEWAL_OFF;
    int loss = told ? (int)lock->renewing->loss : NXL_LOSS_NONE;
    if (text && size)
        snprintf(text, size, "%s", loss_words(lock));
    pthread_mutex_unlock(&client->mutex);
    return loss;
}
