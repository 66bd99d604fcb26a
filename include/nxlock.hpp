/* SPDX-License-Identifier: MIT */
/*
 * nxlock.hpp: nxlock for C++17 and later. All of it is in this header; link
 * with the C library, libnxlock. docs/cpp.md is its guide.
 *
 *     nxl::client client("redis://localhost:6379");
 *     nxl::lock lock(client, "invoice:42");
 *     nxl::guard guard(lock, std::defer_lock);
 *     if (guard.try_lock_for(5s)) { // false: busy
 *         ... only one process at a time is here, for 30 s at most ...
 *         guard.unlock(); // throws if the lease expired before the work ended
 *     }
 *
 * Exceptions or results, your choice in each call: whatever can fail exists
 * twice. Without a nxl::result at the end it throws nxl::error. With one it
 * never throws, sets it, and returns whether it is nxl::result::ok:
 *
 *     nxl::result rc;
 *     if (!guard.try_lock_for(5s, rc))
 *         std::fprintf(stderr, "%s\n", guard.message()); // why; rc says which
 *
 * With -fno-exceptions only the second kind exists; -fno-rtti changes nothing.
 * What is not wrapped (once, the event-loop API, inspect, ...) is called
 * through native_handle(), which every class has. What nxlock.h says of a call
 * holds here too: who may call it, how long it blocks, what a result means.
 *
 * Invariant: nothing here starts a thread, and nothing throws through C. (The
 * library itself renews leases in a thread of its own: lock_options::renew().)
 */
#ifndef NXLOCK_HPP
#define NXLOCK_HPP

#if __cplusplus < 201703L
#error "nxlock.hpp needs C++17: compile with -std=c++17 or later"
#else

#include "nxlock.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <mutex> /* std::defer_lock and its like */
#include <ratio>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#ifdef __cpp_exceptions
#include <stdexcept>
#endif

namespace nxl
{

/* ---------------------------------------------------------------- results */

/* An enum nxl_result of nxlock.h, with the same numbers; nxlock.h says what
 * each one means. */
enum class result : int {
    ok = NXL_OK,
    busy = NXL_BUSY,
    lost = NXL_LOST,
    unknown = NXL_UNKNOWN,
    pending = NXL_PENDING,
    cancelled = NXL_CANCELLED,
    free = NXL_FREE,
    done = NXL_DONE,
    doubt = NXL_DOUBT,
    mismatch = NXL_MISMATCH,
    invalid = NXL_E_INVALID,
    no_memory = NXL_E_NOMEM,
    system = NXL_E_SYSTEM,
    url = NXL_E_URL,
    unreachable = NXL_E_UNREACHABLE,
    denied = NXL_E_DENIED,
    refused = NXL_E_REFUSED,
    wrong_type = NXL_E_WRONG_TYPE,
    not_redis = NXL_E_NOT_REDIS,
    unsupported = NXL_E_UNSUPPORTED,
    server = NXL_E_SERVER,
    forked = NXL_E_FORKED
};

/* Returns the name and meaning of a result, for messages; static storage. The
 * message() of a guard, lock or client says more. */
[[nodiscard]] inline const char *to_string(result rc) noexcept
{
    return nxl_strerror(static_cast<int>(rc));
}

/* How a lock with lock_options::renew() was lost: an enum nxl_loss, with the
 * same numbers. */
enum class loss : int {
    none = NXL_LOSS_NONE,
    expired = NXL_LOSS_EXPIRED,
    removed = NXL_LOSS_REMOVED,
    taken = NXL_LOSS_TAKEN,
    unreachable = NXL_LOSS_UNREACHABLE
};

#ifdef __cpp_exceptions
/* What a call without a nxl::result throws. what() is the library's message for
 * people: what failed, why, and what to do. */
class error : public std::runtime_error
{
  public:
    /* For a call of the C library that you make yourself and that failed; a
     * NULL or empty message is replaced by to_string(rc). */
    error(nxl::result rc, const char *message)
        : std::runtime_error(message && *message ? message : to_string(rc)),
          result_(rc)
    {
    }

    /* Never nxl::result::ok. */
    [[nodiscard]] nxl::result result() const noexcept
    {
        return result_;
    }

