/* SPDX-License-Identifier: MIT */
/*
 * nxlock.hpp with results, built with -fno-exceptions and -fno-rtti: each state
 * of a guard (empty, deferred, held, unlocked, moved from, released, lost,
 * expired, forked) against each call on it.
 */
#include "tap.hpp"

#include <atomic>
#include <limits>
#include <vector>

/* A result that nxlock.h gets and nxl::result lacks does not compile here
 * (-Wswitch is an error). */
static result same(nxl_result c)
{
    switch (c) {
#define SAME(number, cpp)                                                      \
    case number:                                                               \
        return result::cpp
        SAME(NXL_OK, ok);
        SAME(NXL_BUSY, busy);
        SAME(NXL_LOST, lost);
        SAME(NXL_UNKNOWN, unknown);
        SAME(NXL_PENDING, pending);
        SAME(NXL_CANCELLED, cancelled);
        SAME(NXL_FREE, free);
        SAME(NXL_DONE, done);
        SAME(NXL_DOUBT, doubt);
        SAME(NXL_MISMATCH, mismatch);
        SAME(NXL_E_INVALID, invalid);
        SAME(NXL_E_NOMEM, no_memory);
        SAME(NXL_E_SYSTEM, system);
        SAME(NXL_E_URL, url);
        SAME(NXL_E_UNREACHABLE, unreachable);
        SAME(NXL_E_DENIED, denied);
        SAME(NXL_E_REFUSED, refused);
        SAME(NXL_E_WRONG_TYPE, wrong_type);
        SAME(NXL_E_NOT_REDIS, not_redis);
        SAME(NXL_E_UNSUPPORTED, unsupported);
        SAME(NXL_E_SERVER, server);
        SAME(NXL_E_FORKED, forked);
#undef SAME
    }
    return result::pending;
}

static void numbers()
{
    for (int c = NXL_E_FORKED; c <= NXL_MISMATCH; c++) {
        if (static_cast<int>(same(static_cast<nxl_result>(c))) != c)
            CHECK(!"a result has the number of nxlock.h");
    }
    CHECK(std::string(nxl::to_string(result::lost)) == nxl_strerror(NXL_LOST));

    using nxl::detail::to_option_ms;
    using nxl::detail::to_wait_ms;
    constexpr double none = std::numeric_limits<double>::quiet_NaN();
    CHECK(to_wait_ms(1us) == 1 && to_wait_ms(1001us) == 2);
    CHECK(to_wait_ms(0s) == 0 && to_wait_ms(-1h) == 0);
    CHECK(to_wait_ms(std::chrono::hours::min()) == 0);
    CHECK(to_wait_ms(std::chrono::hours::max()) == NXL_FOREVER);
    CHECK(to_wait_ms(std::chrono::nanoseconds::max()) == NXL_FOREVER);
    CHECK(to_wait_ms(std::chrono::duration<double>(none)) == 0);
    CHECK(to_wait_ms(std::chrono::duration<double>(0.0105)) == 11);
    CHECK(to_option_ms(std::chrono::hours::max()) == INT64_MAX);
    CHECK(to_option_ms(std::chrono::hours::min()) == -1);
    CHECK(to_option_ms(std::chrono::duration<double>(none)) == INT64_MAX);
    CHECK(to_option_ms(-3s) == -3000 && to_option_ms(1min) == 60000);
}

/* Overwrites the memory that strings of these lengths have used. */
static void reuse_memory()
{
    std::vector<std::string> others;
    for (int i = 0; i < 64; i++)
        others.emplace_back(i % 2 ? 12 : 60, 'x');
    CHECK(others.size() == 64);
}

static bool has_prefix(const nxl::client_options &options, const char *prefix)
{
    reuse_memory();
    nxl::client client(server_url, options, got);
    return got == result::ok &&
           std::string(nxl_client_prefix(client.native_handle())) == prefix;
}

static bool has_label(const nxl::lock_options &options, const char *label)
{
    reuse_memory();
    place here("labelled", options);
    nxl::guard guard(here.lock, 1s, got);
    return got == result::ok &&
           std::string(guard.token()).find(label) != std::string::npos;
}

