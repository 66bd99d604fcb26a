/* SPDX-License-Identifier: MIT */
/* Reports a wait for a lock. */
#include "cli/run/waiting.h"

#include "cli/names.h"
#include "cli/report/event.h"
#include "cli/report/report.h"
#include "cli/servers/connect.h"

int64_t waiting_ms(const struct waiting *w)
{
    return ms_between(w->since, nxl_now_ns());
}

bool waiting_is_last(const struct waiting *w, size_t place)
{
    const struct session *session = w->session;
    const struct args *args = session->all ? session->all : session->args;

    return place + 1 == names_count(args);
}

int waiting_for_data(
    const struct waiting *w, const char *what, const nxl_holder *holder)
{
    char words[HOLDER_WORDS];

    if (!holder_is_data(holder))
        return 0;
    event_report((struct event){.kind = EVENT_FAILED,
                     .why = holder_data_words(words, holder)},
        "cannot %s '%s': the key %s; it may be a program's data: use another "
        "name or, if nothing needs it, remove it with redis-cli",
        what, w->session->args->shown, words);
    return EXIT_UNAVAILABLE;
}

int waiting_for_enclosing(const struct waiting *w, const char *remedy)
{
    event_report((struct event){.kind = EVENT_FAILED},
        "'%s' is held by the enclosing 'nxlock run', which waits for this "
        "command, so waiting would deadlock; %s",
        w->session->args->shown, remedy);
    return EXIT_USAGE;
}

void waiting_for_holder(struct waiting *w, size_t i,
    const struct holders *holders, const char *more)
{
    const struct args *args = w->session->args;
    char words[HOLDER_WORDS], who[HOLDER_WHO];

    if (w->holder[i])
        return;
    w->holder[i] = true;
    event_report((struct event){.kind = EVENT_WAITING,
                     .holder = holders_who(who, holders),
                     .busy = args->name,
                     .left_ms = holders->first.left_ms},
        "waiting for '%s': %s%s", args->shown, holders_words(words, holders),
        more);
}

int waiting_was_busy(const struct waiting *w, const struct holders *holders)
{
    const struct args *args = w->session->args;
    char words[HOLDER_WORDS], who[HOLDER_WHO];

    event_report((struct event){.kind = EVENT_SKIPPED,
                     .result = RESULT_BUSY,
                     .waited_ms = waiting_ms(w),
                     .holder = holders ? holders_who(who, holders) : NULL,
                     .busy = args->name},
        "'%s' is %s", args->shown,
        holders ? holders_words(words, holders) : "held by another process");
    return args->busy_code;
}

void waiting_noted(struct waiting *w, int result, const nxl_lock *asker)
{
    const struct args *args = w->session->args;
    const char *why = nxl_lock_errmsg(asker);
    bool answered = result == NXL_OK || result == NXL_FREE;

    if (!answered && !w->outage) {
        event_report((struct event){.kind = EVENT_SERVER_DOWN, .why = why},
            "waiting for '%s': %s", args->shown, why);
        connect_advise(args, w->session->client, result);
        w->outage = true;
    } else if (answered && w->outage && !w->outage_end) {
        event_report(
            (struct event){.kind = EVENT_SERVER_UP, .waited_ms = waiting_ms(w)},
            "waiting for '%s': the server answers again", args->shown);
        w->outage_end = true;
    }
}