  private:
    nxl::result result_;
};
#endif

/* ------------------------------------------------------------------- time */

/* The clock of all deadlines, nxl_now_ns(): it counts the time that the machine
 * is suspended, and no step of the system's time changes it. A Clock of
 * <chrono>, so std::this_thread::sleep_until(guard.deadline()) works. */
struct clock {
    using duration = std::chrono::nanoseconds;
    using rep = duration::rep;
    using period = duration::period;
    using time_point = std::chrono::time_point<clock>;
    static constexpr bool is_steady = true;

    [[nodiscard]] static time_point now() noexcept
    {
        return time_point(duration(static_cast<rep>(nxl_now_ns())));
    }
};

namespace detail
{

/* Milliseconds of the C library, rounded up. A century or more, such as
 * hours::max(), is "most". */
template <class Rep, class Period>
std::int64_t to_ms(
    const std::chrono::duration<Rep, Period> &time, std::int64_t most) noexcept
{
    using std::chrono::milliseconds;
    constexpr double century = 3155760000000.0;
    const double rough =
        std::chrono::duration<double, std::milli>(time).count();
    if (!(rough < century)) /* also if it is not a number */
        return most;
    if (rough < -century)
        return -1;
    return std::chrono::ceil<milliseconds>(time).count();
}

/* The same to wait for: no time at all if it is negative, or not a number. */
template <class Rep, class Period>
std::int64_t to_wait_ms(const std::chrono::duration<Rep, Period> &wait) noexcept
{
    return wait > wait.zero() ? to_ms(wait, NXL_FOREVER) : 0;
}

/* The time until then; 0 if it has passed, however long ago. */
template <class Clock, class Duration>
auto time_until(const std::chrono::time_point<Clock, Duration> &then)
{
    const auto now = Clock::now();
    using left = decltype(then - now);
    return then > now ? then - now : left::zero();
}

/* The same for an option or a lease: too large a number is refused by the
 * library, which names the limit. */
template <class Rep, class Period>
std::int64_t to_option_ms(
    const std::chrono::duration<Rep, Period> &time) noexcept
{
    return to_ms(time, std::numeric_limits<std::int64_t>::max());
}

/* For a copy of options that own a string: the pointer for the copy's C
 * structure. It is to the copy's own string, unless the program set another. */
inline const char *text_of_copy(const char *text, const std::string &owned,
    const std::string &copy) noexcept
{
    return text == owned.c_str() ? copy.c_str() : text;
}

} // namespace detail

/* ----------------------------------------------------------------- client */

/* The options of a client, one setter for each that is needed often; c has all
 * of them. What is not set has its default. A setter copies its string; one
 * that the program sets in c itself has to live until the client is
 * constructed. */
class client_options
{
  public:
    /* For the rest: nxl_client_options of nxlock.h. (errbuf has no effect.) */
    nxl_client_options c;

    client_options() noexcept
    {
        nxl_client_options_init(&c);
    }

    client_options(const client_options &other)
        : c(other.c), prefix_(other.prefix_)
    {
        c.prefix = detail::text_of_copy(other.c.prefix, other.prefix_, prefix_);
    }

    client_options &operator=(const client_options &other)
    {
        if (this != &other) {
            prefix_ = other.prefix_;
            c = other.c;
            c.prefix =
                detail::text_of_copy(other.c.prefix, other.prefix_, prefix_);
        }
        return *this;
    }

    /* The limit of the I/O of one call; default 2 s. */
    template <class Rep, class Period>
    client_options &timeout(
        const std::chrono::duration<Rep, Period> &time) noexcept
    {
        c.timeout_ms = detail::to_option_ms(time);
        return *this;
    }

    /* The longest lease a lock of this client may request; default 60 s. HARM:
     * see max_ttl_ms in nxlock.h. */
    template <class Rep, class Period>
    client_options &max_ttl(
        const std::chrono::duration<Rep, Period> &time) noexcept
    {
        c.max_ttl_ms = detail::to_option_ms(time);
        return *this;
    }

    /* Prepended to every name. A text with a zero byte is refused when the
     * client is constructed. */
    client_options &prefix(std::string text)
    {
        prefix_ = std::move(text);
        c.prefix = prefix_.c_str();
        return *this;
    }

    /* The same; NULL: no prefix. */
    client_options &prefix(const char *text)
    {
        return prefix(std::string(text ? text : ""));
    }

    /* The callbacks of nxlock.h. No exception may leave one, because C called
     * it: so only a function that is noexcept is accepted, such as
     *     [](void *arg, const char *text) noexcept { ... }
     * arg has to live as long as the client. */
    client_options &warning(
        void (*function)(void *, const char *) noexcept, void *arg) noexcept
    {
        c.warning = function;
        c.warning_arg = arg;
        return *this;
    }

