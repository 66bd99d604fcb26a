/* SPDX-License-Identifier: MIT */
/* A peer that says the same to each that connects. */
#include "support/speaker.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/local.h"
#include "support/test.h"

static void speak(int listener, const struct speech *s)
{
    const struct timeval limit = {0, 100000};
    for (;;) {
        char heard[4096];
        int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        if (fd < 0)
            _exit(1);
        /* Of a client that reads no more. */
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
        if (!s->at_once && recv(fd, heard, sizeof(heard), 0) < 0)
            _exit(1);
        bool sent = s->length > 0 && local_send(fd, s->bytes, s->length);
        while (s->again && sent)
            sent = local_send(fd, s->bytes, s->length);
        if (s->resets)
            local_make_reset(fd);
        if (s->again || s->resets)
            close(fd);
        if (s->closes) {
            shutdown(fd, SHUT_WR);
            while (recv(fd, heard, sizeof(heard), 0) > 0)
                ;
            close(fd);
        }
    }
}

pid_t speaker_start(const struct speech *speech, uint16_t *port)
{
    *port = 0;
    int listener = local_listen_tcp(port);
    pid_t pid = listener < 0 ? -1 : test_fork();
    if (pid < 0)
        abort();
    if (pid == 0)
        speak(listener, speech);
    close(listener);
    return pid;
}

void speaker_stop(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}