/* Options own their texts, short and long ones: a string that has ended does
 * not become another name, in copies either, whichever of them lives on. */
static void texts()
{
    const std::string tenants[] = {"acme", std::string(40, 't')};
    for (const std::string &tenant : tenants) {
        const std::string prefix = tenant + ":", label = tenant + "/1";
        nxl::client_options assigned;
        nxl::lock_options relabelled;
        {
            auto options = nxl::client_options().timeout(3s).prefix(
                (tenant + ":").c_str());
            auto marks =
                nxl::lock_options().ttl(20s).label((tenant + "/1").c_str());
            CHECK(has_prefix(options, prefix.c_str()));
            CHECK(has_label(marks, label.c_str()));
            const nxl::client_options copied(options);
            const nxl::lock_options copied_marks(marks);
            assigned = options;
            relabelled = marks;
            options.prefix(std::string("another:"));
            marks.label(std::string("another"));
            CHECK(has_prefix(copied, prefix.c_str()));
            CHECK(has_label(copied_marks, label.c_str()));
            CHECK(has_prefix(
                nxl::client_options(std::move(options)), "another:"));
            CHECK(has_label(nxl::lock_options(std::move(marks)), "another"));
        }
        assigned = *&assigned;
        relabelled = *&relabelled;
        CHECK(has_prefix(assigned, prefix.c_str()));
        CHECK(has_label(relabelled, label.c_str()));
        assigned.c.prefix = "own:"; /* the last one counts */
        CHECK(has_prefix(assigned, "own:"));
        CHECK(has_prefix(nxl::client_options(assigned), "own:"));
        CHECK(has_prefix(assigned.prefix(nullptr), ""));
        CHECK(has_label(relabelled.label(nullptr), ""));
    }
    const std::string cut("a\0b", 3);
    nxl::client zero(server_url, nxl::client_options().prefix(cut), got);
    CHECK(got == result::invalid && !zero);
    CHECK(std::string(zero.message()).find("zero byte") != std::string::npos);
    nxl::client at(server_url + cut, got);
    CHECK(got == result::invalid && !at);
}

/* What was not constructed refuses everything, with a reason. */
static void empty()
{
    nxl::client none, bad("http://localhost", got);
    CHECK(got == result::url && !bad && !none);
    CHECK(std::string(bad.message()).find("http") != std::string::npos);
    nxl::client moved(std::move(bad));
    CHECK(std::string(moved.message()).find("http") != std::string::npos);
    nxl::lock lock(none, "x", got);
    CHECK(got == result::invalid && !lock);
    none.interrupt();
    lock.interrupt();

    nxl::guard nothing, deferred(lock, std::defer_lock);
    for (nxl::guard *guard : {&nothing, &deferred}) {
        RESULT(guard->lock(got), invalid, *guard);
        RESULT(guard->try_lock(got), invalid, *guard);
        RESULT(guard->try_lock_for(1s, got), invalid, *guard);
        RESULT(guard->unlock(got), invalid, *guard);
        CHECK(*guard->message() != '\0');
        RESULT(guard->extend(1s, got), invalid, *guard);
        RESULT(guard->adopt("x", got), invalid, *guard);
        CHECK(!guard->owns_lock() && !*guard && !guard->native_handle());
        CHECK(guard->deadline() == nxl::clock::time_point());
        CHECK(guard->remaining() == 0ms && guard->fencing_token() == 0);
        CHECK(guard->loss() == nxl::loss::none && *guard->token() == '\0');
        CHECK(guard->loss_message().empty() && !guard->release());
    }

    place good("x");
    nxl::lock refused(good.client, "x", nxl::lock_options().ttl(24h), got);
    CHECK(got == result::invalid && *good.client.message());
    nxl::lock nameless(good.client, std::string_view(), got);
    CHECK(got == result::invalid);
    nxl::lock one(good.client, std::string_view("a\0b", 3), got);
    nxl::lock two(good.client, std::string_view("a\0c", 3), got);
    nxl::guard first(one, 0s, got), second(two, 0s, got);
    CHECK(first && second);
}