    client_options &tracer(void (*function)(void *, const nxl_trace *) noexcept,
        void *arg) noexcept
    {
        c.tracer = function;
        c.tracer_arg = arg;
        return *this;
    }

    client_options &credentials(
        bool (*function)(void *, nxl_credentials *) noexcept,
        void *arg) noexcept
    {
        c.credentials = function;
        c.credentials_arg = arg;
        return *this;
    }

  private:
    friend class client;
    std::string prefix_; /* c.prefix refers to it, or is the program's own */

    [[nodiscard]] bool prefix_has_zero() const noexcept
    {
        return c.prefix == prefix_.c_str() &&
               prefix_.find('\0') != std::string::npos;
    }
};

/* Owns a nxl_client: the connections to one server, or to several that decide
 * by majority. Many locks and threads share one. Declare it before its locks,
 * so that it outlives them. Empty after a move and after a failed construction:
 * then native_handle() is NULL, and what is made of it fails with invalid. */
class [[nodiscard]] client
{
  public:
    /* Empty. */
    client() noexcept = default;

    /* Sets rc, and is empty unless rc is ok; message() then says why. Several
     * URLs are separated by commas. Sends nothing and does not block:
     * nxl_client_new(). Results: invalid, url, no_memory, system. */
    client(const std::string &url, const client_options &options,
        nxl::result &rc) noexcept
    {
        /* C would end the text there, and other locks have that name. */
        if (url.find('\0') != std::string::npos || options.prefix_has_zero()) {
            static const char why[] =
                "the URL or the prefix contains a zero byte; remove it";
            std::char_traits<char>::copy(why_, why, sizeof(why));
            rc = nxl::result::invalid;
            return;
        }
        nxl_client_options copy = options.c;
        copy.errbuf = why_;
        copy.errbuf_size = sizeof(why_);
        rc = static_cast<nxl::result>(
            nxl_client_new(&handle_, url.c_str(), &copy));
    }

    /* The same with default options. */
    client(const std::string &url, nxl::result &rc) noexcept
        : client(url, client_options(), rc)
    {
    }

#ifdef __cpp_exceptions
    /* The same; throws nxl::error. */
    explicit client(const std::string &url, const client_options &options = {})
    {
        nxl::result rc;
        client made(url, options, rc);
        if (rc != nxl::result::ok)
            throw error(rc, made.message());
        *this = std::move(made);
    }
#endif

    /* The other one is empty then; locks and guards are not affected. */
    client(client &&other) noexcept
    {
        *this = std::move(other);
    }

    /* Frees the client that it had. */
    client &operator=(client &&other) noexcept
    {
        if (this != &other) {
            nxl_client_free(handle_);
            handle_ = std::exchange(other.handle_, nullptr);
            std::char_traits<char>::copy(why_, other.why_, sizeof(why_));
        }
        return *this;
    }

    client(const client &) = delete;
    client &operator=(const client &) = delete;

    /* nxl_client_free(): blocks until releases are answered, for 500 ms at
     * most, and until a credentials callback has returned. */
    ~client()
    {
        nxl_client_free(handle_);
    }

    /* Whether it is not empty. */
    [[nodiscard]] explicit operator bool() const noexcept
    {
        return handle_ != nullptr;
    }

    /* The last error of this client, or why it could not be constructed, for
     * people; "" if there was none. Valid until this thread calls it again for
     * any client. */
    [[nodiscard]] const char *message() const noexcept
    {
        return handle_ || !*why_ ? nxl_client_errmsg(handle_) : why_;
    }

    /* Ends every waiting acquire of this client, in any thread, with cancelled;
     * if none is waiting, the next one. Signal handlers may call it. */
    void interrupt() noexcept
    {
        nxl_client_interrupt(handle_);
    }

    /* For the functions of nxlock.h; this object still owns it. */
    [[nodiscard]] nxl_client *native_handle() const noexcept
    {
        return handle_;
    }

  private:
    nxl_client *handle_ = nullptr;
    char why_[256] = ""; /* why it could not be constructed */
};

/* ------------------------------------------------------------------- lock */

/* The options of a lock, as client_options. */
class lock_options
{
  public:
    /* For the rest: nxl_lock_options of nxlock.h. (name_length has no effect.)
     */
    nxl_lock_options c;

