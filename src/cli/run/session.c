/* SPDX-License-Identifier: MIT */
/*
 * One lock on one client, driven together with signals.
 *
 * Invariant: from session_open() on, no signal can end the process between a
 * request and its answer, so a lock is never left behind by accident.
 */
#include "cli/run/session.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "cli/servers/conf.h"
#include "cli/servers/connect.h"
#include "cli/report/duration.h"
#include "cli/report/event.h"
#include "cli/look/foreign.h"
#include "cli/run/keyboard.h"
#include "cli/names.h"
#include "cli/report/outbox.h"
#include "cli/report/report.h"
#include "cli/table.h"

/* Descriptors to poll: signals, timer, session->also, the library's. */
#define FDS_MAX 16
#define ALSO (sizeof(((struct session *)0)->also) / sizeof(struct pollfd))
#define OWN_FDS (2 + ALSO)

/* Signals that must not end or stop nxlock while it has a child: a message that
 * nobody reads, a file at its size limit, a terminal that another process has.
 */
static const int endured[] = {SIGPIPE, SIGXFSZ, SIGTTIN, SIGTTOU};

/* True for all other signals that end a process by default, except those that
 * its own errors cause. */
bool session_signal_ends(int signo)
{
    static const int others[] = {SIGKILL, SIGSTOP, SIGCHLD, SIGCONT, SIGTSTP,
        SIGURG, SIGWINCH, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS,
        SIGABRT};

    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        if (others[i] == signo)
            return false;
    }
    for (size_t i = 0; i < sizeof(endured) / sizeof(endured[0]); i++) {
        if (endured[i] == signo)
            return false;
    }
    return true;
}

static void on_warning(void *arg, const char *text)
{
    (void)arg;
    if (event_talks())
        say("%s", text);
}

/* Called inside the library, so it does not call that. */
static void on_trace(void *arg, const nxl_trace *trace)
{
    struct session *session = arg;
    struct renewal *renewal = &session->renewal;

    if (trace->kind == NXL_TRACE_ATTEMPT && trace->lock == session->lock)
        snprintf(session->refused, sizeof(session->refused), "%s", trace->text);
    if (trace->kind == NXL_TRACE_FAILOVER)
        event_report(
            (struct event){.kind = EVENT_FAILOVER, .pause_ms = trace->left_ms},
            "%s", trace->text);
    if (trace->kind != NXL_TRACE_RENEWAL)
        return;
    renewal->tries++;
    /* Several names are renewed together: a failure is not hidden by the
     * success of another one. */
    if (names_several(session->args) && renewal->unread &&
        renewal->result != NXL_OK && trace->result == NXL_OK)
        return;
    renewal->unread = true;
    renewal->result = trace->result;
    renewal->left_ms = trace->left_ms;
    snprintf(renewal->why, sizeof(renewal->why), "%s",
        failure_words(trace->text, trace->result));
}

static int session_open_client(struct session *session)
{
    const struct args *args = session->args;
    nxl_client_options options = NXL_CLIENT_OPTIONS_INIT;

    options.warning = on_warning;
    options.warning_arg = session;
    options.tracer = on_trace;
    options.tracer_arg = session;
    options.timeout_ms = args->timeout_ms;
    options.max_ttl_ms = args->max_ttl_ms;
    if (args->password_shown && args->command != CMD_DOCTOR && event_talks())
        say("warning: -u has a password, and other users of this machine can "
            "read a command line: use --url-file FILE or NXLOCK_PASSWORD_FILE");
    int code = connect_client(&session->client, args, &options);
    foreign_use(session->client);
    return code;
}

static int make_lock(struct session *session)
{
    nxl_lock_options options = NXL_LOCK_OPTIONS_INIT;
    const char *names[NXL_NAMES_MAX];
    size_t count = names_count(session->args);

    /* A command that needs no lease must not fail because of its length. */
    if (command_table[session->args->command].leases)
        options.ttl_ms = session->args->ttl_ms;
    options.label = session->label;
    options.fence = session->fenced;
    options.permits = session->args->permits;
    options.weight = session->args->weight;
    options.shared = session->args->shared;
    options.min_hold_ms = session->args->run.at_least_ms;
    options.renew = session->args->child != NULL;
    if (!names_several(session->args))
        return nxl_lock_new(
            &session->lock, session->client, session->args->name, &options);
    for (size_t i = 0; i < count; i++)
        names[i] = names_at(session->args, i);
    return nxl_lock_new_many(
        &session->lock, session->client, names, NULL, count, &options);
}

