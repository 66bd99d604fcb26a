/* SPDX-License-Identifier: MIT */
/*
 * Keeps: every help text begins with lines that can be copied and run.
 */
#include "cli/help.h"

#include "cli/option.h"

static const char overview[] =
    "nxlock - one at a time, across machines, with Redis or Valkey\n"
    "\n"
    "  nxlock run backup -n -- /usr/local/bin/backup   skip if it runs\n"
    "  nxlock run deploy -w 5m -- make deploy          wait 5 minutes\n"
    "  nxlock status backup                            who holds it?\n"
    "\n"
    "commands:\n"
    "  run NAME -- CMD...    run CMD while the lock is held\n"
    "  acquire NAME          acquire, print the token, leave it held\n"
    "  renew NAME TOKEN      prolong a lock left held\n"
    "  release NAME TOKEN    release it\n"
    "  status NAME           who holds it, and how long still\n"
    "  wait NAME             wait until nobody holds it, without taking it\n"
    "  list [GLOB]           all locks that are held\n"
    "  unlock NAME           take it from a dead holder\n"
    "  doctor [NAME]         is the server fit for locks?\n"
    "\n"
    "'nxlock COMMAND --help' says more. The server: -u URL, else "
    "$NXLOCK_URL,\nelse $REDIS_URL, else redis://127.0.0.1:6379.\n"
    "\n"
    "exit codes:\n"
    "    0  done; status: held\n"
    "    1  status: free; unlock: free before; doctor: a warning\n"
    "   64  the command line is wrong, or its times\n"
    "   69  no server, a refusal, no answer, or NAME is a key of other use\n"
    "   70  internal, or the output cannot be written\n"
    "   75  busy: somebody else holds it, or not due (-E CODE replaces it)\n"
    "   77  password, user or rights\n"
    "   78  the URL is wrong\n"
    "   79  the lock was lost, or is not held under this token\n"
    "  124  run: --at-most is over, CMD was stopped\n"
    "  125  run: no process could be made for CMD\n"
    "  126  CMD cannot be executed\n"
    "  127  CMD was not found\n"
    "  else the code of CMD, or 128 + N if signal N ended it. With 64 to 78\n"
    "  of nxlock's own, and 125 to 127, CMD was not started.\n";

static const char run_text[] =
    "nxlock run NAME [OPTION...] -- CMD...\n"
    "nxlock run NAME [OPTION...] -c STRING\n"
    "\n"
    "examples:\n"
    "  nxlock run backup -n -- /usr/local/bin/backup\n"
    "  nxlock run deploy -w 5m -v -- make deploy\n"
    "  nxlock run report -c 'make report && mail boss < report'\n"
    "  */5 * * * * /usr/local/bin/nxlock run feed -n -E 0 -- /opt/feed\n"
    "  15 2 * * * /usr/local/bin/nxlock run pay -n --every 1d -- /opt/pay\n"
    "\n"
    "Acquires NAME, runs CMD (without a shell, but for -c) and releases\n"
    "NAME when nothing of CMD runs any more. The lease is renewed every third\n"
    "of it. If that fails for so long that the lease would run out, CMD and\n"
    "all that it started get TERM, a grace later KILL, before the lease ends,\n"
    "and the exit code is 79; else it is CMD's own. A guard process does that\n"
    "even if nxlock is killed or stopped. Signals that would end nxlock are\n"
    "passed on to CMD, no KILL follows, and nxlock ends when CMD has; while\n"
    "waiting they end the wait and CMD never starts.\n"
    "Silent on success and when busy; on a terminal or with -v it says who\n"
    "holds the lock it waits for. A server that cannot be asked is said once,\n"
    "and -n or -w ends waiting for it.\n"
    "\n"
    "CMD sees NXLOCK_HELD (1), NXLOCK_NAME, NXLOCK_KEY, NXLOCK_TOKEN,\n"
    "NXLOCK_TTL_MS, NXLOCK_FENCE (a number that grows with every grant: hand\n"
    "it to what you protect), NXLOCK_SUPERVISOR_PID, NXLOCK_LOST_FD (a file\n"
    "descriptor, readable when the lock is lost or about to be) and, inside\n"
    "another 'nxlock run', NXLOCK_OUTER, the tokens held around it, the\n"
    "outermost first, with a blank between two.\n"
    "\n"
    "--every is no limit of one run in any DUR: hosts whose clocks differ by\n"
    "less than half of it make one run each DUR. What is recorded is the key\n"
    "{NAME}:every; 'nxlock unlock {NAME}:every --force' allows the next run.\n"
    "\n"
    "HARM: --on-lost warn and --leave-descendants let work go on without the\n"
    "lock, beside the next holder's. --on-down run runs CMD without the lock\n"
    "when no server can be asked (NXLOCK_HELD is 0), --on-down skip does not\n"
    "run it and says 0. --no-fence leaves nothing by which a holder that was\n"
    "stopped could be told from the next one.\n";

