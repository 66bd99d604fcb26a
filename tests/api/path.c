/* SPDX-License-Identifier: MIT */
/*
 * Prints where one blocking acquire is at three points: when its request is
 * queued, when the bytes of it are sent, and when the call is over. Each line
 * is "POINT ADDRESS" for a frame of the stack, innermost first; ADDRESS is
 * what addr2line takes. test_path.py reads that.
 *
 * The library's own files are compiled without optimization for this program:
 * a tail call would remove its caller from the stack.
 */
#include "support/test.h"

#include <execinfo.h>
#include <link.h>
#include <sys/socket.h>

#include <nxlock.h>

#include "client/call.h"
#include "net/server.h"
#include "support/redis.h"

#define FRAMES 64

static bool tracing;

void __real_server_submit(struct request *r, const struct verb *verb,
    struct command_cache *kept, uint64_t now);
void __wrap_server_submit(struct request *r, const struct verb *verb,
    struct command_cache *kept, uint64_t now);
ssize_t __real_send(int fd, const void *bytes, size_t count, int flags);
ssize_t __wrap_send(int fd, const void *bytes, size_t count, int flags);
void __real_call_over(struct nxl_client *client, struct call *call, int result);
void __wrap_call_over(struct nxl_client *client, struct call *call, int result);

/* Where the program itself was loaded: the first of all objects. */
static int base_of(struct dl_phdr_info *info, size_t size, void *base)
{
    (void)size;
    *(uintptr_t *)base = info->dlpi_addr;
    return 1;
}

/* called: what is called at this point; 0: not one of the library's. */
static void print_stack(const char *point, uintptr_t called)
{
    void *frames[FRAMES];
    uintptr_t base = 0;
    if (!tracing)
        return;
    int count = backtrace(frames, FRAMES);
    dl_iterate_phdr(base_of, &base);
    printf("\n");
    if (called)
        printf("%s %#jx\n", point, (uintmax_t)(called - base));
    /* The first two are this function and its caller. A return address is
     * behind the call, which may be another line. */
    for (int i = 2; i < count; i++)
        printf(
            "%s %#jx\n", point, (uintmax_t)((uintptr_t)frames[i] - base - 1));
    printf("\n");
}

void __wrap_server_submit(struct request *r, const struct verb *verb,
    struct command_cache *kept, uint64_t now)
{
    print_stack("queued", (uintptr_t)__real_server_submit);
    __real_server_submit(r, verb, kept, now);
}

ssize_t __wrap_send(int fd, const void *bytes, size_t count, int flags)
{
    print_stack("sent", 0);
    return __real_send(fd, bytes, count, flags);
}

void __wrap_call_over(struct nxl_client *client, struct call *call, int result)
{
    print_stack("over", (uintptr_t)__real_call_over);
    __real_call_over(client, call, result);
}

static void one_acquire(void **state)
{
    (void)state;
    static struct redis redis;
    nxl_client *client;
    nxl_lock *lock;
    redis_start(&redis, NULL);
    assert_int_equal(nxl_client_new(&client, redis.unix_url, NULL), NXL_OK);
    assert_int_equal(nxl_lock_new(&lock, client, "path", NULL), NXL_OK);
    /* Connecting is not part of the picture. */
    assert_int_equal(nxl_lock_acquire(lock, 0), NXL_OK);
    assert_int_equal(nxl_lock_release(lock), NXL_OK);
    tracing = true;
    assert_int_equal(nxl_lock_acquire(lock, 0), NXL_OK);
    tracing = false;
    nxl_lock_free(lock);
    nxl_client_free(client);
    redis_stop(&redis);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_acquire)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
