/* SPDX-License-Identifier: MIT */
/*
 * quick: one lock, with exceptions. Waits 5 s if another process has it.
 */
#include <nxlock.hpp>

#include <cstdio>
#include <cstdlib>

using namespace std::chrono_literals;

static int work()
{
    const char *url = std::getenv("NXLOCK_URL");
    nxl::client client(url ? url : "redis://localhost:6379");
    nxl::lock lock(client, "invoice:42");
    nxl::guard guard(lock, std::defer_lock);

    if (!guard.try_lock_for(5s)) {
        std::fprintf(stderr, "%s\n", guard.message()); /* who has it */
        return 75;
    }
    std::puts("one process at a time is here, for 30 s at most");
    guard.unlock(); /* throws if the lease had expired before */
    return 0;
}

int main()
{
    try {
        return work();
    } catch (const nxl::error &error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