void session_about(struct session *session, size_t i)
{
    if (!session->all)
        session->all = session->args;
    if (!names_several(session->all))
        return;
    names_only(&session->one, session->all, i);
    session->args = &session->one;
}

void session_about_all(struct session *session)
{
    if (session->all)
        session->args = session->all;
    session->all = NULL;
}

int session_enter(struct session *session, size_t i)
{
    if (!names_several(session->args))
        return NXL_OK;
    session_about(session, i);
    session->all_lock = session->lock;
    session->lock = NULL;
    return nxl_lock_new(
        &session->lock, session->client, session->args->name, NULL);
}

void session_leave(struct session *session)
{
    if (session->all_lock) {
        nxl_lock_free(session->lock);
        session->lock = session->all_lock;
    }
    session->all_lock = NULL;
    session_about_all(session);
}

int session_drop_fence(struct session *session, const char *why)
{
    snprintf(session->unfenced, sizeof(session->unfenced), "%s", why);
    nxl_lock_free(session->lock);
    session->lock = NULL;
    session->fenced = false;
    return make_lock(session);
}

/* Reports --ttl if it is too short; false: it is not. */
static bool say_short_lease(const struct session *session)
{
    const char *ttl = session->args->ttl;
    nxl_server_facts facts = NXL_SERVER_FACTS_INIT;
    char least[DURATION_ROOM];

    if (!ttl || nxl_client_server_facts(session->client, 0, &facts) != NXL_OK ||
        session->args->ttl_ms >= facts.min_ttl_ms)
        return false;
    say("--ttl %s is too short: the least is %s; a bare number is seconds, "
        "and so is 's': --ttl %.*ss",
        ttl, duration_text(least, facts.min_ttl_ms),
        (int)strspn(ttl, "0123456789"), ttl);
    conf_mention(session->args, VALUE_DURATION);
    return true;
}

bool session_may_fence(const struct session *session)
{
    const struct args *args = session->args;

    return args->command == CMD_RUN && args->permits <= 1 &&
           !(args->shared && nxl_client_servers(session->client) > 1);
}

static int open_lock(struct session *session, const char *label)
{
    session->label = label;
    event_set_label(label);
    session->fenced = session_may_fence(session);
    int rc = make_lock(session);
    if (rc == NXL_E_INVALID && session->fenced)
        rc = session_drop_fence(session, "scheme=timestamp has none");
    if (rc == NXL_OK)
        return 0;
    const char *why = nxl_client_errmsg(session->client);
    if (rc == NXL_E_INVALID && say_short_lease(session))
        return EXIT_USAGE;
    say("'%s': %s", session->args->shown, failure_words(why, rc));
    /* No request was sent: an option is wrong, or not for these servers. */
    return rc == NXL_E_INVALID || rc == NXL_E_UNSUPPORTED
               ? EXIT_USAGE
               : exit_code_for(rc, EXIT_BUSY);
}

