/* SPDX-License-Identifier: MIT */
/*
 * leader NAME: of all the processes that run this, on all machines, one works
 * and the others wait. Built with -fno-exceptions: every call says by a
 * nxl::result what happened.
 *
 * Invariant: each step is taken only while the lock is held. When it is lost,
 * this process says why and ends with 79.
 */
#include <nxlock.hpp>

#include <cstdio>
#include <cstdlib>
#include <thread>

using namespace std::chrono_literals;

/* The exit code. */
static int lead(nxl::guard &guard)
{
    nxl::result rc;

    if (!guard.lock(rc)) {
        std::fprintf(stderr, "%s\n", guard.message());
        return 69;
    }
    for (int step = 1; guard.owns_lock(); step++) {
        if (step == 1)
            std::puts("working");
        std::fflush(stdout);
        std::this_thread::sleep_for(50ms); /* a short step of the work */
    }
    std::printf("lost: %s\n", guard.loss_message().c_str());
    if (guard.unlock(rc) || rc != nxl::result::lost)
        std::puts("this cannot be: what was lost is not released");
    return 79;
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        std::fprintf(stderr, "usage: leader NAME\n");
        return 64;
    }
    const char *url = std::getenv("NXLOCK_URL");
    nxl::result rc;
    nxl::client client(url ? url : "redis://localhost:6379", rc);
    if (rc != nxl::result::ok) {
        std::fprintf(stderr, "%s\n", client.message());
        return 78;
    }
    nxl::lock lock(client, argv[1], nxl::lock_options().ttl(3s).renew(), rc);
    if (rc != nxl::result::ok) {
        std::fprintf(stderr, "%s\n", client.message());
        return 64;
    }
    nxl::guard guard(lock, std::defer_lock);
    return lead(guard);
}