    lock_options() noexcept
    {
        nxl_lock_options_init(&c);
    }

    lock_options(const lock_options &other) : c(other.c), label_(other.label_)
    {
        c.label = detail::text_of_copy(other.c.label, other.label_, label_);
    }

    lock_options &operator=(const lock_options &other)
    {
        if (this != &other) {
            label_ = other.label_;
            c = other.c;
            c.label = detail::text_of_copy(other.c.label, other.label_, label_);
        }
        return *this;
    }

    /* The lease; default 30 s. */
    template <class Rep, class Period>
    lock_options &ttl(const std::chrono::duration<Rep, Period> &time) noexcept
    {
        c.ttl_ms = detail::to_option_ms(time);
        return *this;
    }

    /* The library renews the lease until the lock is unlocked or lost, in one
     * thread per client. HARM: a process that hangs keeps its locks; see
     * max_hold(). Default: the lock is held for ttl(), or as extended. */
    lock_options &renew(bool on = true) noexcept
    {
        c.renew = on;
        return *this;
    }

    /* Each grant draws a fencing token, guard::fencing_token(). */
    lock_options &fence(bool on = true) noexcept
    {
        c.fence = on;
        return *this;
    }

    /* Tells people who holds the lock: printable ASCII without spaces. */
    lock_options &label(std::string text)
    {
        label_ = std::move(text);
        c.label = label_.c_str();
        return *this;
    }

    /* The same; NULL: the default. */
    lock_options &label(const char *text)
    {
        label(std::string(text ? text : ""));
        if (!text)
            c.label = nullptr;
        return *this;
    }

    /* With renew(): the lock is lost this long after its grant. */
    template <class Rep, class Period>
    lock_options &max_hold(
        const std::chrono::duration<Rep, Period> &time) noexcept
    {
        c.max_hold_ms = detail::to_option_ms(time);
        return *this;
    }

    /* The lock stays taken for at least this long after its grant. */
    template <class Rep, class Period>
    lock_options &min_hold(
        const std::chrono::duration<Rep, Period> &time) noexcept
    {
        c.min_hold_ms = detail::to_option_ms(time);
        return *this;
    }

    /* Several may hold the lock, each with weight of so many permits:
     * nxl_lock_options.permits. 1: an exclusive lock, which is the default. */
    lock_options &permits(std::int64_t count, std::int64_t weight = 1) noexcept
    {
        c.permits = count;
        c.weight = weight;
        return *this;
    }

    /* The lock is held together with all others that share it, as of readers:
     * nxl_lock_options.shared. */
    lock_options &shared(bool on = true) noexcept
    {
        c.shared = on;
        return *this;
    }

  private:
    std::string label_; /* c.label refers to it, or is the program's own */
};

/* Who holds a lock: nxl_holder of nxlock.h. */
struct holder {
    std::string value; /* the token, or another program's value */
    std::string label; /* "": it has none */
    /* Until its lease ends by the server's clock; -1 ms: never. */
    std::chrono::milliseconds left{0};
    /* The permits that it takes, and how many may be held in all while it does;
     * 0: no limit (shared). Both 0: it holds the lock alone. */
    std::int64_t weight = 0;
    std::int64_t permits = 0;
};

/* Owns a nxl_lock: one contender for one name, for any number of acquires. A
 * nxl::guard acquires and releases it. One thread at a time may use a lock and
 * its guard, and there is one guard of it at a time. Declare it before its
 * guard. Empty after a move and after a failed construction, as a client.
 *
 * It has no lock() and unlock(), so std::lock_guard does not take it: that
 * would hide that the lease expires, and drop the result of the release. */
class [[nodiscard]] lock
{
  public:
    /* Empty. */
    lock() noexcept = default;

    /* Sets rc, and is empty unless rc is ok; the client's message() then says
     * why. The name may contain any bytes. Sends nothing and does not block:
     * nxl_lock_new(). Results: invalid, no_memory, forked. */
    lock(client &owner, std::string_view name, const lock_options &options,
        nxl::result &rc) noexcept
    {
        nxl_lock_options copy = options.c;
        copy.name_length = name.size();
        rc = static_cast<nxl::result>(nxl_lock_new(&handle_,
            owner.native_handle(), name.empty() ? "" : name.data(), &copy));
    }

