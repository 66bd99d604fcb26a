/* SPDX-License-Identifier: MIT */
/* The server under the benchmark. One that was started here is private (its
 * own directory, socket and port), does not outlive this program, and is
 * proven to be the one that answers at the port before anything is measured;
 * one that was given is only talked to, never placed or stopped. */
#include "bench.h"

#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <hiredis/hiredis.h>

static void pause_ms(long ms)
{
    struct timespec time = {ms / 1000, ms % 1000 * 1000000};

    nanosleep(&time, NULL);
}

/* A port above 20000 that is free at this moment. */
static int free_port(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    unsigned seed = (unsigned)getpid() ^ (unsigned)bench_now_ns();

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    for (int i = 0; i < 100; i++) {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        int port = 20001 + rand_r(&seed) % 12000;
        int rc;

        if (fd < 0)
            return -1;
        address.sin_port = htons((uint16_t)port);
        rc = bind(fd, (struct sockaddr *)&address, sizeof(address));
        close(fd);
        if (rc == 0)
            return port;
    }
    return -1;
}

/* INFO of whoever answers there: the version, and the process. */
static int ask_info(redisContext *redis, struct server *server, long *pid)
{
    redisReply *reply = NULL;
    const char *version = NULL;
    const char *process = NULL;

    if (redis && !redis->err)
        reply = redisCommand(redis, "INFO server");
    if (reply && reply->type == REDIS_REPLY_STRING) {
        version = strstr(reply->str, "valkey_version:");
        if (!version)
            version = strstr(reply->str, "redis_version:");
        process = strstr(reply->str, "process_id:");
    }
    if (version)
        sscanf(version, "%63[^\r\n]", server->version);
    *pid = process ? strtol(strchr(process, ':') + 1, NULL, 10) : 0;
    if (reply)
        freeReplyObject(reply);
    if (redis)
        redisFree(redis);
    return version ? 0 : -1;
}

static void become_server(
    const struct server *server, const char *program, pid_t parent)
{
    char log[160];
    char port[16];
    char tls_port[16];
    sigset_t none;
    int fd;

    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent)
        _exit(127);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    snprintf(log, sizeof(log), "%s/log", server->dir);
    snprintf(port, sizeof(port), "%d", server->port);
    snprintf(tls_port, sizeof(tls_port), "%d", server->tls_port);
    fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd >= 0) {
        dup2(fd, STDOUT_FILENO);
        dup2(fd, STDERR_FILENO);
    }
    /* From tls-port on for TLS alone: without it the list ends there. */
    execlp(program, program, "--port", port, "--bind", "127.0.0.1",
        "--unixsocket", server->unix_path, "--save", "", "--appendonly", "no",
        "--dir", server->dir, "--daemonize", "no",
        server->tls_port ? "--tls-port" : (char *)NULL, tls_port,
        "--tls-cert-file", "server.pem", "--tls-key-file", "server.key",
        "--tls-ca-cert-file", "ca.pem", "--tls-auth-clients", "no",
        (char *)NULL);
    _exit(127);
}

/* Waits until our own process answers on both transports. */
static int wait_ready(struct server *server)
{
    for (int i = 0; i < 500; i++) {
        long unix_pid = 0;
        long tcp_pid = 0;

        if (waitpid(server->pid, NULL, WNOHANG) != 0) {
            server->pid = 0;
            return -1;
        }
        if (ask_info(redisConnectUnix(server->unix_path), server, &unix_pid) ==
                0 &&
            ask_info(redisConnect(server->host, server->port), server,
                &tcp_pid) == 0)
            return unix_pid == server->pid && tcp_pid == server->pid ? 0 : -1;
        pause_ms(10);
    }
    return -1;
}

static int make_directory(struct server *server)
{
    const char *parent = getenv("TMPDIR");
    int length;

    length = snprintf(server->dir, sizeof(server->dir),
        "%s/nxlock-bench.XXXXXX", parent && parent[0] == '/' ? parent : "/tmp");
    /* A socket's path has room for some 100 bytes. */
    if (length < 0 || length > 90 || !mkdtemp(server->dir)) {
        fprintf(stderr, "nxlock-bench: cannot make a directory in %s: %s\n",
            parent ? parent : "/tmp", strerror(errno));
        server->dir[0] = '\0';
        return -1;
    }
    snprintf(
        server->unix_path, sizeof(server->unix_path), "%s/socket", server->dir);
    return 0;
}

/* Appends the path with everything %-encoded that may mean something in a
 * URL. */
static void path_to_url(char *url, const char *path)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyz"
                                "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/-_.~";
    char *out = url + strlen(url);

    for (const char *in = path; *in; in++) {
        if (strchr(plain, *in))
            *out++ = *in;
        else
            out += sprintf(out, "%%%02X", (unsigned)(unsigned char)*in);
    }
    *out = '\0';
}

