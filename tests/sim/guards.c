/* SPDX-License-Identifier: MIT */
/* Every guard has one name and one switch. */
#include "sim/guards.h"

#include <stddef.h>
#include <string.h>

#include "model/guard.h"

bool guard_off[GUARDS];
bool sim_guard_off[SIM_GUARDS];

static const struct {
    const char *name;
    bool *off;
    const char *words;
} guards[] = {
    {"drift", &guard_off[GUARD_DRIFT],
        "the deadline precedes the server's, by the drift"},
    {"send-time", &guard_off[GUARD_SEND_TIME],
        "a lease counts from before its request was sent"},
    {"recheck", &guard_off[GUARD_RECHECK],
        "the clock is read again before a grant is returned"},
    {"lapsed", &guard_off[GUARD_LAPSED],
        "a lease past its deadline is not extended"},
    {"expired", &guard_off[GUARD_EXPIRED],
        "the key of an expired lease is left alone"},
    {"fresh-token", &guard_off[GUARD_FRESH_TOKEN],
        "a token that may have been applied is not reused"},
    {"late-undo", &guard_off[GUARD_LATE_UNDO], "a cancelled acquire is undone"},
    {"lost-acquire", &guard_off[GUARD_LOST_ACQUIRE],
        "an acquire whose connection was lost is undone"},
    {"kill", &guard_off[GUARD_KILL],
        "the lost connection is killed before its cleanup"},
    {"first-connection", &guard_off[GUARD_FIRST_CONNECTION],
        "... that one, and none that was lost later"},
    {"loss", &guard_off[GUARD_LOSS],
        "a lease that cannot be renewed is lost by its deadline"},
    {"shorten", &guard_off[GUARD_SHORTEN], "an extend never shortens a lease"},
    {"continuity", &guard_off[GUARD_CONTINUITY],
        "an extend counts only servers that kept the token"},
    {"write-back", &guard_off[GUARD_WRITE_BACK],
        "a quorum has the fencing token before the caller"},
    {"restarts", &guard_off[GUARD_RESTARTS],
        "a server that may have forgotten locks has no vote"},
    {"adopt", &guard_off[GUARD_ADOPT],
        "a restarted server does not count for an adoption"},
    {"join-once", &guard_off[GUARD_JOIN_ONCE],
        "a token joins the line of a lock once"},
    {"same-connection", &guard_off[GUARD_SAME_CONNECTION],
        "a message counts on its JOIN's connections"},
    {"answered", &guard_off[GUARD_ANSWERED],
        "a lease handed over counts from an answered request"},
    {"unseen", &guard_off[GUARD_UNSEEN],
        "a begin is taken back if its caller never knew of it"},
    {"seen", &guard_off[GUARD_SEEN],
        "a begin whose caller knows of it is not taken back"},
    {"witness", &guard_off[GUARD_WITNESS],
        "\"busy\" needs a witness that counts until now"},
    {"name-order", &guard_off[GUARD_NAME_ORDER],
        "several names are taken in the order of their bytes"},
    {"held", &guard_off[GUARD_HELD],
        "a lock that a wait in line has brought is given back"},
    {"compare", &sim_guard_off[SIM_GUARD_COMPARE],
        "only the owner's token deletes"},
    {"fence-floor", &sim_guard_off[SIM_GUARD_FENCE_FLOOR],
        "fences are not behind the server's clock"},
    {"never-shorten", &sim_guard_off[SIM_GUARD_NEVER_SHORTEN],
        "waiting in line never shortens a lease"},
    {"grant-order", &sim_guard_off[SIM_GUARD_GRANT_ORDER],
        "a token leaves the line, is granted, is told"},
    {"window", &sim_guard_off[SIM_GUARD_WINDOW],
        "a waiter that is silent counts as dead"},
    {"far-window", &sim_guard_off[SIM_GUARD_FAR_WINDOW],
        "far behind in line, silence may last longer"},
    {"clock-back", &sim_guard_off[SIM_GUARD_CLOCK_BACK],
        "a clock that is set back empties no line"},
    {"place", &sim_guard_off[SIM_GUARD_PLACE],
        "a waiter learns its place in line"},
    {"gap", &sim_guard_off[SIM_GUARD_GAP],
        "hand-overs leave the lock free now and then"},
    {"gap-kept", &sim_guard_off[SIM_GUARD_GAP_KEPT],
        "in a gap nobody in line is granted the lock"},
    {"gap-ends", &sim_guard_off[SIM_GUARD_GAP_ENDS],
        "a gap ends though the clock is set back"},
    {"gap-comes", &sim_guard_off[SIM_GUARD_GAP_COMES],
        "the next gap comes though the clock goes back"},
    {"fingerprint", &sim_guard_off[SIM_GUARD_FINGERPRINT],
        "a result is for one fingerprint"},
    {"begin-free", &sim_guard_off[SIM_GUARD_BEGIN_FREE],
        "work begins only if the lock is free"},
    {"begin-once", &sim_guard_off[SIM_GUARD_BEGIN_ONCE],
        "a token begins work once"},
    {"halt", &sim_guard_off[SIM_GUARD_HALT],
        "work in doubt begins only if that was asked for"},
    {"doubts", &sim_guard_off[SIM_GUARD_DOUBTS],
        "attempts in doubt are counted"},
    {"no-end", &sim_guard_off[SIM_GUARD_NO_END],
        "work in progress or in doubt never expires"},
    {"tell-own", &sim_guard_off[SIM_GUARD_TELL_OWN],
        "a verdict is about its own attempt"},
    {"done-stays", &sim_guard_off[SIM_GUARD_DONE_STAYS],
        "what was done first stays done"},
    {"done-late", &sim_guard_off[SIM_GUARD_DONE_LATE],
        "a late done counts after a failure"},
    {"unsure-late", &sim_guard_off[SIM_GUARD_UNSURE_LATE],
        "a late unsure counts after a failure"},
    {"late", &sim_guard_off[SIM_GUARD_LATE],
        "a late done that does not count leaves a doubt"},
    {"failed-doubts", &sim_guard_off[SIM_GUARD_FAILED_DOUBTS],
        "a failure does not end earlier doubts"},
    {"forget", &sim_guard_off[SIM_GUARD_FORGET],
        "only the record that was seen is forgotten"},
    {"unbegin-own", &sim_guard_off[SIM_GUARD_UNBEGIN_OWN],
        "only the token's own begin is taken back"},
    {"unbegin-proof", &sim_guard_off[SIM_GUARD_UNBEGIN_PROOF],
        "the record proves that a begin has come"},
    {"second-history", &guard_off[GUARD_SECOND_HISTORY],
        "a second history is a promotion"},
    {"age", &guard_off[GUARD_AGE],
        "a primary that was promoted nobody knows when has no vote"},
    {"coordinated", &guard_off[GUARD_COORDINATED],
        "only the former primary says that nothing was lost"},
    {"same-history", &guard_off[GUARD_SAME_HISTORY],
        "a sign of life is of the same primary"},
    {"alive", &guard_off[GUARD_ALIVE],
        "a silent connection is asked before it is trusted"},
    {"heard", &guard_off[GUARD_HEARD],
        "a sign of life is as old as the answer before it"},
    {"replicas", &guard_off[GUARD_REPLICAS],
        "a primary that lost a replica is looked for anew"},
    {"copies", &guard_off[GUARD_COPIES],
        "as many replicas have a write as are wanted"},
    {"old-deadline", &guard_off[GUARD_OLD_DEADLINE],
        "an extension that too few have moves no deadline"},
    {"void-token", &guard_off[GUARD_VOID_TOKEN],
        "the token of a void grant is not reused"},
    {"own-wait", &sim_guard_off[SIM_GUARD_OWN_WAIT],
        "WAIT counts behind the command that wrote"},
    {"confirm-grants", &guard_off[GUARD_CONFIRM_GRANTS],
        "Sentinels confirm the primary of a grant"},
    {"confirm-extends", &guard_off[GUARD_CONFIRM_EXTENDS],
        "... of what is done to a lock that is held"},
    {"confirm-messages", &guard_off[GUARD_CONFIRM_MESSAGES],
        "... and of a lock that is handed over in line"},
    {"named", &guard_off[GUARD_NAMED],
        "a primary is as old as a majority's word for it"},
    {"moved", &guard_off[GUARD_MOVED],
        "a lease that ends soon is not extended elsewhere"},
    {"all-sentinels", &guard_off[GUARD_ALL_SENTINELS],
        "a majority is one of all, not of those listed"},
    {"one-sentinel", &guard_off[GUARD_ONE_SENTINEL],
        "a Sentinel with two addresses counts once"},
    {"first-answer", &sim_guard_off[SIM_GUARD_FIRST_ANSWER],
        "a new client waits for a majority, too"},
    {"marker", &sim_guard_off[SIM_GUARD_MARKER],
        "the marker key is about one history of data"},
    {"smallest", &sim_guard_off[SIM_GUARD_SMALLEST],
        "the smallest limit of all holders counts"},
    {"head", &sim_guard_off[SIM_GUARD_HEAD],
        "the head of the holders knows a second kind"},
    {"lease-over", &sim_guard_off[SIM_GUARD_LEASE_OVER],
        "a lease that is over takes no permits"},
    {"over-is-gone", &sim_guard_off[SIM_GUARD_OVER_IS_GONE],
        "... nor does it come again"},
    {"end-put", &sim_guard_off[SIM_GUARD_END_PUT],
        "a short lease beside a long one ends no key"},
    {"end-left", &sim_guard_off[SIM_GUARD_END_LEFT],
        "a key ends with the last lease that is left"},
    {"counts-on", &sim_guard_off[SIM_GUARD_COUNTS_ON],
        "a batch counts what it has granted itself"},
    {"held-first", &sim_guard_off[SIM_GUARD_HELD_FIRST],
        "a token that holds permits takes no more"},
    {"leaves-line", &sim_guard_off[SIM_GUARD_LEAVES_LINE],
        "who is granted permits leaves the line"},
    {"take-behind", &sim_guard_off[SIM_GUARD_TAKE_BEHIND],
        "who takes permits does not pass the line"},
    {"after-gap", &sim_guard_off[SIM_GUARD_AFTER_GAP],
        "... nor after a gap, when it has no mark"},
    {"pause", &sim_guard_off[SIM_GUARD_PAUSE],
        "now and then nobody joins the holders"},
    {"as-joined", &sim_guard_off[SIM_GUARD_AS_JOINED],
        "a place in line is removed as it was taken"},
    {"hold-back", &sim_guard_off[SIM_GUARD_HOLD_BACK],
        "who waits without a line holds readers back"},
    {"mark-stays", &sim_guard_off[SIM_GUARD_MARK_STAYS],
        "... also when the last of them has left"},
};

#define COUNT (sizeof(guards) / sizeof(*guards))

bool guard_turn_off(const char *name)
{
    for (size_t i = 0; i < COUNT; i++) {
        if (strcmp(guards[i].name, name) == 0) {
            *guards[i].off = true;
            return true;
        }
    }
    return false;
}

void guards_turn_on(void)
{
    for (size_t i = 0; i < COUNT; i++)
        *guards[i].off = false;
}

const char *guard_name(unsigned index)
{
    return index < COUNT ? guards[index].name : NULL;
}

const char *guard_words(unsigned index)
{
    return index < COUNT ? guards[index].words : NULL;
}