static void held_and_busy()
{
    place here("job", nxl::lock_options().ttl(20s).fence().label("me"));
    place there("job", nxl::lock_options().ttl(20s).fence());
    nxl::guard mine(here.lock, std::defer_lock);
    nxl::guard theirs(there.lock, std::defer_lock);

    RESULT(mine.try_lock(got), ok, mine);
    const auto now = nxl::clock::now();
    CHECK(mine.owns_lock() && mine);
    CHECK(mine.deadline() > now + 10s && mine.deadline() < now + 20s);
    CHECK(mine.remaining() > 10s && mine.remaining() < 20s);
    CHECK(std::string(mine.token()).find("@me") != std::string::npos);
    CHECK(*mine.message() == '\0');
    RESULT(mine.try_lock(got), invalid, mine);
    CHECK(mine.owns_lock());

    /* try_lock_for waits that long, and not much longer. */
    const auto began = nxl::clock::now();
    RESULT(theirs.try_lock_for(150ms, got), busy, theirs);
    const auto took = nxl::clock::now() - began;
    CHECK(took >= 150ms && took < 5s + 400ms);
    CHECK(!theirs.owns_lock() && *theirs.message());
    RESULT(theirs.unlock(got), invalid, theirs);
    CHECK(here.taken());

    /* Another guard of the same handle is not in charge. */
    nxl::guard deferred(here.lock, std::defer_lock);
    CHECK(!deferred.owns_lock() && deferred.remaining() == 0ms);
    CHECK(deferred.deadline() == nxl::clock::time_point());
    RESULT(deferred.unlock(got), invalid, deferred);
    RESULT(deferred.extend(1s, got), invalid, deferred);
    CHECK(mine.owns_lock());

    const auto before = mine.deadline();
    RESULT(mine.extend(40s, got), ok, mine);
    CHECK(mine.deadline() > before + 10s);

    const auto number = mine.fencing_token();
    RESULT(mine.unlock(got), ok, mine);
    CHECK(!mine.owns_lock() && mine.deadline() == nxl::clock::time_point());
    RESULT(deferred.try_lock(got), ok, deferred);
    RESULT(mine.unlock(got), invalid, mine); /* nor what another one holds */
    CHECK(*mine.message() != '\0' && deferred.owns_lock());
    RESULT(deferred.unlock(got), ok, deferred);
    RESULT(theirs.lock(got), ok, theirs);
    CHECK(number > 0 && theirs.fencing_token() > number);
}

static void interrupted()
{
    place here("wait"), there("wait");
    nxl::guard held(here.lock, 0s, got), waits(there.lock, std::defer_lock);
    for (int way = 0; way < 2; way++) {
        std::thread other(
            [&] { way ? there.client.interrupt() : there.lock.interrupt(); });
        RESULT(waits.try_lock_for(std::chrono::hours::max(), got), cancelled,
            waits);
        other.join();
    }
    CHECK(held.owns_lock());
}

static void moved()
{
    place here("move"), there("other"), see("move"), see_other("other");
    {
        nxl::guard first(here.lock, 0s, got);
        nxl::guard second(std::move(first));
        CHECK(!first && !first.native_handle() && second);
        RESULT(first.unlock(got), invalid, first);
        RESULT(first.try_lock(got), invalid, first);
        nxl::guard other(there.lock, 0s, got);
        CHECK(see_other.taken());
        other = std::move(second); /* releases what it had */
        CHECK(!see_other.taken() && see.taken() && other && !second);
        nxl::guard &self = other;
        other = std::move(self);
        CHECK(other.owns_lock());

        nxl::lock away(std::move(here.lock)); /* the guard is not concerned */
        CHECK(!here.lock && other.owns_lock());
        here.lock = std::move(away);
        nxl::client elsewhere(std::move(here.client));
        CHECK(!here.client && other.owns_lock());
        here.client = std::move(elsewhere);
    }
    CHECK(!see.taken());

    nxl_lock *handle;
    {
        nxl::guard guard(here.lock, 0s, got);
        handle = guard.release();
        CHECK(handle == here.lock.native_handle() && !guard);
        RESULT(guard.unlock(got), invalid, guard);
    }
    CHECK(see.taken() && nxl_lock_held(handle));
    {
        nxl::guard guard(here.lock, std::adopt_lock);
        CHECK(guard.owns_lock());
        nxl::guard theirs(see.lock, std::defer_lock); /* handed over */
        RESULT(theirs.adopt(guard.token(), got), ok, theirs);
        CHECK(theirs.owns_lock() && theirs.fencing_token() == 0);
        CHECK(guard.release() == handle);
    }
    CHECK(!see.taken());
    nxl::guard again(see.lock, std::defer_lock);
    RESULT(again.adopt("0", got), invalid, again);
}