    /* The same with default options. */
    lock(client &owner, std::string_view name, nxl::result &rc) noexcept
        : lock(owner, name, lock_options(), rc)
    {
    }

#ifdef __cpp_exceptions
    /* The same; throws nxl::error. */
    lock(client &owner, std::string_view name, const lock_options &options = {})
    {
        nxl::result rc;
        lock made(owner, name, options, rc);
        if (rc != nxl::result::ok)
            throw error(rc, owner.message());
        *this = std::move(made);
    }
#endif

    /* One handle for several names that are locked together:
     * nxl_lock_new_many(), which says what that means for each call. Sets rc as
     * the constructor does. */
    [[nodiscard]] static lock of_all(client &owner,
        const std::vector<std::string_view> &names, const lock_options &options,
        nxl::result &rc) noexcept
    {
        lock made;
        const char *texts[NXL_NAMES_MAX];
        std::size_t lengths[NXL_NAMES_MAX];
        /* What has too many names is refused before they are looked at. */
        for (std::size_t i = 0; i < names.size() && i < NXL_NAMES_MAX; i++) {
            texts[i] = names[i].empty() ? "" : names[i].data();
            lengths[i] = names[i].size();
        }
        rc = static_cast<nxl::result>(nxl_lock_new_many(&made.handle_,
            owner.native_handle(), texts, lengths, names.size(), &options.c));
        return made;
    }

#ifdef __cpp_exceptions
    /* The same; throws nxl::error. */
    [[nodiscard]] static lock of_all(client &owner,
        const std::vector<std::string_view> &names,
        const lock_options &options = {})
    {
        nxl::result rc;
        lock made = of_all(owner, names, options, rc);
        if (rc != nxl::result::ok)
            throw error(rc, owner.message());
        return made;
    }
#endif

    /* The number of names, and name i in the order in which they were given: ""
     * if there is none. The text is valid as long as the lock. */
    [[nodiscard]] std::size_t names() const noexcept
    {
        return nxl_lock_names(handle_);
    }
    [[nodiscard]] std::string_view name(std::size_t i) const noexcept
    {
        std::size_t length;
        const char *text = nxl_lock_name(handle_, i, &length);
        return text != nullptr ? std::string_view(text, length)
                               : std::string_view();
    }

    /* The other one is empty then; its guard is not affected. */
    lock(lock &&other) noexcept : handle_(std::exchange(other.handle_, nullptr))
    {
    }

    /* Frees the lock that it had. */
    lock &operator=(lock &&other) noexcept
    {
        if (this != &other) {
            nxl_lock_free(handle_);
            handle_ = std::exchange(other.handle_, nullptr);
        }
        return *this;
    }

    lock(const lock &) = delete;
    lock &operator=(const lock &) = delete;

    /* nxl_lock_free(): does not block. A lock that is still held is released
     * without waiting for the answer. */
    ~lock()
    {
        nxl_lock_free(handle_);
    }

    /* Whether it is not empty; not whether it is held. */
    [[nodiscard]] explicit operator bool() const noexcept
    {
        return handle_ != nullptr;
    }

    /* Cancels the acquire in progress, from any thread, or else the next one:
     * nxl_lock_interrupt(). Does not block. */
    void interrupt() noexcept
    {
        nxl_lock_interrupt(handle_);
    }

    /* Asks the servers who holds the lock, which need not be this process:
     * nxl_lock_inspect(), with its results; ok: it is held. Of several holders
     * those whose leases end last come first, and no more than 1000 of a server
     * are returned. Each is there once, however many servers have it. */
    [[nodiscard]] std::vector<holder> holders(nxl::result &rc)
    {
        std::vector<holder> found;

        rc = static_cast<nxl::result>(nxl_lock_inspect(handle_, nullptr));
        for (std::size_t i = 0; rc == nxl::result::ok && add(found, i); i++) {
        }
        return found;
    }

#ifdef __cpp_exceptions
    /* The same; empty: it is free. Throws nxl::error if that is unknown. */
    [[nodiscard]] std::vector<holder> holders()
    {
        nxl::result rc;
        std::vector<holder> found = holders(rc);
        if (rc != nxl::result::ok && rc != nxl::result::free)
            throw error(rc, nxl_lock_errmsg(handle_));
        return found;
    }
#endif

    /* For the functions of nxlock.h; this object still owns it. */
    [[nodiscard]] nxl_lock *native_handle() const noexcept
    {
        return handle_;
    }

  private:
    nxl_lock *handle_ = nullptr;

