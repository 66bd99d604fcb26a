/* SPDX-License-Identifier: MIT */
/*
 * The server is a child that the kernel kills when this process ends in
 * whatever way. It is "started" when it has answered a PING, "frozen" and
 * "killed" when waitpid() has said so: nothing is assumed after a while.
 */
#include "support/redis.h"

#include "support/redis_inner.h"
#include "support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>

enum { START_TRIES = 5, READY_MS = 30000, ARGS_MAX = 32 + REDIS_EXTRA };

static const char *program(void)
{
    const char *asked = getenv("NXLOCK_REDIS_SERVER");
    return asked && *asked != '\0' ? asked : "redis-server";
}

static bool program_exists(void)
{
    const char *name = program(), *path = getenv("PATH");
    char full[4096];

    if (strchr(name, '/'))
        return access(name, X_OK) == 0;
    while (path && *path != '\0') {
        size_t len = strcspn(path, ":");
        snprintf(full, sizeof(full), "%.*s/%s", (int)len, path, name);
        if (access(full, X_OK) == 0)
            return true;
        path += len + (path[len] == ':');
    }
    return false;
}

/* In the child: no descriptor of the test's may live on in the server. */
static void become_server(char **args, pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(127);
    int null = open("/dev/null", O_RDWR);
    dup2(null, STDIN_FILENO);
    dup2(null, STDOUT_FILENO);
    dup2(null, STDERR_FILENO);
    for (int fd = 3; fd < 1024; fd++)
        close(fd);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    execvp(args[0], args);
    _exit(127);
}

static void launch(struct redis *r)
{
    char port[8], tls_port[8], name[256];
    char *usual[] = {"--bind", "127.0.0.1", "--port", port, "--unixsocket",
        r->path, "--dir", r->dir, "--logfile", r->log, "--save", "",
        "--appendonly", "no", "--daemonize", "no", "--repl-diskless-sync-delay",
        "0"}; /* for 5 s it would wait for more */
    char *args[ARGS_MAX] = {name};
    size_t count = 1;

    snprintf(port, sizeof(port), "%u", (unsigned)r->plain_port);
    snprintf(tls_port, sizeof(tls_port), "%u", (unsigned)r->tls_port);
    snprintf(name, sizeof(name), "%s", program());
    if (r->sentinel[0]) {
        args[count++] = r->sentinel;
        args[count++] = "--sentinel";
    }
    memcpy(&args[count], usual, sizeof(usual));
    count += sizeof(usual) / sizeof(usual[0]);
    if (r->tls) {
        args[count++] = "--tls-port";
        args[count++] = tls_port;
    }
    for (size_t i = 0; i < r->extras; i++)
        args[count++] = r->extra[i];
    args[count] = NULL;
    pid_t parent = getpid();
    r->pid = fork();
    if (r->pid == 0)
        become_server(args, parent);
    if (r->pid < 0)
        fail_msg("fork: %s", strerror(errno));
    r->frozen = false;
}

static const char *password_of(const struct redis *r)
{
    for (size_t i = 0; i + 1 < r->extras; i++)
        if (strcmp(r->extra[i], "--requirepass") == 0)
            return r->extra[i + 1];
    return NULL;
}

static void disconnect(struct redis *r)
{
    if (r->context)
        redisFree(r->context);
    r->context = NULL;
}

/* True when the server answered; the connection is kept. */
static bool answers(struct redis *r)
{
    struct timeval limit = {READY_MS / 1000, 0};
    const char *password = password_of(r);
    redisReply *reply;
    bool good;

    disconnect(r);
    r->context = redisConnectUnixWithTimeout(r->path, limit);
    if (!r->context || r->context->err != 0)
        return false;
    fcntl(r->context->fd, F_SETFD, FD_CLOEXEC);
    redisSetTimeout(r->context, limit);
    if (password) {
        reply = redisCommand(r->context, "AUTH %s", password);
        if (reply)
            freeReplyObject(reply);
    }
    reply = redisCommand(r->context, "PING");
    good = reply && reply->type == REDIS_REPLY_STATUS;
    if (reply)
        freeReplyObject(reply);
    return good;
}

/* False: it ended by itself, as when its port was taken meanwhile. */
static bool wait_ready(struct redis *r)
{
    int64_t end = test_now_ms() + READY_MS;

    while (test_now_ms() < end) {
        if (answers(r))
            return true;
        if (waitpid(r->pid, NULL, WNOHANG) == r->pid) {
            r->pid = 0;
            return false;
        }
        test_pause_ms(5);
    }
    redis_kill(r);
    return false;
}

static void show_log(const struct redis *r)
{
    char line[512];
    FILE *log = fopen(r->log, "re");

    while (log && fgets(line, sizeof(line), log))
        print_error("  %s: %s", program(), line);
    if (log)
        fclose(log);
}

