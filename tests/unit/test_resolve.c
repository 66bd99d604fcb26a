/* SPDX-License-Identifier: MIT */
/*
 * Names to addresses. Linked with --wrap=getaddrinfo and
 * --wrap=pthread_create: the look-ups are answered here, when the test says
 * so, and the thread can be refused.
 */
#include "support/test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "net/resolve.h"

int __real_getaddrinfo(const char *host, const char *service,
    const struct addrinfo *hints, struct addrinfo **list);
int __wrap_getaddrinfo(const char *host, const char *service,
    const struct addrinfo *hints, struct addrinfo **list);
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
    void *(*start)(void *), void *argument);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
    void *(*start)(void *), void *argument);

static sem_t asked;   /* posted when a look-up has begun */
static sem_t allowed; /* waited for before it answers */
static int numbers;   /* times a number was looked at, by the caller */
static bool no_thread;
/* As a program with large thread-local arrays: each thread's stack has to hold
 * them as well. */
static _Thread_local volatile char storage[512 * 1024];
static atomic_bool blocked; /* the look-up's thread had its signals blocked */

static const struct {
    const char *name, *addresses;
    int failure;
} names[] = {
    {"one.test", "10.0.0.1", 0},
    {"both.test", "2001:db8::1 10.0.0.1", 0},
    {"twice.test", "10.0.0.1 10.0.0.2 10.0.0.1", 0},
    {"many.test",
        "10.0.0.1 10.0.0.2 10.0.0.3 10.0.0.4 10.0.0.5 10.0.0.6 "
        "10.0.0.7 10.0.0.8 10.0.0.9 10.0.0.10",
        0},
    {"none.test", NULL, EAI_NONAME},
    {"later.test", NULL, EAI_AGAIN},
    {"system.test", NULL, EAI_SYSTEM},
};

/* A list of those addresses, in order, as the real function makes them. */
static int make_list(const char *words, const char *service,
    const struct addrinfo *hints, struct addrinfo **list)
{
    struct addrinfo numeric = *hints, **end = list;
    char word[64];
    int used;

    numeric.ai_flags |= AI_NUMERICHOST;
    while (sscanf(words, "%63s%n", word, &used) == 1) {
        int failure = __real_getaddrinfo(word, service, &numeric, end);
        if (failure != 0)
            return failure;
        end = &(*end)->ai_next;
        words += used;
    }
    return 0;
}

int __wrap_getaddrinfo(const char *host, const char *service,
    const struct addrinfo *hints, struct addrinfo **list)
{
    sigset_t mask;

    if (hints->ai_flags & AI_NUMERICHOST) {
        numbers++;
        return __real_getaddrinfo(host, service, hints, list);
    }
    pthread_sigmask(SIG_BLOCK, NULL, &mask);
    blocked = sigismember(&mask, SIGTERM) && sigismember(&mask, SIGUSR1) &&
              sigismember(&mask, SIGALRM) && sigismember(&mask, SIGCHLD);
    storage[0] = storage[sizeof(storage) - 1] = 1;
    volatile char module[256 * 1024]; /* what a module may need by itself */
    module[0] = module[sizeof(module) - 1] = 1;
    sem_post(&asked);
    sem_wait(&allowed);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(names[i].name, host) != 0)
            continue;
        errno = ENETDOWN;
        return names[i].failure
                   ? names[i].failure
                   : make_list(names[i].addresses, service, hints, list);
    }
    return EAI_FAIL;
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
    void *(*start)(void *), void *argument)
{
    if (no_thread)
        return EAGAIN;
    return __real_pthread_create(thread, attributes, start, argument);
}

static bool is_readable(int fd, int timeout_ms)
{
    struct pollfd waiting = {.fd = fd, .events = POLLIN};
    return poll(&waiting, 1, timeout_ms) == 1 && waiting.revents == POLLIN;
}

static enum resolve_state look_up(
    const char *host, struct addresses *found, struct text *error)
{
    struct resolve *job = NULL;
    int fd = -1;

    enum resolve_state state =
        resolve_start(host, 7000, found, &job, &fd, error);
    if (state != RESOLVE_WAIT) {
        assert_null(job);
        return state;
    }
    sem_wait(&asked);
    assert_int_equal(resolve_poll(job, found, error), RESOLVE_WAIT);
    assert_false(is_readable(fd, 0));
    sem_post(&allowed);
    assert_true(is_readable(fd, 10000));
    return resolve_poll(job, found, error);
}