static void lost()
{
    place here("lost"), thief("lost");
    nxl::guard guard(here.lock, std::defer_lock);
    RESULT(guard.lock(got), ok, guard);
    CHECK(thief.remove());
    RESULT(guard.unlock(got), lost, guard);
    RESULT(guard.lock(got), ok, guard); /* the same guard, once more */
    CHECK(thief.remove());
    RESULT(guard.extend(0s, got), lost, guard);
    CHECK(!guard.owns_lock());
    RESULT(guard.unlock(got), lost, guard);

    /* Renewal finds out, and says how. */
    place renewed("gone", nxl::lock_options().ttl(600ms).renew());
    place other("gone");
    nxl::guard kept(renewed.lock, std::defer_lock);
    RESULT(kept.lock(got), ok, kept);
    CHECK(kept.loss() == nxl::loss::none && kept.loss_message().empty());
    CHECK(other.remove());
    CHECK(await_([&] { return !kept.owns_lock(); }));
    CHECK(await_([&] { return kept.loss() != nxl::loss::none; }));
    CHECK(
        kept.loss() == nxl::loss::removed || kept.loss() == nxl::loss::expired);
    CHECK(!kept.loss_message().empty());
    RESULT(kept.unlock(got), lost, kept);

    /* A lease that ends. */
    place brief("brief", nxl::lock_options().ttl(60ms));
    nxl::guard expired(brief.lock, std::defer_lock);
    RESULT(expired.lock(got), ok, expired);
    std::this_thread::sleep_until(expired.deadline());
    CHECK(await_([&] { return !expired; }));
    CHECK(expired.deadline() == nxl::clock::time_point());
    RESULT(expired.unlock(got), lost, expired);
    RESULT(expired.lock(got), ok, expired); /* and then expires in its scope */
    std::this_thread::sleep_until(expired.deadline());
}

/* The server neither says yes nor no. */
static void unknown()
{
    place here("quiet", nxl::lock_options().ttl(20s), 100ms), see("quiet");
    nxl::guard guard(here.lock, std::defer_lock);
    RESULT(guard.lock(got), ok, guard);
    {
        frozen server;
        const auto before = guard.deadline();
        RESULT(guard.extend(0s, got), unknown, guard);
        CHECK(guard.owns_lock() && guard.deadline() == before);
        RESULT(guard.unlock(got), unknown, guard);
        CHECK(!guard.owns_lock());
    }
    CHECK(await_([&] { return !see.taken(); }));
}

/* A child of fork() has a copy of the guard, and does the lock no harm. */
static void forked()
{
    place here("fork"), see("fork");
    nxl::guard guard(here.lock, 0s, got);
    std::fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        bool good = !guard.owns_lock() && !guard.unlock(got);
        good = good && got == result::forked;
        guard = nxl::guard();
        _exit(good ? 0 : 1);
    }
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(guard.owns_lock() && see.taken());
}

/* A record beside the lock: leaving without a verdict is a doubt. */
static void once()
{
    place here("pay", nxl::lock_options().ttl(2s)), see("pay");
    {
        nxl::guard guard(here.lock, std::defer_lock);
        CHECK(nxl_once_begin(here.lock.native_handle(), nullptr, 0) == NXL_OK);
        guard = nxl::guard(here.lock, std::adopt_lock);
        CHECK(guard.owns_lock() && guard.fencing_token() > 0);
    }
    CHECK(nxl_once_begin(see.lock.native_handle(), nullptr, 0) == NXL_DOUBT);
    CHECK(nxl_once_tell(see.lock.native_handle(), NXL_ONCE_FAILED, 0, nullptr,
              0) == NXL_OK);
    {
        CHECK(nxl_once_begin(here.lock.native_handle(), nullptr, 0) == NXL_OK);
        nxl::guard guard(here.lock, std::adopt_lock);
        CHECK(nxl_once_tell(here.lock.native_handle(), NXL_ONCE_DONE, 0, "r",
                  1) == NXL_OK);
        CHECK(!guard.owns_lock());
    }
    CHECK(nxl_once_begin(see.lock.native_handle(), nullptr, 0) == NXL_DONE);
}