    /* Adds the holders that a server has shown. False: there is no such server.
     */
    bool add(std::vector<holder> &found, std::size_t server) const
    {
        const std::size_t before = found.size();
        nxl_holder one = NXL_HOLDER_INIT;
        int rc;

        for (std::size_t i = 0;
             (rc = nxl_lock_holder_at(handle_, server, i, &one)) == NXL_OK;
             i++) {
            const std::string value(one.value, one.value_length);
            std::size_t k = 0;
            while (k < before && found[k].value != value)
                k++;
            if (k == before)
                found.push_back({value, one.label ? one.label : "",
                    std::chrono::milliseconds(one.left_ms), one.weight,
                    one.permits});
        }
        return rc != NXL_E_INVALID;
    }
};

/* ------------------------------------------------------------------ guard */

/* Holds a lock for a scope, as std::unique_lock holds a mutex; but the lock may
 * be lost meanwhile, so owns_lock() can become false at any time, and unlock()
 * has a result. For the blocking API. The guard refers to the handle of the
 * nxl::lock, which has to outlive it (the object may be moved).
 *
 * A guard is "in charge" from a grant until unlock(), release() or a move, also
 * when the lock has been lost in between. */
class [[nodiscard]] guard
{
  public:
    /* Refers to no lock. */
    guard() noexcept = default;

    /* Does not acquire it yet. */
    guard(nxl::lock &of, std::defer_lock_t) noexcept
        : handle_(of.native_handle())
    {
    }

    /* Is in charge of a lock that the same handle acquired in another way:
     * nxl_once_begin(), the release() of another guard. */
    guard(nxl::lock &of, std::adopt_lock_t) noexcept
        : handle_(of.native_handle()), in_charge_(true)
    {
    }

    /* As try_lock_for(wait, rc). */
    template <class Rep, class Period>
    guard(nxl::lock &of, const std::chrono::duration<Rep, Period> &wait,
        nxl::result &rc) noexcept
        : guard(of, std::defer_lock)
    {
        rc = acquire(detail::to_wait_ms(wait));
    }

#ifdef __cpp_exceptions
    /* As lock(). */
    explicit guard(nxl::lock &of) : guard(of, std::defer_lock)
    {
        lock();
    }

    /* As try_lock_for(wait): afterwards, ask owns_lock(). */
    template <class Rep, class Period>
    guard(nxl::lock &of, const std::chrono::duration<Rep, Period> &wait)
        : guard(of, std::defer_lock)
    {
        static_cast<void>(try_lock_for(wait));
    }

    /* As try_lock(): afterwards, ask owns_lock(). */
    guard(nxl::lock &of, std::try_to_lock_t) : guard(of, std::defer_lock)
    {
        static_cast<void>(try_lock());
    }
#endif

    /* The other one refers to no lock then. */
    guard(guard &&other) noexcept
        : handle_(std::exchange(other.handle_, nullptr)),
          in_charge_(std::exchange(other.in_charge_, false)),
          why_(std::exchange(other.why_, nullptr))
    {
    }

    /* First releases the lock that it was in charge of, as the destructor. */
    guard &operator=(guard &&other) noexcept
    {
        if (this != &other) {
            drop();
            handle_ = std::exchange(other.handle_, nullptr);
            in_charge_ = std::exchange(other.in_charge_, false);
            why_ = std::exchange(other.why_, nullptr);
        }
        return *this;
    }

    guard(const guard &) = delete;
    guard &operator=(const guard &) = delete;

    /* If it is in charge, releases the lock: sends one script, blocks for the
     * client's timeout at most, and never throws. The result is dropped. If it
     * is unknown (no answer), the lock is free now or when its TTL is
     * over. If it is lost, another holder may have worked at the same time:
     * whoever has to know that calls unlock() at the end of the work, so that
     * only an exception leaves the release to the destructor. */
    ~guard()
    {
        drop();
    }

    /* Waits without a limit. rc and its meaning: nxl_lock_acquire(). */
    [[nodiscard]] bool lock(nxl::result &rc) noexcept
    {
        rc = acquire(NXL_FOREVER);
        return rc == nxl::result::ok;
    }

    /* Waits for that long if the lock is busy; 0 or less tries once. Returns
     * after max(wait, the client's timeout) at most. busy: another holder still
     * had it then. invalid: this handle holds it already. All results and their
     * meaning: nxl_lock_acquire(). */
    template <class Rep, class Period>
    [[nodiscard]] bool try_lock_for(
        const std::chrono::duration<Rep, Period> &wait,
        nxl::result &rc) noexcept
    {
        rc = acquire(detail::to_wait_ms(wait));
        return rc == nxl::result::ok;
    }