static void make_urls(struct server *server)
{
    char ca[160];

    snprintf(server->unix_url, sizeof(server->unix_url), "unix://");
    path_to_url(server->unix_url, server->unix_path);
    snprintf(server->tcp_url, sizeof(server->tcp_url), "redis://127.0.0.1:%d",
        server->port);
    if (server->tls_port == 0)
        return;
    snprintf(server->tls_url, sizeof(server->tls_url),
        "rediss://127.0.0.1:%d?cacert=", server->tls_port);
    snprintf(ca, sizeof(ca), "%s/ca.pem", server->dir);
    path_to_url(server->tls_url, ca);
}

int server_start(struct server *server, const char *program, bench_certs *make)
{
    memset(server, 0, sizeof(*server));
    if (make_directory(server))
        return -1;
    if (make && make(server->dir)) {
        server_stop(server);
        return -1;
    }
    snprintf(server->host, sizeof(server->host), "127.0.0.1");
    /* Another program may take the port in between: then once more. */
    for (int i = 0; i < 3; i++) {
        pid_t parent = getpid();

        server->port = free_port();
        server->tls_port = make ? free_port() : 0;
        server->pid = fork();
        if (server->pid == 0)
            become_server(server, program, parent);
        if (server->pid > 0 && wait_ready(server) == 0) {
            make_urls(server);
            return 0;
        }
        if (server->pid > 0) {
            kill(server->pid, SIGKILL);
            waitpid(server->pid, NULL, 0);
        }
        server->pid = 0;
    }
    fprintf(stderr, "nxlock-bench: %s did not start\n", program);
    server_stop(server);
    return -1;
}

/* redis://host[:port] and no more, since the floors go there too. */
static int parse_url(struct server *server, const char *url)
{
    const char *host = url + strlen("redis://");
    const char *end;
    char *rest = NULL;
    bool bracket;

    if (strncmp(url, "redis://", strlen("redis://")) != 0 ||
        strlen(url) >= sizeof(server->tcp_url) || strpbrk(host, "@/?%"))
        return -1;
    bracket = *host == '[';
    host += bracket;
    end = host + strcspn(host, bracket ? "]" : ":");
    if (end == host || (size_t)(end - host) >= sizeof(server->host))
        return -1;
    memcpy(server->host, host, (size_t)(end - host));
    end += bracket && *end;
    server->port = 6379;
    if (*end == ':') {
        server->port = (int)strtol(end + 1, &rest, 10);
        end = rest;
    }
    snprintf(server->tcp_url, sizeof(server->tcp_url), "%s", url);
    return *end || server->port < 1 || server->port > 65535 ? -1 : 0;
}

int server_given(struct server *server, const char *url, const char *path)
{
    long pid;

    memset(server, 0, sizeof(*server));
    if (url && parse_url(server, url)) {
        fprintf(stderr, "nxlock-bench: --url takes redis://host[:port]\n");
        return -1;
    }
    if (path && (path[0] != '/' || strlen(path) >= 108)) {
        fprintf(stderr, "nxlock-bench: --unix takes an absolute path\n");
        return -1;
    }
    if (path) {
        snprintf(server->unix_path, sizeof(server->unix_path), "%s", path);
        snprintf(server->unix_url, sizeof(server->unix_url), "unix://");
        path_to_url(server->unix_url, server->unix_path);
    }
    if ((url &&
            ask_info(redisConnect(server->host, server->port), server, &pid)) ||
        (path && ask_info(redisConnectUnix(path), server, &pid))) {
        fprintf(stderr, "nxlock-bench: the given server does not answer\n");
        return -1;
    }
    return 0;
}

int server_place(const struct server *server, const cpu_set_t *cpus)
{
    char path[64];
    struct dirent *entry;
    DIR *tasks;
    int rc = 0;

    if (server->pid == 0)
        return 0;
    snprintf(path, sizeof(path), "/proc/%d/task", (int)server->pid);
    tasks = opendir(path);
    if (!tasks)
        return -1;
    while ((entry = readdir(tasks))) {
        pid_t thread = (pid_t)strtol(entry->d_name, NULL, 10);

        if (thread > 0 && sched_setaffinity(thread, sizeof(*cpus), cpus))
            rc = -1;
    }
    closedir(tasks);
    return rc;
}

static int remove_one(
    const char *path, const struct stat *info, int kind, struct FTW *at)
{
    (void)info;
    (void)kind;
    (void)at;
    return remove(path);
}

void server_stop(struct server *server)
{
    if (server->pid > 0) {
        kill(server->pid, SIGTERM);
        for (int i = 0; i < 300 && server->pid > 0; i++) {
            if (waitpid(server->pid, NULL, WNOHANG) != 0)
                server->pid = 0;
            else
                pause_ms(10);
        }
        if (server->pid > 0) {
            kill(server->pid, SIGKILL);
            waitpid(server->pid, NULL, 0);
        }
        server->pid = 0;
    }
    if (server->dir[0]) {
        nftw(server->dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
        server->dir[0] = '\0';
    }
}
