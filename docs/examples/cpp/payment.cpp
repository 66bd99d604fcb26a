/* SPDX-License-Identifier: MIT */
/*
 * payment ORDER [PAUSE_MS]: books a payment in a ledger that several machines
 * write to. With PAUSE_MS it stops for that long before it books, as a process
 * does whose machine is suspended.
 *
 * Invariant: a payment is begun only when the lease leaves time for it, and
 * what is written carries the fencing token. So a holder that is late does not
 * begin; and one that is paused just then is refused by the ledger.
 */
#include <nxlock.hpp>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <thread>

using namespace std::chrono_literals;

namespace
{

constexpr auto needed = 1s; /* what a payment takes at most */

/* A stand-in for the table that all machines write to. In SQL:
 *     UPDATE account SET paid = paid + :amount, fence = :fence
 *         WHERE id = :order AND fence <= :fence */
class ledger
{
  public:
    /* False: somebody with a greater token has written already. */
    bool book(const std::string &order, long amount, std::uint64_t fence)
    {
        entry &row = rows_[order];
        if (fence < row.fence)
            return false;
        row.fence = fence;
        row.paid += amount;
        return true;
    }

  private:
    struct entry {
        std::uint64_t fence = 0;
        long paid = 0;
    };
    std::map<std::string, entry> rows_;
};

/* Whether it was booked. Throws nxl::error if the lock cannot be had or was
 * lost; then the guard has released what there was to release. */
bool pay(nxl::lock &lock, ledger &books, const std::string &order,
    std::chrono::milliseconds pause)
{
    nxl::guard guard(lock, 10s);

    if (!guard) {
        std::fprintf(stderr, "order %s: busy\n", order.c_str());
        return false;
    }
    if (guard.remaining() < needed)
        guard.extend(); /* throws nxl::error if it is lost */
    std::this_thread::sleep_for(pause);
    if (guard.deadline() - nxl::clock::now() < needed) {
        std::fprintf(stderr, "order %s: too late to begin\n", order.c_str());
        return false;
    }
    if (!books.book(order, 250, guard.fencing_token())) {
        std::fprintf(stderr, "order %s: refused\n", order.c_str());
        return false;
    }
    guard.unlock(); /* throws if the lock was lost before the end */
    return true;
}

} // namespace

int main(int argc, char **argv)
{
    if (argc < 2) {
        std::fprintf(stderr, "usage: payment ORDER [PAUSE_MS]\n");
        return 64;
    }
    const std::string order = argv[1];
    const std::chrono::milliseconds pause(argc > 2 ? std::atol(argv[2]) : 0);
    const char *url = std::getenv("NXLOCK_URL");
    ledger books;

    try {
        nxl::client client(url ? url : "redis://localhost:6379");
        nxl::lock lock(client, "order:" + order,
            nxl::lock_options().ttl(3s).fence().label("payment"));
        if (!pay(lock, books, order, pause))
            return 1;
        std::printf("order %s: paid\n", order.c_str());
        return 0;
    } catch (const nxl::error &error) {
        std::fprintf(stderr, "order %s: %s\n", order.c_str(), error.what());
        return error.result() == nxl::result::lost ? 79 : 69;
    }
}