    /* As try_lock_for(), until then by that clock. */
    template <class Clock, class Duration>
    [[nodiscard]] bool try_lock_until(
        const std::chrono::time_point<Clock, Duration> &then,
        nxl::result &rc) noexcept
    {
        return try_lock_for(detail::time_until(then), rc);
    }

    /* Tries once. */
    [[nodiscard]] bool try_lock(nxl::result &rc) noexcept
    {
        rc = acquire(0);
        return rc == nxl::result::ok;
    }

    /* Releases the lock. Blocks for the client's timeout at most. ok: it was
     * held until now. lost: it was not, so another holder may have worked at
     * the same time. unknown: no answer; free now or when its TTL is over.
     * invalid: this guard is not in charge. More: nxl_lock_release(). The guard
     * is not in charge any longer, whatever rc is. */
    [[nodiscard]] bool unlock(nxl::result &rc) noexcept
    {
        rc = check_charge();
        if (rc == nxl::result::ok) {
            in_charge_ = false;
            rc = static_cast<nxl::result>(nxl_lock_release(handle_));
        }
        return rc == nxl::result::ok;
    }

    /* Extends the lease to at least that long from now; 0 means the lock's own
     * ttl(). lost: it is no longer held. unknown or an error: the old deadline
     * remains valid, and it is safe to try again. invalid: this guard is not in
     * charge. More: nxl_lock_extend(). */
    template <class Rep, class Period>
    [[nodiscard]] bool extend(
        const std::chrono::duration<Rep, Period> &ttl, nxl::result &rc) noexcept
    {
        rc = check_charge();
        if (rc == nxl::result::ok)
            rc = static_cast<nxl::result>(
                nxl_lock_extend(handle_, detail::to_option_ms(ttl)));
        return rc == nxl::result::ok;
    }

    /* Takes over a lock that is held under that token(), usually by another
     * process: nxl_lock_adopt(), with its HARM and results. lost: the lock is
     * free or has another token. */
    [[nodiscard]] bool adopt(const std::string &token, nxl::result &rc) noexcept
    {
        rc = granted(nxl_lock_adopt(handle_, token.c_str()));
        return rc == nxl::result::ok;
    }

#ifdef __cpp_exceptions
    /* As lock(rc); throws nxl::error unless the lock was granted. */
    void lock()
    {
        nxl::result rc;
        if (!lock(rc))
            throw error(rc, message());
    }

    /* As try_lock_for(wait, rc): true: granted; false: busy. Throws nxl::error
     * in any other case, also for unknown and cancelled. */
    template <class Rep, class Period>
    [[nodiscard]] bool try_lock_for(
        const std::chrono::duration<Rep, Period> &wait)
    {
        nxl::result rc;
        return try_lock_for(wait, rc) || busy(rc);
    }

    /* The same until then. */
    template <class Clock, class Duration>
    [[nodiscard]] bool try_lock_until(
        const std::chrono::time_point<Clock, Duration> &then)
    {
        return try_lock_for(detail::time_until(then));
    }

    /* The same at once. */
    [[nodiscard]] bool try_lock()
    {
        nxl::result rc;
        return try_lock(rc) || busy(rc);
    }

    /* As unlock(rc); throws nxl::error unless the lock was held until now. */
    void unlock()
    {
        nxl::result rc;
        if (!unlock(rc))
            throw error(rc, message());
    }

    /* As extend(ttl, rc); throws nxl::error unless the deadline has moved. */
    template <class Rep, class Period>
    void extend(const std::chrono::duration<Rep, Period> &ttl)
    {
        nxl::result rc;
        if (!extend(ttl, rc))
            throw error(rc, message());
    }

    /* By the lock's own ttl(). */
    void extend()
    {
        extend(std::chrono::milliseconds(0));
    }

    /* As adopt(token, rc); throws nxl::error unless the lock is held now. */
    void adopt(const std::string &token)
    {
        nxl::result rc;
        if (!adopt(token, rc))
            throw error(rc, message());
    }
#endif

    /* Is in charge no longer and refers to no lock; releases nothing, so the
     * lock stays held until its lease ends, or for as long as it is renewed.
     * Returns its handle (NULL: none), which belongs to the nxl::lock. For a
     * lock that is to outlive the scope, or is handed over by its token(). To
     * give up the lock, call unlock(). */
    [[nodiscard]] nxl_lock *release() noexcept
    {
        in_charge_ = false;
        why_ = nullptr;
        return std::exchange(handle_, nullptr);
    }