int redis_prepare(struct redis *r, va_list extra)
{
    memset(r, 0, sizeof(*r));
    if (!program_exists()) {
        const char *skip_live = getenv("NXLOCK_SKIP_LIVE");
        if (skip_live && strcmp(skip_live, "1") == 0)
            return test_skip("no redis-server, and NXLOCK_SKIP_LIVE=1");
        fail_msg("%s is not installed (NXLOCK_SKIP_LIVE=1 skips)", program());
    }
    for (char *a = va_arg(extra, char *); a; a = va_arg(extra, char *))
        redis_add(r, a);
    redis_find_places(r);
    return 0;
}

int redis_begin(struct redis *r)
{
    for (int i = 0; i < START_TRIES; i++) {
        redis_find_ports(r);
        launch(r);
        if (wait_ready(r))
            return 0;
    }
    show_log(r);
    bool tls = r->tls;
    redis_stop(r);
    fail_msg("%s does not start%s", program(),
        tls ? "; was it built with TLS?" : "");
    return -1;
}

int redis_start(struct redis *r, ...)
{
    va_list extra;

    va_start(extra, r);
    int rc = redis_prepare(r, extra);
    va_end(extra);
    if (rc != 0)
        return rc;
    const char *certificates = getenv("NXLOCK_TEST_TLS");
    if (certificates && *certificates != '\0') {
        r->tls_always = true;
        redis_add_tls(r, certificates, "server", "no");
    }
    return redis_begin(r);
}

/* With no more arguments. */
static int prepare_plain(struct redis *r, ...)
{
    va_list none;

    va_start(none, r);
    int rc = redis_prepare(r, none);
    va_end(none);
    return rc;
}

int redis_start_sentinel(
    struct redis *r, uint16_t monitored, const char *address, uint16_t port)
{
    char digits[8];
    int rc = prepare_plain(r, NULL);
    if (rc != 0)
        return rc;
    snprintf(r->sentinel, sizeof(r->sentinel), "%s/sentinel.conf", r->dir);
    FILE *conf = fopen(r->sentinel, "we");
    if (!conf)
        fail_msg("%s: %s", r->sentinel, strerror(errno));
    fprintf(conf,
        "sentinel announce-ip %s\n"
        "sentinel monitor svc 127.0.0.1 %u 2\n"
        "sentinel down-after-milliseconds svc 2000\n"
        "sentinel failover-timeout svc 3000\n",
        address, (unsigned)monitored);
    fclose(conf);
    snprintf(digits, sizeof(digits), "%u", (unsigned)port);
    redis_add(r, "--bind");
    redis_add(r, address);
    if (port != 0) {
        redis_add(r, "--port");
        redis_add(r, digits);
    }
    return redis_begin(r);
}