static const char acquire_text[] =
    "nxlock acquire NAME [OPTION...]\n"
    "\n"
    "examples:\n"
    "  token=$(nxlock acquire backup -w 10 --ttl 45s) || exit\n"
    "  ... at most 45 s of work, or 'nxlock renew backup \"$token\"' ...\n"
    "  nxlock release backup \"$token\"\n"
    "\n"
    "Acquires NAME, prints the token, one word, and leaves NAME held until\n"
    "the lease ends. Nobody renews it: 'nxlock run' does, and is the better\n"
    "choice wherever one command does the work.\n";

static const char renew_text[] =
    "nxlock renew NAME TOKEN [OPTION...]\n"
    "\n"
    "example:\n"
    "  nxlock renew backup \"$token\" --ttl 45s || exit\n"
    "\n"
    "Prolongs a lock that is held under TOKEN to at least --ttl from now. 79:\n"
    "it is not held under this token any more; stop what it protects.\n";

static const char release_text[] =
    "nxlock release NAME TOKEN [OPTION...]\n"
    "\n"
    "example:\n"
    "  nxlock release backup \"$token\"\n"
    "\n"
    "Releases a lock that is held under TOKEN. 79: it had run out or had been\n"
    "removed before; somebody else may have worked at the same time.\n";

static const char status_text[] =
    "nxlock status NAME [OPTION...]\n"
    "\n"
    "examples:\n"
    "  nxlock status backup\n"
    "  nxlock status backup --json\n"
    "  if nxlock status backup > /dev/null; then echo at work; fi\n"
    "\n"
    "Prints who holds NAME and how long still. Exit code 0: held; 1: free;\n"
    "above 1: it could not be told.\n";

static const char wait_text[] =
    "nxlock wait NAME [OPTION...]\n"
    "\n"
    "examples:\n"
    "  nxlock wait migration && ./start-the-service\n"
    "  nxlock wait backup -w 10m -v\n"
    "\n"
    "Waits until nobody holds NAME, and does not take it: somebody may have\n"
    "it again when this ends; 'nxlock run' is what excludes. Asks the server\n"
    "at growing intervals, 2 s at most. Exit code 0: free; 75: still held\n"
    "when -w was over. On a terminal or with -v it says who holds it.\n";

static const char list_text[] =
    "nxlock list [GLOB] [OPTION...]\n"
    "\n"
    "examples:\n"
    "  nxlock list\n"
    "  nxlock list 'invoice:*' --json\n"
    "  nxlock list | cut -f 1\n"
    "\n"
    "Prints the locks whose names match GLOB (* ? [a-z] \\): NAME, STATE,\n"
    "OWNER, LEFT, and of several servers at how many it stands; with tabs\n"
    "between them unless it goes to a terminal. STATE is 'partial' where no\n"
    "majority of the servers has it, 'every' for what --every has recorded,\n"
    "{NAME}:every. Walks the keys by SCAN, in small steps\n"
    "that hold nobody up, and reads the values: in a large database that\n"
    "takes its time. Locks of other formats are not shown.\n";

static const char unlock_text[] =
    "nxlock unlock NAME --token TOKEN [OPTION...]\n"
    "nxlock unlock NAME --force [--yes] [OPTION...]\n"
    "\n"
    "examples:\n"
    "  nxlock status backup && nxlock unlock backup --force\n"
    "  nxlock unlock backup --token \"$token\"\n"
    "\n"
    "Removes a lock that somebody else took, if it is still the one that is\n"
    "held under TOKEN, or that --force shows; at a terminal --force asks\n"
    "first, else it wants --yes. HARM: the holder may be at work, and goes on\n"
    "until it renews and finds that it has lost; so two may work at a time.\n"
    "If its writes carry its fencing number, what the lock protects refuses\n"
    "them after the next holder's, whose number is higher.\n"
    "Exit code 0: removed; 1: it was free already, or has changed since it\n"
    "was shown; 75: held under another token, or you said no.\n";

static const char doctor_text[] =
    "nxlock doctor [NAME] [OPTION...]\n"
    "\n"
    "examples:\n"
    "  nxlock doctor\n"
    "  nxlock doctor invoice:42 -u redis://locks@db7\n"
    "  nxlock doctor --json > findings\n"
    "\n"
    "Asks the server whether it is fit for locks, and takes one under a name\n"
    "of its own. A line each: ok, note, WARN or FAIL, what, the finding and\n"
    "the remedy. With NAME it looks at the rights to that lock's keys too;\n"
    "the lock itself is not touched. Exit code 0: all is well; 1: it works,\n"
    "with a warning; else as the worst failure: 69, 77 or 78.\n";

void help_overview(FILE *out)
{
    fputs(overview, out);
}

void help_command(enum command command, FILE *out)
{
    static const char *const texts[] = {
        [CMD_RUN] = run_text,
        [CMD_ACQUIRE] = acquire_text,
        [CMD_RENEW] = renew_text,
        [CMD_RELEASE] = release_text,
        [CMD_STATUS] = status_text,
        [CMD_WAIT] = wait_text,
        [CMD_LIST] = list_text,
        [CMD_UNLOCK] = unlock_text,
        [CMD_DOCTOR] = doctor_text,
    };

    fputs(texts[command], out);
    option_print(command, out);
}
