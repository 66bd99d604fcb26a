/* SPDX-License-Identifier: MIT */
/*
 * What the tests of nxlock.hpp share: checks in TAP, a client and a lock at the
 * server that test_cpp.py has started, and a server that does not answer.
 *
 * Usage of both programs: PROGRAM URL PID, of the server.
 */
#ifndef NXLOCK_TESTS_CPP_TAP_HPP
#define NXLOCK_TESTS_CPP_TAP_HPP

#include <nxlock.hpp>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include <sys/wait.h>
#include <unistd.h>

using namespace std::chrono_literals;
using nxl::result;

inline int tap_count, tap_bad;
inline std::string server_url;
inline pid_t server_pid;
inline result got; /* of the last call */

inline bool check(bool good, const char *what, int line)
{
    tap_bad += !good;
    std::printf(
        "%sok %d - line %d: %s\n", good ? "" : "not ", ++tap_count, line, what);
    std::fflush(stdout);
    return good;
}
#define CHECK(condition) check((condition), #condition, __LINE__)

/* A call with this result; what it says is shown if it has another. */
inline void check_result(
    result is, result wanted, const char *message, const char *what, int line)
{
    if (!check(is == wanted, what, line))
        std::printf("# %s; it says \"%s\"\n", nxl::to_string(is), message);
}
#define RESULT(call, wanted, object)                                           \
    do {                                                                       \
        got = result::pending;                                                 \
        const bool good = (call);                                              \
        check_result(got, result::wanted, (object).message(),                  \
            #call " is " #wanted, __LINE__);                                   \
        if (good != (got == result::ok))                                       \
            CHECK(!"it returns whether it is ok");                             \
    } while (0)

/* For what nothing announces; false after 30 s. */
template <class Condition> bool await_(Condition condition)
{
    for (int i = 0; i < 30000 && !condition(); i++)
        std::this_thread::sleep_for(1ms);
    return condition();
}

/* A client and a lock, with enough time for a busy machine. */
struct place {
    result made = result::pending;
    nxl::client client;
    nxl::lock lock;

    explicit place(const char *name,
        const nxl::lock_options &options = nxl::lock_options().ttl(20s),
        std::chrono::milliseconds timeout = 5s)
        : client(server_url, nxl::client_options().timeout(timeout), made),
          lock(client, name, options, made)
    {
        if (made != result::ok)
            CHECK(!"a client and a lock");
    }

    /* As a server's answer; taking it from whoever has it. */
    bool taken()
    {
        nxl_holder holder = NXL_HOLDER_INIT;
        return nxl_lock_inspect(lock.native_handle(), &holder) == NXL_OK;
    }
    bool remove()
    {
        nxl_holder holder = NXL_HOLDER_INIT;
        return nxl_lock_inspect(lock.native_handle(), &holder) == NXL_OK &&
               nxl_lock_break(lock.native_handle(), &holder) == NXL_OK;
    }
};

/* The server does not answer in this scope. */
struct frozen {
    frozen()
    {
        kill(server_pid, SIGSTOP);
    }
    ~frozen()
    {
        kill(server_pid, SIGCONT);
    }
};

inline bool tap_begin(int argc, char **argv)
{
    if (argc != 3)
        return false;
    server_url = argv[1];
    server_pid = static_cast<pid_t>(std::atol(argv[2]));
    return server_pid > 0;
}

inline int tap_end()
{
    std::printf("1..%d\n", tap_count);
    return tap_bad != 0;
}

#endif
