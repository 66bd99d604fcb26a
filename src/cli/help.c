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
    "\n"
    "'nxlock COMMAND --help' says more. The server: -u URL, else "
    "$NXLOCK_URL,\nelse $REDIS_URL, else redis://127.0.0.1:6379.\n"
    "\n"
    "exit codes:\n"
    "  64 usage   69 unreachable or refused   70 internal   75 busy\n"
    "  77 denied  78 bad URL                  79 lock lost\n"
    "  126 CMD cannot be executed   127 CMD not found\n"
    "  else the code of CMD, 128 + N if signal N ended it\n";

static const char run_text[] =
    "nxlock run NAME [OPTION...] -- CMD...\n"
    "\n"
    "examples:\n"
    "  nxlock run backup -n -- /usr/local/bin/backup\n"
    "  nxlock run deploy -w 5m -v -- make deploy\n"
    "  */5 * * * * nxlock run feed -n -E 0 -u redis://db7/2 -- /opt/feed\n"
    "\n"
    "Acquires NAME, runs CMD (without a shell) and releases NAME. The lease\n"
    "is renewed every third of it. If that fails for so long that the lease\n"
    "would run out, CMD's process group gets TERM, at the lease's end KILL,\n"
    "and the exit code is 79; else it is CMD's own. TERM, INT, HUP, QUIT,\n"
    "USR1 and USR2 are passed on. Silent on success; who holds a busy lock\n"
    "is said on a terminal or with -v.\n"
    "CMD sees NXLOCK_NAME, NXLOCK_TOKEN and NXLOCK_TTL_MS.\n";

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
    "  if nxlock status backup > /dev/null; then echo at work; fi\n"
    "\n"
    "Prints who holds NAME and how long still. 0: held; 1: free.\n";

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
    };

    fputs(texts[command], out);
    option_print(command, out);
}