/* Locks that several hold, and who holds them. */
static void several()
{
    place here("pool");
    const auto of_two = nxl::lock_options().ttl(20s).permits(4, 2).label("two");
    result made = result::pending;
    nxl::lock two(here.client, "pool", of_two, made);
    nxl::lock one(
        here.client, "pool", nxl::lock_options().ttl(10s).permits(3), made);
    nxl::lock reader(
        here.client, "pool", nxl::lock_options().ttl(5s).shared(), made);
    CHECK(made == result::ok);
    CHECK(two.holders(made).empty() && made == result::free);
    CHECK(nxl::lock().holders(made).empty() && made == result::invalid);

    nxl::guard first(two, 0s, made), second(one, 0s, made);
    CHECK(made == result::ok && first.owns_lock() && second.owns_lock());
    nxl::guard third(reader, 0s, made);
    CHECK(made == result::busy);
    nxl::guard alone(here.lock, 0s, made);
    CHECK(made == result::busy);
    std::vector<nxl::holder> all = here.lock.holders(made);
    CHECK(made == result::ok && all.size() == 2);
    CHECK(all.size() == 2 && all[0].value == first.token() &&
          all[0].label == "two" && all[0].weight == 2 && all[0].permits == 4 &&
          all[0].left > 10s && all[0].left <= 20s);
    CHECK(all.size() == 2 && all[1].value == second.token() &&
          all[1].label.empty() && all[1].weight == 1 && all[1].permits == 3);
    RESULT(first.unlock(got), ok, first);
    RESULT(third.try_lock(got), ok, third);
    RESULT(second.unlock(got), ok, second);
    all = here.lock.holders(made);
    CHECK(all.size() == 1 && all[0].weight == 1 && all[0].permits == 0);
    RESULT(third.unlock(got), ok, third);
    RESULT(alone.try_lock(got), ok, alone);
    all = two.holders(made);
    CHECK(all.size() == 1 && all[0].value == alone.token() &&
          all[0].weight == 0 && all[0].permits == 0);

    nxl::lock wrong(
        here.client, "pool", nxl::lock_options().permits(2).shared(), made);
    CHECK(made == result::invalid && !wrong);
    nxl::lock fenced(
        here.client, "pool", nxl::lock_options().permits(2).fence(), made);
    CHECK(made == result::invalid && !fenced);
    nxl::lock heavy(
        here.client, "pool", nxl::lock_options().permits(2, 3), made);
    CHECK(made == result::invalid && !heavy);
}

/* Threads share a client; each has a lock and a guard of its own. */
static void threads()
{
    place shared("shared");
    std::atomic<int> inside{0}, most{0}, failed{0};
    std::vector<std::thread> all;
    for (int i = 0; i < 4; i++) {
        all.emplace_back([&] {
            result own;
            nxl::lock lock(shared.client, "shared",
                nxl::lock_options().ttl(20s).renew(), own);
            for (int turn = 0; turn < 10; turn++) {
                nxl::guard guard(lock, 30s, own);
                failed += own != result::ok;
                const int now = ++inside;
                if (now > most)
                    most = now;
                --inside;
            }
        });
    }
    for (std::thread &thread : all)
        thread.join();
    CHECK(failed == 0 && most == 1);
}

int main(int argc, char **argv)
{
    if (!tap_begin(argc, argv))
        return 2;
    numbers();
    texts();
    empty();
    held_and_busy();
    interrupted();
    moved();
    lost();
    unknown();
    forked();
    once();
    several();
    threads();
    return tap_end();
}
