/* SPDX-License-Identifier: MIT */
/*
 * A correct program unloads a plugin while the library's thread still waits
 * for getaddrinfo(). That function is this program's own and returns only
 * after dlclose(). The code that the thread returns to must still be mapped.
 *
 *     test_unload SHARED ARCHIVE    a plugin linked with the shared library;
 *                                   one linked with the archive
 */
#include "support/test.h"

#include <dlfcn.h>
#include <netdb.h>
#include <semaphore.h>
#include <sys/wait.h>

enum { UNLOADED = 0, NOT_LOADED = 3, WRONG_RESULT, NO_LOOKUP, THREAD_STAYS };

static sem_t entered, answer;
static const char *plugins[2];

/* The library's call comes here, because the program exports its symbols. */
int getaddrinfo(const char *host, const char *service,
    const struct addrinfo *hints, struct addrinfo **list)
{
    (void)host, (void)service;
    *list = NULL;
    if (hints && hints->ai_flags & AI_NUMERICHOST)
        return EAI_NONAME;
    sem_post(&entered);
    while (sem_wait(&answer) != 0)
        continue;
    return EAI_AGAIN;
}

static int count_threads(void)
{
    int count = 0;
    DIR *dir = opendir("/proc/self/task");
    if (!dir)
        return -1;
    for (struct dirent *e = readdir(dir); e; e = readdir(dir))
        count += e->d_name[0] != '.';
    closedir(dir);
    return count;
}

static int unload(const char *path)
{
    int (*run)(const char *);
    int threads = count_threads();
    void *plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!plugin) {
        print_error("%s\n", dlerror());
        return NOT_LOADED;
    }
    *(void **)&run = dlsym(plugin, "plugin_run");
    if (!run)
        return NOT_LOADED;
    if (run("redis://slow.example:6379") == 0)
        return WRONG_RESULT;
    /* The look-up has begun, and has not returned. */
    struct timespec limit;
    clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_sec += 10;
    if (sem_timedwait(&entered, &limit) != 0)
        return NO_LOOKUP;
    dlclose(plugin);
    sem_post(&answer);
    for (int i = 0; i < 2000; i++) {
        if (count_threads() == threads)
            return UNLOADED;
        test_pause_ms(5);
    }
    return THREAD_STAYS;
}

/* In a child, so that a crash is a failure of this case. */
static void expect_unloads(const char *path)
{
    int status;
    pid_t child = test_fork();
    if (child == 0)
        _exit(unload(path));
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFSIGNALED(status))
        fail_msg("killed by signal %d (%s)", WTERMSIG(status),
            strsignal(WTERMSIG(status)));
    assert_int_equal(WEXITSTATUS(status), UNLOADED);
}

static void test_a_plugin_with_the_shared_library(void **state)
{
    (void)state;
    expect_unloads(plugins[0]);
}

static void test_a_plugin_with_the_archive(void **state)
{
    (void)state;
    expect_unloads(plugins[1]);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_plugin_with_the_shared_library),
        cmocka_unit_test(test_a_plugin_with_the_archive),
    };
    if (argc != 3) {
        fprintf(stderr, "usage: test_unload SHARED ARCHIVE\n");
        return 2;
    }
    plugins[0] = argv[1];
    plugins[1] = argv[2];
    if (sem_init(&entered, 0, 0) != 0 || sem_init(&answer, 0, 0) != 0)
        return 2;
    return cmocka_run_group_tests_name("unload", tests, NULL, NULL);
}