static void check_address(const struct address *a, const char *words)
{
    struct text text;

    text_clear(&text);
    address_show(a, &text);
    assert_string_equal(text.data, words);
    assert_int_equal(a->len, a->bytes.ss_family == AF_INET
                                 ? sizeof(struct sockaddr_in)
                                 : sizeof(struct sockaddr_in6));
}

static void numbers_need_no_look_up(void **state)
{
    static const char *const pairs[][2] = {
        {"127.0.0.1", "127.0.0.1:7000"},
        {"10.1.2.3", "10.1.2.3:7000"},
        {"::1", "[::1]:7000"},
        {"2001:db8::7", "[2001:db8::7]:7000"},
    };
    struct addresses found;
    struct text error;

    (void)state;
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        assert_int_equal(look_up(pairs[i][0], &found, &error), RESOLVE_DONE);
        assert_int_equal(found.count, 1);
        check_address(&found.list[0], pairs[i][1]);
    }
}

static void localhost_is_known(void **state)
{
    static const char *const hosts[] = {"localhost", "LocalHost", "localhost."};
    struct addresses found;
    struct text error;

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        numbers = 0;
        assert_int_equal(look_up(hosts[i], &found, &error), RESOLVE_DONE);
        assert_int_equal(numbers, 0);
        assert_int_equal(found.count, 2);
        check_address(&found.list[0], "127.0.0.1:7000");
        check_address(&found.list[1], "[::1]:7000");
    }
}

static void a_zone_is_an_interface(void **state)
{
    struct addresses found;
    struct text error;

    (void)state;
    assert_int_equal(look_up("fe80::1%lo", &found, &error), RESOLVE_DONE);
    const struct sockaddr_in6 *v6 = (const void *)&found.list[0].bytes;
    assert_int_equal(v6->sin6_scope_id, if_nametoindex("lo"));
    assert_true(v6->sin6_scope_id > 0);

    assert_int_equal(
        look_up("fe80::1%nozone9", &found, &error), RESOLVE_FAILED);
    assert_contains(error.data, "cannot resolve 'fe80::1%nozone9': ");
    assert_contains(error.data, "zone");
    assert_int_equal(look_up("1:2:3", &found, &error), RESOLVE_FAILED);
}

static void names_are_looked_up_elsewhere(void **state)
{
    struct addresses found;
    struct text error;
    sigset_t before, after;

    (void)state;
    pthread_sigmask(SIG_BLOCK, NULL, &before);
    assert_int_equal(look_up("one.test", &found, &error), RESOLVE_DONE);
    pthread_sigmask(SIG_BLOCK, NULL, &after);
    for (int n = 1; n < SIGRTMAX; n++)
        assert_int_equal(sigismember(&before, n), sigismember(&after, n));
    assert_true(blocked);
    assert_int_equal(found.count, 1);
    check_address(&found.list[0], "10.0.0.1:7000");

    assert_int_equal(look_up("both.test", &found, &error), RESOLVE_DONE);
    assert_int_equal(found.count, 2);
    check_address(&found.list[0], "[2001:db8::1]:7000");
    check_address(&found.list[1], "10.0.0.1:7000");

    assert_int_equal(look_up("twice.test", &found, &error), RESOLVE_DONE);
    assert_int_equal(found.count, 2);
    check_address(&found.list[1], "10.0.0.2:7000");

    assert_int_equal(look_up("many.test", &found, &error), RESOLVE_DONE);
    assert_int_equal(found.count, RESOLVE_MAX);
    check_address(&found.list[7], "10.0.0.8:7000");
}

static void failures_name_the_host(void **state)
{
    struct addresses found;
    struct text error;

    (void)state;
    assert_int_equal(look_up("none.test", &found, &error), RESOLVE_FAILED);
    assert_contains(error.data, "cannot resolve 'none.test': ");
    assert_contains(error.data, gai_strerror(EAI_NONAME));
    assert_int_equal(look_up("later.test", &found, &error), RESOLVE_FAILED);
    assert_contains(error.data, gai_strerror(EAI_AGAIN));
    assert_int_equal(look_up("system.test", &found, &error), RESOLVE_FAILED);
    assert_contains(error.data, strerror(ENETDOWN));
}

