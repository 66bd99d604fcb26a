/* SPDX-License-Identifier: MIT */
/*
 * nxlock.hpp with exceptions: what is thrown and what is returned, that a guard
 * which an exception destroys releases, and that nothing else leaves a
 * destructor. What the calls do is tested in results.cpp.
 */
#include "tap.hpp"

#include <exception>
#include <type_traits>
#include <utility>

/* Move-only; what cannot fail, or says so by a result, does not throw. */
template <class Type>
constexpr bool moves =
    std::is_nothrow_move_constructible_v<Type>
        &&std::is_nothrow_move_assignable_v<Type>
            &&std::is_nothrow_destructible_v<Type> &&
    !std::is_copy_constructible_v<Type> && !std::is_copy_assignable_v<Type>;
static_assert(moves<nxl::client> && moves<nxl::lock> && moves<nxl::guard>);
static_assert(std::is_base_of_v<std::exception, nxl::error>);
static_assert(noexcept(std::declval<nxl::guard &>().try_lock_for(
    std::declval<std::chrono::seconds &>(), std::declval<result &>())));
static_assert(!noexcept(std::declval<nxl::guard &>().unlock()));
static_assert(
    noexcept(std::declval<nxl::guard &>().unlock(std::declval<result &>())));
/* What is gone at the end of the line cannot be referred to. */
static_assert(!std::is_constructible_v<nxl::lock, nxl::client, const char *>);
static_assert(
    !std::is_constructible_v<nxl::guard, nxl::lock, std::defer_lock_t>);
static_assert(!std::is_convertible_v<nxl::guard, bool>);

/* No exception can get into C: a callback that may throw is not accepted. */
template <class Function, class = void> constexpr bool accepted = false;
template <class Function>
constexpr bool accepted<Function,
    std::void_t<decltype(std::declval<nxl::client_options &>().warning(
        std::declval<Function>(), nullptr))>> = true;
static_assert(accepted<void (*)(void *, const char *) noexcept>);
static_assert(!accepted<void (*)(void *, const char *)>);

/* What the call throws: its result, or ok. */
template <class Call> static result thrown(Call call)
{
    try {
        call();
    } catch (const std::exception &any) {
        const auto *error = dynamic_cast<const nxl::error *>(&any);
        CHECK(error && *error->what());
        return error ? error->result() : result::pending;
    }
    return result::ok;
}

struct accident {
};

static void released_by_an_exception()
{
    place here("scope"), see("scope");
    try {
        nxl::guard guard(here.lock);
        CHECK(guard.owns_lock() && see.taken());
        throw accident();
    } catch (const accident &) {
        CHECK(!see.taken());
    }

    /* Also if it was lost, and if nobody answers: no second exception. */
    try {
        nxl::guard guard(here.lock);
        CHECK(see.remove());
        throw accident();
    } catch (const accident &) {
        CHECK(!see.taken());
    }
    place impatient("scope", nxl::lock_options().ttl(20s), 100ms);
    try {
        nxl::guard guard(impatient.lock);
        frozen server;
        nxl::guard last(std::move(guard));
        throw accident();
    } catch (const accident &) {
        CHECK(await_([&] { return !see.taken(); }));
    }
}

static void thrown_or_returned()
{
    place here("job"), there("job");
    nxl::guard mine(here.lock, 0s);
    nxl::guard theirs(there.lock, std::try_to_lock);
    CHECK(mine.owns_lock() && !theirs.owns_lock());
    CHECK(!theirs.try_lock() && !theirs.try_lock_for(1ms));
    CHECK(!theirs.try_lock_until(nxl::clock::now() + 1ms));
    CHECK(!theirs.try_lock_until(std::chrono::system_clock::now() + 1ms));
    result rc;
    CHECK(!theirs.try_lock_until(nxl::clock::time_point::min()));
    CHECK(!theirs.try_lock_until(
        std::chrono::system_clock::time_point::min(), rc));
    CHECK(rc == result::busy);
    CHECK(!nxl::guard(there.lock, 1ms));
    CHECK(thrown([&] { theirs.unlock(); }) == result::invalid);
    CHECK(thrown([&] { theirs.extend(); }) == result::invalid);
    CHECK(thrown([&] { mine.lock(); }) == result::invalid);
    CHECK(mine.owns_lock());
    CHECK(thrown([&] { mine.extend(); }) == result::ok);
    CHECK(thrown([&] { mine.unlock(); }) == result::ok);
    CHECK(thrown([&] { mine.unlock(); }) == result::invalid);
    CHECK(thrown([&] { theirs.lock(); }) == result::ok);
    CHECK(here.remove());
    CHECK(thrown([&] { theirs.unlock(); }) == result::lost);
    CHECK(thrown([&] { theirs.adopt("0"); }) == result::invalid);
    there.lock.interrupt();
    CHECK(thrown([&] { theirs.lock(); }) == result::cancelled);
    CHECK(thrown([&] { nxl::guard().lock(); }) == result::invalid);
}

static void not_constructed()
{
    CHECK(thrown([] { nxl::client none("http://x"); }) == result::url);
    CHECK(thrown([] {
        nxl::client empty;
        nxl::lock none(empty, "x");
    }) == result::invalid);
    CHECK(thrown([] {
        nxl::client client("unix:///nonexistent/socket");
        nxl::lock lock(client, "x");
        nxl::guard none(lock, std::try_to_lock);
    }) == result::unreachable);
    const nxl::error error(result::busy, nullptr), copy = error;
    CHECK(std::string(copy.what()) == nxl::to_string(result::busy));
}

/* By a callback that says what it was called for. */
static void traced()
{
    int ends = 0, asked = 0;
    nxl::client client(server_url,
        nxl::client_options()
            .timeout(5s)
            .max_ttl(30s)
            .prefix("traced:")
            .warning([](void *, const char *) noexcept {}, nullptr)
            .tracer(
                [](void *arg, const nxl_trace *trace) noexcept {
                    *static_cast<int *>(arg) += trace->kind == NXL_TRACE_END;
                },
                &ends));
    CHECK(nxl_client_max_ttl_ms(client.native_handle()) == 30000);
    CHECK(std::string(nxl_client_prefix(client.native_handle())) == "traced:");
    nxl::lock lock(client, "x",
        nxl::lock_options().ttl(3s).renew().max_hold(10s).min_hold(1ms));
    nxl::guard guard(lock, 10s);
    guard.unlock();
    CHECK(ends == 2);

    nxl::client denied(
        server_url, nxl::client_options().timeout(5s).credentials(
                        [](void *arg, nxl_credentials *) noexcept {
                            ++*static_cast<int *>(arg);
                            return false;
                        },
                        &asked));
    nxl::lock locked(denied, "x");
    CHECK(thrown([&] { nxl::guard none(locked, std::try_to_lock); }) ==
          result::unreachable);
    denied = nxl::client(); /* waits for the callback */
    CHECK(asked > 0);
}

/* Who holds a lock. */
static void held_by()
{
    place here("held-by");
    CHECK(here.lock.holders().empty());
    nxl::guard guard(here.lock);
    CHECK(here.lock.holders().size() == 1);
    nxl::lock empty;
    CHECK(
        thrown([&] { static_cast<void>(empty.holders()); }) == result::invalid);
}

int main(int argc, char **argv)
{
    if (!tap_begin(argc, argv))
        return 2;
    released_by_an_exception();
    thrown_or_returned();
    not_constructed();
    traced();
    held_by();
    return tap_end();
}