    /* Whether this process may rely on the lock: the guard is in charge, and
     * the deadline has not been reached. Ask it before each critical step; a
     * pause after it remains possible, which only fencing_token() covers. Reads
     * a clock; no I/O. */
    [[nodiscard]] bool owns_lock() const noexcept
    {
        return in_charge_ && nxl_lock_held(handle_);
    }

    /* As owns_lock(). */
    [[nodiscard]] explicit operator bool() const noexcept
    {
        return owns_lock();
    }

    /* When owns_lock() becomes false unless the lease is extended; it comes
     * before the server's end of the lease. time_point(): not held. */
    [[nodiscard]] clock::time_point deadline() const noexcept
    {
        const std::uint64_t ns = in_charge_ ? nxl_lock_deadline(handle_) : 0;
        return clock::time_point(clock::duration(static_cast<clock::rep>(ns)));
    }

    /* The time until deadline(), rounded down; 0: not held. */
    [[nodiscard]] std::chrono::milliseconds remaining() const noexcept
    {
        return std::chrono::milliseconds(
            in_charge_ ? nxl_lock_remaining_ms(handle_) : 0);
    }

    /* The number of the last grant, greater than that of every earlier grant of
     * this name; the resource that the lock protects has to refuse a smaller
     * one than it has seen. 0: the lock is without lock_options::fence(), or
     * was adopted, or has several names. More: nxl_lock_fence(). */
    [[nodiscard]] std::uint64_t fencing_token() const noexcept
    {
        return nxl_lock_fence(handle_);
    }

    /* The same of name i of a lock of several: nxl_lock_fence_of(). */
    [[nodiscard]] std::uint64_t fencing_token(std::size_t i) const noexcept
    {
        return nxl_lock_fence_of(handle_, i);
    }

    /* How a lock with lock_options::renew() was lost; none: it was not. */
    [[nodiscard]] nxl::loss loss() const noexcept
    {
        return static_cast<nxl::loss>(nxl_lock_loss(handle_, nullptr, 0));
    }

    /* The same in words, for people; "" if it was not lost. */
    [[nodiscard]] std::string loss_message() const
    {
        char text[512];
        nxl_lock_loss(handle_, text, sizeof(text));
        return text;
    }

    /* The token under which the lock is held, for adopt() in another process;
     * "" before the first acquire. Keep it secret. Valid until the next acquire
     * or adopt of this handle. */
    [[nodiscard]] const char *token() const noexcept
    {
        return nxl_lock_token(handle_);
    }

    /* Why the last call failed, for people; "" if it did not. Valid until the
     * next call. */
    [[nodiscard]] const char *message() const noexcept
    {
        return why_ ? why_ : nxl_lock_errmsg(handle_);
    }

    /* For the functions of nxlock.h. NULL: it refers to no lock. */
    [[nodiscard]] nxl_lock *native_handle() const noexcept
    {
        return handle_;
    }

  private:
    nxl_lock *handle_ = nullptr;
    bool in_charge_ = false;
    const char *why_ =
        nullptr; /* the guard's own refusal; else the library's */

    nxl::result acquire(std::int64_t wait_ms) noexcept
    {
        return granted(nxl_lock_acquire(handle_, wait_ms));
    }

    /* invalid changes nothing: the handle may hold the lock already. */
    nxl::result granted(int rc) noexcept
    {
        why_ = nullptr;
        if (rc != NXL_E_INVALID)
            in_charge_ = rc == NXL_OK;
        return static_cast<nxl::result>(rc);
    }

    nxl::result check_charge() noexcept
    {
        why_ = in_charge_ ? nullptr
                          : "this guard has no lock to release or extend; "
                            "acquire it first";
        return in_charge_ ? nxl::result::ok : nxl::result::invalid;
    }

    void drop() noexcept
    {
        if (std::exchange(in_charge_, false)) {
            [[maybe_unused]] const int rc = nxl_lock_release(handle_);
        }
    }

#ifdef __cpp_exceptions
    bool busy(nxl::result rc) const
    {
        if (rc != nxl::result::busy)
            throw error(rc, message());
        return false;
    }
#endif
};

} // namespace nxl

#endif /* C++17 */
#endif