static void no_thread_is_a_failure(void **state)
{
    struct addresses found;
    struct resolve *job;
    struct text error;
    int fd;

    (void)state;
    no_thread = true;
    enum resolve_state got =
        resolve_start("one.test", 1, &found, &job, &fd, &error);
    no_thread = false;
    assert_int_equal(got, RESOLVE_FAILED);
    assert_contains(error.data, "'one.test'");
    assert_contains(error.data, strerror(EAGAIN));
    assert_contains(error.data, "cannot start a thread");
}

static void no_descriptor_is_a_failure(void **state)
{
    struct addresses found;
    struct resolve *job;
    struct text error;
    struct rlimit limit, none;
    int fd;

    (void)state;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    none = limit;
    none.rlim_cur = 0;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    enum resolve_state got =
        resolve_start("one.test", 1, &found, &job, &fd, &error);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_int_equal(got, RESOLVE_FAILED);
    assert_contains(error.data, strerror(EMFILE));
}

/* The look-up outlives its caller and still owns its descriptor: one that is
 * opened in between has another number. */
static void a_job_may_be_given_up(void **state)
{
    struct addresses found;
    struct resolve *job = NULL;
    struct text error;
    int fd = -1, before = count_fds();

    (void)state;
    resolve_abandon(NULL);
    assert_int_equal(
        resolve_start("one.test", 1, &found, &job, &fd, &error), RESOLVE_WAIT);
    sem_wait(&asked);
    resolve_abandon(job);
    int other = dup(STDIN_FILENO);
    assert_int_not_equal(other, fd);
    close(other);
    sem_post(&allowed);
    assert_eventually(count_fds() == before);

    /* Over, but never polled. */
    assert_int_equal(
        resolve_start("one.test", 1, &found, &job, &fd, &error), RESOLVE_WAIT);
    sem_wait(&asked);
    sem_post(&allowed);
    assert_true(is_readable(fd, 10000));
    resolve_abandon(job);
    assert_eventually(count_fds() == before);
}

static void a_forked_child_gives_up_its_own(void **state)
{
    struct addresses found;
    struct resolve *job = NULL;
    struct text error;
    int fd = -1, status = -1;

    (void)state;
    assert_int_equal(
        resolve_start("one.test", 1, &found, &job, &fd, &error), RESOLVE_WAIT);
    sem_wait(&asked);
    pid_t child = test_fork();
    if (child == 0) {
        resolve_abandon(job);
        _exit(fcntl(fd, F_GETFD) == -1 && errno == EBADF ? 0 : 1);
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    /* The parent's is untouched. */
    assert_false(is_readable(fd, 0));
    sem_post(&allowed);
    assert_true(is_readable(fd, 10000));
    assert_int_equal(resolve_poll(job, &found, &error), RESOLVE_DONE);
    assert_int_equal(found.count, 1);
}

static void many_look_ups_at_once(void **state)
{
    enum { JOBS = 32 };
    struct resolve *jobs[JOBS];
    struct addresses found;
    struct text error;
    int fds[JOBS];

    (void)state;
    for (int i = 0; i < JOBS; i++)
        assert_int_equal(
            resolve_start("both.test", 1, &found, &jobs[i], &fds[i], &error),
            RESOLVE_WAIT);
    for (int i = 0; i < JOBS; i++)
        sem_post(&allowed);
    for (int i = 0; i < JOBS; i++) {
        sem_wait(&asked);
        if (i % 3 == 0) {
            resolve_abandon(jobs[i]);
            continue;
        }
        assert_true(is_readable(fds[i], 10000));
        assert_int_equal(resolve_poll(jobs[i], &found, &error), RESOLVE_DONE);
        assert_int_equal(found.count, 2);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_need_no_look_up),
        cmocka_unit_test(localhost_is_known),
        cmocka_unit_test(a_zone_is_an_interface),
        cmocka_unit_test(names_are_looked_up_elsewhere),
        cmocka_unit_test(failures_name_the_host),
        cmocka_unit_test(no_thread_is_a_failure),
        cmocka_unit_test(no_descriptor_is_a_failure),
        cmocka_unit_test(a_job_may_be_given_up),
        cmocka_unit_test(a_forked_child_gives_up_its_own),
        cmocka_unit_test(many_look_ups_at_once),
    };
    sem_init(&asked, 0, 0);
    sem_init(&allowed, 0, 0);
    return cmocka_run_group_tests_name("resolve", tests, NULL, NULL);
}