static bool is_ignored(int signo)
{
    struct sigaction action;

    return sigaction(signo, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

static int open_signals(struct session *session)
{
    struct sigaction ignore;

    memset(&ignore, 0, sizeof(ignore));
    ignore.sa_handler = SIG_IGN;
    sigemptyset(&ignore.sa_mask);
    sigemptyset(&session->watched);
    for (size_t i = 0; i < sizeof(endured) / sizeof(endured[0]); i++)
        sigaction(endured[i], &ignore, &session->endured[i]);
    /* glibc keeps two numbers below SIGRTMIN to itself, and refuses them. */
    for (int signo = 1; signo <= SIGRTMAX; signo++) {
        /* Ignored by nohup, or by a shell for a background job: stays so. */
        if (session_signal_ends(signo) && !is_ignored(signo))
            sigaddset(&session->watched, signo);
    }
    session->signals =
        signalfd(-1, &session->watched, SFD_CLOEXEC | SFD_NONBLOCK);
    if (session->signals < 0) {
        say("cannot receive signals: %s", strerror(errno));
        return EXIT_INTERNAL;
    }
    sigprocmask(SIG_BLOCK, &session->watched, NULL);
    /* poll() does not count time spent suspended, but a lease does. */
    session->timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    return 0;
}

void session_init(struct session *session, const struct args *args)
{
    *session = (struct session){.args = args, .signals = -1, .timer = -1};
    session_poll_nothing(session);
    sigprocmask(SIG_BLOCK, NULL, &session->inherited);
}

int session_open(
    struct session *session, const struct args *args, const char *label)
{
    session_init(session, args);
    int code = session_open_client(session);
    if (code == 0)
        code = open_lock(session, label);
    if (code == 0)
        code = open_signals(session);
    return code;
}

int session_open_plain(struct session *session, const struct args *args)
{
    session_init(session, args);
    int code = session_open_client(session);
    if (code == 0 && args->name && args->command != CMD_LIST)
        code = open_lock(session, NULL);
    return code;
}

void session_close(struct session *session)
{
    nxl_lock_free(session->lock);
    nxl_client_free(session->asker);
    foreign_use(NULL);
    nxl_client_free(session->client);
    if (session->signals >= 0)
        close(session->signals);
    if (session->timer >= 0)
        close(session->timer);
    if (keyboard_sent(session->caught)) {
        event_end(session_interrupted(session));
        keyboard_end(getpid(), session->caught);
    }
}

nxl_client *session_asker(struct session *session)
{
    nxl_client_options options = NXL_CLIENT_OPTIONS_INIT;

    if (session->signals < 0) /* made by session_open_plain() */
        return session->client;
    if (!session->asker)
        (void)!connect_again(&session->asker, session->args, &options);
    return session->asker;
}

void session_unignore(const struct session *session)
{
    for (size_t i = 0; i < sizeof(endured) / sizeof(endured[0]); i++)
        sigaction(endured[i], &session->endured[i], NULL);
}

void session_unblock_signals(const struct session *session)
{
    sigprocmask(SIG_SETMASK, &session->inherited, NULL);
}

bool session_can_print(struct session *session, uint64_t until)
{
    for (;;) {
        struct pollfd fds[] = {
            {session->signals, POLLIN, 0}, {STDOUT_FILENO, POLLOUT, 0}};
        uint64_t now = nxl_now_ns();
        if (now >= until)
            return false;
        uint64_t left_ms = (until - now) / NS_PER_MS + 1;
        int timeout_ms = (int)(left_ms < MS_PER_S ? left_ms : MS_PER_S);
        (void)poll(fds, 2, timeout_ms);
        session_cancel_on_signal(session);
        if (session->caught != 0)
            return false;
        if (fds[1].revents != 0) /* an error will show when printing */
            return true;
    }
}

void session_watch(struct session *session, int signo)
{
    sigaddset(&session->watched, signo);
    sigprocmask(SIG_BLOCK, &session->watched, NULL);
    signalfd(session->signals, &session->watched, 0);
}

int session_signal(struct session *session)
{
    struct signalfd_siginfo info;
    ssize_t got = read(session->signals, &info, sizeof(info));

    return got == (ssize_t)sizeof(info) ? (int)info.ssi_signo : 0;
}

void session_poll_nothing(struct session *session)
{
    for (size_t i = 0; i < ALSO; i++)
        session->also[i] = (struct pollfd){-1, POLLIN, 0};
}

/* Sets the timer and shortens *timeout_ms, so that poll() ends at wake_ns. */
static void arm_timer(
    struct session *session, uint64_t wake_ns, int *timeout_ms)
{
    uint64_t now = nxl_now_ns();

    if (wake_ns != NEVER) {
        uint64_t left_ms = (wake_ns > now ? wake_ns - now : 1) / NS_PER_MS + 1;
        if (*timeout_ms < 0 || (uint64_t)*timeout_ms > left_ms)
            *timeout_ms = (int)(left_ms < INT32_MAX ? left_ms : INT32_MAX);
    }
    if (session->timer >= 0)
        timer_wake_at(session->timer, wake_ns);
}

int session_turn(struct session *session, uint64_t wake_ns)
{
    struct pollfd fds[FDS_MAX];
    int timeout_ms = -1;

    fds[0] = (struct pollfd){session->signals, POLLIN, 0};
    fds[1] = (struct pollfd){session->timer, POLLIN, 0};
    memcpy(fds + 2, session->also, sizeof(session->also));
    size_t count = nxl_client_pollfds(
        session->client, fds + OWN_FDS, FDS_MAX - OWN_FDS, &timeout_ms);
    if (count > FDS_MAX - OWN_FDS)
        count = FDS_MAX - OWN_FDS;
    arm_timer(session, wake_ns, &timeout_ms);
    /* The result does not matter: the library and the caller check for
     * themselves. */
    (void)poll(fds, (nfds_t)(count + OWN_FDS), timeout_ms);
    outbox_turn();
    return nxl_client_process(session->client);
}

int session_await(struct session *session, int started, bool *signalled)
{
    nxl_event event;

    if (started != NXL_PENDING)
        return started;
    for (;;) {
        bool any = nxl_client_next_event(session->client, &event);
        if (any && event.operation != NXL_OP_HOLD)
            return event.result;
        int rc = any ? NXL_OK : session_turn(session, NEVER);
        if (rc != NXL_OK)
            return rc;
        if (signalled)
            *signalled |= session_signal_ending(session) != 0;
        else
            session_cancel_on_signal(session);
    }
}

int session_finish(struct session *session, int started)
{
    return session_await(session, started, NULL);
}

int session_signal_ending(struct session *session)
{
    int first = 0;

    for (int signo; (signo = session_signal(session)) != 0;)
        first = first == 0 && session_signal_ends(signo) ? signo : first;
    return first;
}

void session_cancel_on_signal(struct session *session)
{
    int signo = session_signal_ending(session);

    if (signo == 0)
        return;
    if (session->caught == 0)
        session->caught = signo;
    nxl_lock_cancel(session->lock);
}

int session_interrupted(const struct session *session)
{
    return session->caught == 0 ? 0 : EXIT_SIGNAL + session->caught;
}

void session_complain(struct session *session, const char *what, int result)
{
    const char *why = nxl_lock_errmsg(session->lock);
    struct event event = {
        .kind = event_of_failure(result), .why = failure_words(why, result)};

    event_report(
        event, "cannot %s '%s': %s", what, session->args->shown, event.why);
    connect_advise(session->args, session->client, result);
}

int session_failed(struct session *session, const char *what, int result)
{
    char pasted[NAME_PASTED];

    if (session->caught != 0)
        return session_interrupted(session);
    if (result == NXL_LOST && names_several(session->args))
        event_report((struct event){.kind = EVENT_LOST},
            "cannot %s '%s': not all are held under this token: %s", what,
            session->args->shown, nxl_lock_errmsg(session->lock));
    else if (result == NXL_LOST)
        event_report((struct event){.kind = EVENT_LOST},
            "cannot %s '%s': it is not held under this token: the lease "
            "expired, the lock was removed, or the token is of another one; "
            "see 'nxlock status %s'",
            what, session->args->shown,
            name_pasted(pasted, session->args->name));
    else
        session_complain(session, what, result);
    return exit_code_for(result, EXIT_BUSY);
}

void session_leave_held(const struct session *session, int code)
{
    uint64_t patience = OUTBOX_PATIENCE;

    event_end(code);
    /* The caller waits for us, and its lease is running. */
    if (code == EXIT_DONE) {
        uint64_t tenth =
            (uint64_t)nxl_lock_remaining_ms(session->lock) * NS_PER_MS / 10;
        patience = tenth < patience ? tenth : patience;
    }
    outbox_end(patience);
    _exit(code);
}