void redis_kill(struct redis *r)
{
    disconnect(r);
    if (r->pid <= 0)
        return;
    kill(r->pid, SIGKILL);
    while (waitpid(r->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    r->pid = 0;
    r->frozen = false;
}

void redis_stop(struct redis *r)
{
    redis_kill(r);
    local_dir_remove(r->dir);
    for (size_t i = 0; i < r->extras; i++)
        free(r->extra[i]);
    memset(r, 0, sizeof(*r));
}

void redis_restart(struct redis *r)
{
    redis_kill(r);
    for (int i = 0; i < START_TRIES; i++) {
        launch(r);
        if (wait_ready(r))
            return;
        test_pause_ms(100); /* somebody may hold its port for a moment */
    }
    show_log(r);
    fail_msg("%s does not start again", program());
}

static void change(struct redis *r, int number, int options, bool frozen)
{
    int status;

    if (r->pid <= 0 || kill(r->pid, number) != 0)
        fail_msg("there is no server to stop or continue");
    pid_t pid;
    while ((pid = waitpid(r->pid, &status, options)) < 0 && errno == EINTR)
        ;
    bool reached =
        pid == r->pid && (frozen ? WIFSTOPPED(status) : WIFCONTINUED(status));
    if (!reached)
        fail_msg("the server has ended by itself");
    r->frozen = frozen;
}

void redis_freeze(struct redis *r)
{
    if (!r->frozen)
        change(r, SIGSTOP, WUNTRACED, true);
}

void redis_thaw(struct redis *r)
{
    if (r->frozen)
        change(r, SIGCONT, WCONTINUED, false);
}

/* A connection that the server closed is replaced before it is used: hiredis
 * would raise SIGPIPE. */
static void make_ready(struct redis *r)
{
    char byte;

    if (r->frozen || r->pid <= 0)
        fail_msg("the server is frozen or down: it cannot be asked");
    if (r->context && r->context->err == 0 &&
        recv(r->context->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 &&
        errno == EAGAIN)
        return;
    if (!answers(r))
        fail_msg("the server does not answer");
}

redisReply *redis_command_words(struct redis *r, size_t count,
    const char *const *words, const size_t *lengths)
{
    make_ready(r);
    redisReply *reply =
        redisCommandArgv(r->context, (int)count, (const char **)words, lengths);
    if (!reply)
        fail_msg("%s: %s", words[0], r->context->errstr);
    return reply;
}

static redisReply *ask(struct redis *r, const char *first, va_list more)
{
    const char *args[64];
    size_t count = 0;

    for (const char *a = first; a; a = va_arg(more, const char *)) {
        if (count == 64)
            abort();
        args[count++] = a;
    }
    return redis_command_words(r, count, args, NULL);
}

redisReply *redis_command(struct redis *r, ...)
{
    va_list more;

    va_start(more, r);
    const char *first = va_arg(more, const char *);
    redisReply *reply = ask(r, first, more);
    va_end(more);
    return reply;
}

redisReply *redis_commandf(struct redis *r, const char *format, ...)
{
    va_list args;

    make_ready(r);
    va_start(args, format);
    redisReply *reply = redisvCommand(r->context, format, args);
    va_end(args);
    if (!reply)
        fail_msg("%s: %s", format, r->context->errstr);
    return reply;
}

long long redis_run(struct redis *r, ...)
{
    va_list more;

    va_start(more, r);
    const char *first = va_arg(more, const char *);
    redisReply *reply = ask(r, first, more);
    va_end(more);
    if (reply->type == REDIS_REPLY_ERROR)
        fail_msg("%s: %s", first, reply->str);
    long long number = reply->type == REDIS_REPLY_INTEGER ? reply->integer : 0;
    freeReplyObject(reply);
    return number;
}

bool redis_get(struct redis *r, const char *key, char *buf, size_t size)
{
    redisReply *reply = redis_command(r, "GET", key, NULL);
    bool found = reply->type == REDIS_REPLY_STRING;

    if (reply->type == REDIS_REPLY_ERROR)
        fail_msg("GET %s: %s", key, reply->str);
    if (found)
        snprintf(buf, size, "%s", reply->str);
    freeReplyObject(reply);
    return found;
}

int64_t redis_pttl(struct redis *r, const char *key)
{
    return redis_run(r, "PTTL", key, NULL);
}

bool redis_exists(struct redis *r, const char *key)
{
    return redis_run(r, "EXISTS", key, NULL) == 1;
}

long redis_clients(struct redis *r)
{
    redisReply *reply = redis_command(r, "CLIENT", "LIST", NULL);
    long count = -1;

    for (const char *at = reply->str; at && *at != '\0'; at++)
        count += *at == '\n';
    freeReplyObject(reply);
    return count;
}

static long calls_of(const char *stats, const char *command, size_t len)
{
    char field[64];
    snprintf(field, sizeof(field), "cmdstat_%.*s:calls=", (int)len, command);
    const char *at = stats ? strstr(stats, field) : NULL;
    return at ? strtol(at + strlen(field), NULL, 10) : 0;
}

long redis_calls(struct redis *r, const char *command)
{
    redisReply *reply = redis_command(r, "INFO", "commandstats", NULL);
    size_t len = strlen(command), first = strcspn(command, "|");
    long calls = calls_of(reply->str, command, len);

    if (calls == 0 && first < len)
        calls = calls_of(reply->str, command, first);
    freeReplyObject(reply);
    return calls;
}

void redis_follow(struct redis *r, const char *port)
{
    redis_run(r, "SLAVEOF", "127.0.0.1", port, NULL);
}

void redis_promote(struct redis *r)
{
    redis_run(r, "SLAVEOF", "NO", "ONE", NULL);
}

bool redis_has_copied(struct redis *r)
{
    redisReply *info = redis_command(r, "INFO", "replication", NULL);
    bool up = info->str && strstr(info->str, "master_link_status:up");
    freeReplyObject(info);
    return up;
}

void redis_copy(struct redis *r, struct redis *primary)
{
    char port[8];

    snprintf(port, sizeof(port), "%u", (unsigned)primary->plain_port);
    redis_follow(r, port);
    assert_eventually(redis_has_copied(r));
    redis_run(primary, "SET", "copied", "", NULL);
    assert_eventually(redis_exists(r, "copied"));
    redis_run(primary, "DEL", "copied", NULL);
}

static void version_of(struct redis *r, char version[32])
{
    static const char field[] = "redis_version:";
    redisReply *reply = redis_command(r, "INFO", "server", NULL);
    const char *at = reply->str ? strstr(reply->str, field) : NULL;

    version[0] = '\0';
    if (at)
        sscanf(at + strlen(field), "%31[0-9.]", version);
    freeReplyObject(reply);
}

static int lacks(struct redis *r, const char *what)
{
    char version[32], reason[200];

    version_of(r, version);
    snprintf(reason, sizeof(reason), "Redis %s has no %s", version, what);
    return test_skip(reason);
}

int redis_needs_acl(struct redis *r)
{
    redisReply *reply = redis_command(r, "ACL", "WHOAMI", NULL);
    bool has = reply->type == REDIS_REPLY_STRING;

    freeReplyObject(reply);
    return has ? 0 : lacks(r, "ACL");
}

int redis_needs(struct redis *r, int major, const char *what)
{
    char version[32];

    version_of(r, version);
    return strtol(version, NULL, 10) >= major ? 0 : lacks(r, what);
}
