# SPDX-License-Identifier: MIT
"""The faults: each is a function that does it to a cell again and again as
long as cell.goes_on(), and leaves all well; and a row that says what is
expected in which column. "ok": no two ever rely on the lock. "two": by design
two may, so the function forces it, at a hold that it has picked, until it has
been seen and has done harm."""

import dataclasses
import os

import chaos
import clients
import stage
import waiters

ALL = ("one", "replica", "redlock2", "redlock3")
OK = dict.fromkeys(ALL, "ok")
# Of five servers two are not enough for a second holder, provided that the
# first one stands at all of them.
MAJORITY = {**dict.fromkeys(ALL, "two"), "redlock2": "ok"}
# Without a guard two of five may be enough for one, or not.
UNGUARDED = {"one": "two", "replica": "two", "redlock3": "two"}
# Where there is a line.
LINE = {"one": "ok", "replica": "ok"}
REDLOCK = {"redlock2": "ok", "redlock3": "ok"}


@dataclasses.dataclass
class Fault:
    name: str
    text: str
    strike: object
    expected: dict
    server: tuple = ()  # more arguments of redis-server
    url: dict = dataclasses.field(default_factory=dict)  # by column
    proxied: bool = False
    tcp: bool = False
    clock: str = ""  # whose is stepped: "server", "client"
    write_ms: int = 3
    max_hold_ms: int = 0  # of those that renew; 0: no limit
    prepare: object = None
    leaves: bool = False  # the key of one that was killed
    harms: bool = True  # "two": an update is lost by it, without the check
    checks: tuple = ()
    kinds: dict = dataclasses.field(default_factory=dict)  # by column


# ---------------------------------------------------------------- the network

def delay(cell):
    while cell.goes_on():
        for way in ("up", "down"):
            cell.order("delay", way, cell.dice.choice([0, 20, 120, 350]))
        cell.strike()
        cell.pause(0.1, 0.6)
    for way in ("up", "down"):
        cell.order("delay", way, 0)


def cut(cell):
    while cell.goes_on():
        cell.order("refuse", "both", 1)
        cell.order("cut")
        cell.strike()
        cell.pause(0, 0.7)
        cell.order("refuse", "both", 0)
        cell.pause(0.05, 0.4)


def reset(cell):
    """Requests are on their way and replies held back when it comes."""
    while cell.goes_on():
        cell.order("hold", "down", 1)
        cell.pause(0.005, 0.03)
        cell.order("reset")
        cell.order("hold", "down", 0)
        cell.strike()
        cell.pause(0.02, 0.2)


def torn(cell):
    while cell.goes_on():
        way = cell.dice.choice(["up", "down"])
        cell.order("cut-after", way, cell.dice.randint(1, 400))
        cell.strike()
        cell.pause(0.01, 0.1)


def black_hole(cell):
    while cell.goes_on():
        cell.aim_if_possible()
        for way in ("up", "down"):
            cell.order("hold", way, 1)
        cell.strike()
        cell.pause(0.1, 1.1)
        if cell.dice.random() < 0.5:
            cell.order("cut")
        for way in ("up", "down"):
            cell.order("hold", way, 0)
        cell.pause(0.1, 0.4)


def lost_replies(cell):
    """What is dropped is never followed by later replies: TCP does not do
    that."""
    while cell.goes_on():
        cell.order("drop", "down", 1)
        cell.strike()
        cell.pause(0.02, 0.5)
        cell.order("refuse", "both", 1)
        cell.order("cut")
        cell.order("drop", "down", 0)
        cell.order("refuse", "both", 0)
        cell.pause(0.05, 0.3)


# ---------------------------------------------------------------- the servers

def freeze(low, high):
    def strike(cell):
        while cell.goes_on():
            cell.aim_if_possible()
            cell.each(stage.Server.freeze)
            cell.strike()
            cell.pause(low, high)
            cell.each(stage.Server.thaw)
            cell.pause(0.05, 0.4)
    return strike


def bounce(cell):
    cell.each(stage.Server.kill)
    come_back(cell)


def cut_power(cell):
    """The last time that they made sure of their disk was before they granted
    what is held: all since then is lost, and what is older is not."""
    for server in cell.stage.struck:
        server.cut_power(server.ask("GET", "k") or "nobody")
    come_back(cell)


def come_back(cell):
    cell.each(stage.Server.start)
    cell.each(stage.Server.ready)
    cell.strike()


def restart(cell):
    while cell.goes_on():
        bounce(cell)
        cell.pause(0.3, 1.0)


def restart_at_a_hold(how):
    def strike(cell):
        while cell.goes_on():
            if cell.aim(left_ms=280, age_ms=40):
                how(cell)
            cell.pause(0.3)
    return strike


def restart_seldom(how):
    """As long as the guard keeps them from voting, and then at a hold."""
    def strike(cell):
        for _ in range(2):
            if cell.aim(left_ms=200):
                how(cell)
            cell.await_grant(
                stage.now_ns(), 15, "nobody got it after a restart")
    return strike


def script_flush(cell):
    while cell.goes_on():
        cell.each(lambda s: s.ask("SCRIPT", "FLUSH"))
        cell.strike()
        cell.pause(0.002, 0.02)


def at_a_hold(do, renewed=None):
    """Does it at the struck servers while a lock is held. If the cell has to
    stay right, only while the token stands at all servers."""
    def strike(cell):
        while cell.goes_on():
            hold = cell.aim(renewed=renewed)
            if hold and (cell.column != "redlock2" or cell.full()):
                do(cell)
                cell.strike()
            cell.pause(0.2, 0.5)
    return strike


def flush(cell):
    cell.each(lambda s: s.ask("FLUSHALL"))


def evict(cell):
    for server in cell.stage.struck:
        server.config("maxmemory", 1)
        server.ask("PING")
        server.config("maxmemory", 0)


def no_memory(cell):
    while cell.goes_on():
        cell.each(lambda s: s.config("maxmemory", 1))
        cell.strike()
        cell.pause(0.1, 0.8)
        cell.each(lambda s: s.config("maxmemory", 0))
        cell.pause(0.1, 0.5)


def demote(cell):
    while cell.goes_on():
        cell.each(lambda s: s.ask("REPLICAOF", "127.0.0.1", 1))
        cell.strike()
        cell.pause(0.1, 0.8)
        cell.each(lambda s: s.ask("REPLICAOF", "NO", "ONE"))
        cell.pause(0.1, 0.5)


def no_scripts(cell):
    while cell.goes_on():
        cell.each(lambda s: s.ask("ACL", "SETUSER", "default", "-@scripting"))
        cell.strike()
        cell.pause(0.1, 0.8)
        cell.each(lambda s: s.ask("ACL", "SETUSER", "default", "+@scripting"))
        cell.pause(0.1, 0.5)


def saving_fails(server):
    """Asked for again while a copy for the replica is being saved."""
    try:
        server.ask("BGSAVE")
    except stage.Refused:
        pass
    return server.info("persistence", "rdb_last_bgsave_status") == "err"


def bad_disk(cell):
    """A folder stands where the server wants to save."""
    name = "stop-writes-on-bgsave-error"
    for server in cell.stage.struck:
        (server.dir / "folder").mkdir()
        server.config(name, "no")
        stage.await_true(lambda s=server: saving_fails(s), "saving fails")
    while cell.goes_on():
        cell.each(lambda s: s.config(name, "yes"))
        cell.strike()
        cell.pause(0.1, 0.8)
        cell.each(lambda s: s.config(name, "no"))
        cell.pause(0.1, 0.5)


def no_replicas(cell):
    while cell.goes_on():
        cell.each(lambda s: s.config("min-replicas-to-write", 3))
        cell.strike()
        cell.pause(0.1, 0.8)
        cell.each(lambda s: s.config("min-replicas-to-write", 0))
        cell.pause(0.1, 0.5)


def step_server(hours):
    def step(cell):
        cell.each(lambda s: s.set_clock(s.offset_s + hours * 3600))
        cell.each(lambda s: s.ask("PING"))
    return step


# -------------------------------------------------------------- the failovers

def lag(cell, lagging):
    link = cell.stage.links[cell.stage.primary]
    link.order("hold", "down", 1 if lagging else 0)


def failover_lagging(cell):
    while cell.goes_on():
        lag(cell, True)
        if cell.aim(since=stage.now_ns()):
            old = cell.stage.links[cell.stage.primary]
            cell.stage.promote()
            old.order("cut")
            old.order("hold", "down", 0)
            cell.strike()
        else:
            lag(cell, False)
        cell.pause(0.6)
        cell.stage.follow()


def failover_complete(cell):
    while cell.goes_on():
        cell.pause(0.2, 0.6)
        this = cell.stage
        this.servers[this.primary].ask("CLIENT", "PAUSE", 5000, "WRITE")
        stage.await_true(
            lambda: this.offset(this.primary) == this.offset(this.copy),
            "the replica has it all")
        this.promote()
        cell.strike()
        this.follow()


def prepare_split(cell):
    """A third of the processes knows the place where the replica is."""
    cell.other_place = cell.stage.servers[cell.stage.copy].socket


def split_brain(cell):
    lag(cell, True)
    cell.stage.servers[cell.stage.copy].ask("REPLICAOF", "NO", "ONE")
    cell.strike()
    while cell.goes_on():
        cell.pause(0.1)
    lag(cell, False)


# -------------------------------------------------------------- special looks

def no_errors(cell, seen):
    strange = set(seen["acquires"]) - {
        "ok", "busy", "cancelled", "lost", "unknown", "unreachable"}
    if strange:
        said = [m for c in cell.contenders for m in c.record.messages]
        cell.complain(f"{strange} were seen; {said[-1:]}")


def stale_writes(cell, seen):
    if not seen["refused"] or not seen["lost_plain"]:
        cell.complain("a late write did no harm even without the check")
    losses(cell, seen)


def losses(cell, seen):
    if not seen["releases"].get("lost"):
        cell.complain("nobody was told of the loss")


def refusals(cell, seen):
    results = ["refused", "denied", "unsupported", "unreachable"]
    if cell.column in LINE:  # one whose token is in line may get it yet
        results.append("unknown")
    if cell.column != "redlock2" and not any(
            seen["acquires"].get(r) for r in results):
        cell.complain("nobody was refused")


def releases_work(cell, seen):
    if seen["releases"].get("refused"):
        cell.complain("a release was refused")


def unknowns(cell, seen):
    if cell.column != "redlock2" and not (
            seen["acquires"].get("unknown") or
            seen["releases"].get("unknown")):
        cell.complain("no outcome was unknown")


NETWORK = chaos.turns(delay, cut, reset, torn, black_hole, lost_replies,
                      chaos.late_requests, *[chaos.calm] * 3)
CLIENTS = chaos.turns(chaos.kill_some, clients.stop_anybody, chaos.calm)
SERVERS = (freeze(0.05, 0.9), script_flush, waiters.delete_line,
           waiters.cut_subscribers, chaos.calm)


def restart_and_grow_old(cell):
    """They are killed again when they had a vote for a while."""
    bounce(cell)
    cell.pause(3, 4)


GUARD_ON = {"one": ["guard_restarts=on"], "replica": ["guard_restarts=on"]}
GUARD_OFF = {c: ["guard_restarts=off"] for c in ALL}
DURABLE = {c: ["durable=1"] for c in ("redlock2", "redlock3")}
AOF = ("--appendonly", "yes", "--appendfsync", "always")
EVERYSEC = ("--appendonly", "yes", "--appendfsync", "everysec")
SAVES = ("--save", "3600 1000000", "--dbfilename", "folder")
EVICTS = ("--maxmemory-policy", "volatile-ttl")

# Only where there is an older version: tests/old_version.sh.
VERSIONS = [
    Fault("versions", "as kinds, beside exclusive locks of an older version",
          chaos.together(NETWORK, CLIENTS, chaos.turns(*SERVERS, restart)),
          {"one": "ok"}, server=AOF, proxied=True, prepare=chaos.direct,
          checks=(chaos.held_together, chaos.expected_errors),
          kinds={"one": chaos.VERSIONS}),
] if os.environ.get("NXLOCK_OLD_LIBRARY") else []

FAULTS = [
    Fault("delay", "replies and requests delayed, up to beyond the time-out",
          delay, OK, proxied=True),
    Fault("cut", "connections cut and refused, up to beyond the ttl",
          cut, OK, proxied=True),
    Fault("reset", "TCP reset in the middle of a pipeline",
          reset, OK, proxied=True, tcp=True),
    Fault("torn", "cut in the middle of a request or a reply",
          torn, OK, proxied=True),
    Fault("black-hole", "nothing passes and nothing is closed",
          black_hole, OK, proxied=True),
    Fault("lost-replies", "replies dropped after the server has executed",
          lost_replies, OK, proxied=True, checks=(unknowns,)),
    Fault("late-requests", "requests delivered after their connections were "
          "closed", chaos.late_requests, OK, proxied=True),
    Fault("stop-short", "server SIGSTOP shorter than the ttl",
          freeze(0.05, 0.35), OK),
    Fault("stop-long", "server SIGSTOP longer than the ttl",
          freeze(0.6, 0.9), OK),
    Fault("restart-aof", "server SIGKILL and restart, appendfsync always",
          restart, OK, server=AOF, url=DURABLE),
    Fault("restart-guarded", "the same without data, guard_restarts=on",
          restart_seldom(bounce), OK, url=GUARD_ON),
    Fault("restart-empty", "the same without data, guard_restarts=off",
          restart_at_a_hold(bounce), UNGUARDED, url=GUARD_OFF),
    Fault("power-cut", "power cut, appendfsync everysec: all since the grant "
          "is lost; guard_restarts=off",
          restart_at_a_hold(cut_power), UNGUARDED, server=EVERYSEC,
          url=GUARD_OFF),
    Fault("power-cut-guarded", "the same, guard_restarts=on",
          restart_seldom(cut_power), OK, server=EVERYSEC, url=GUARD_ON),
    Fault("script-flush", "SCRIPT FLUSH in a loop",
          script_flush, OK, checks=(no_errors,)),
    Fault("flushall", "FLUSHALL while it is held", at_a_hold(flush),
          MAJORITY),
    Fault("evict", "maxmemory and volatile-ttl: the lock is evicted",
          at_a_hold(evict), MAJORITY, server=EVICTS),
    Fault("oom", "maxmemory and noeviction", no_memory, OK,
          checks=(refusals, releases_work)),
    Fault("readonly", "server made a replica and a primary again",
          demote, OK, checks=(refusals,)),
    Fault("acl", "the user loses EVAL", no_scripts, OK, checks=(refusals,)),
    Fault("misconf", "saving fails: MISCONF", bad_disk, OK, server=SAVES,
          checks=(refusals,)),
    Fault("noreplicas", "NOREPLICAS", no_replicas, OK, checks=(refusals,)),
    Fault("clock-ahead", "server clock steps of +1 h", at_a_hold(
        step_server(1)), MAJORITY, clock="server"),
    # A key that is not released in time stays for an hour (G4).
    Fault("clock-back", "server clock steps of -1 h", at_a_hold(
        step_server(-1), renewed=True), OK, clock="server"),
    Fault("failover", "failover, the replica has everything",
          failover_complete, {"replica": "ok"}),
    Fault("failover-lagging", "failover to a replica that lags behind",
          failover_lagging, {"replica": "two"}),
    Fault("failover-guarded", "the same, guard_restarts=on, and no process "
          "that has only just begun", failover_lagging, {"replica": "ok"},
          url=GUARD_ON),
    Fault("split-brain", "the old primary goes on beside the new one",
          split_brain, {"replica": "two"}, prepare=prepare_split),
    Fault("client-kill", "client SIGKILL while it holds",
          clients.kill_holder, OK, write_ms=60),
    Fault("client-stop", "client SIGSTOP longer than the ttl, before it writes",
          clients.stop_holder, OK, write_ms=60, checks=(stale_writes,)),
    Fault("client-stop-any", "client SIGSTOP at any time, up to over the ttl",
          clients.stop_anybody, OK),
    Fault("client-stop-ask", "all clients SIGSTOP between request and reply",
          clients.stop_asking, OK, proxied=True),
    Fault("hung", "the holder's thread hangs for good, renewal goes on up to "
          "max_hold_ms", clients.hang, OK, max_hold_ms=1000,
          checks=(clients.held_while_hung,)),
    Fault("client-clock", "client clock steps of 1 h", clients.step_client, OK,
          clock="client"),
    Fault("waiter-kill", "SIGKILL of one that waits in line",
          waiters.kill_waiter, LINE),
    Fault("waiters-dead", "SIGSTOP of most that wait in line, for longer than "
          "a lease: a dead host, sockets open", waiters.stop_waiters, LINE),
    Fault("no-messages", "nobody is told that the lock was handed over",
          waiters.lose_messages, LINE),
    Fault("subscriber-cut", "the connections for messages are cut",
          waiters.cut_subscribers, LINE),
    Fault("line-deleted", "DEL of the line, or of the mark that it exists",
          waiters.delete_line, LINE),
    Fault("pollers", "a program that polls with SET NX, and releases without "
          "handing over", waiters.poll, LINE),
    Fault("classic", "a GETSET program on the key, without interop",
          clients.classic, {"one": "two", "replica": "two"}, checks=(losses,),
          harms=False),  # that program writes nothing
    Fault("chaos", "the network, the server, the line and clients suffer at "
          "the same time; appendfsync always",
          chaos.compared_at_last(chaos.together(
              NETWORK, CLIENTS,
              chaos.turns(*SERVERS, restart, chaos.compare_leases))),
          {"one": "ok"}, server=AOF, proxied=True, prepare=chaos.direct,
          checks=(chaos.expected_errors,)),
    Fault("chaos-guarded", "the network, servers and clients suffer at the "
          "same time; restarts without data, guard_restarts=on",
          chaos.together(NETWORK, CLIENTS, chaos.turns(
              freeze(0.05, 0.9), script_flush, restart_and_grow_old)),
          REDLOCK, proxied=True, checks=(chaos.expected_errors,)),
    Fault("kinds", "as chaos, with permits, weights, shared and exclusive "
          "locks of one name; several servers: readers and writers",
          chaos.together(NETWORK, CLIENTS, chaos.turns(*SERVERS, restart)),
          {"one": "ok", **REDLOCK}, server=AOF, url=DURABLE, proxied=True,
          checks=(chaos.held_together, chaos.expected_errors),
          kinds={"one": chaos.KINDS, **dict.fromkeys(REDLOCK, chaos.READERS)}),
    Fault("kinds-restarted", "locks that take all permits, restart without "
          "data, guard_restarts=off", restart_at_a_hold(bounce),
          {"one": "two"}, url=GUARD_OFF, harms=False,
          kinds={"one": chaos.FULL}),
    Fault("kinds-guarded", "the same, guard_restarts=on",
          restart_seldom(bounce), {"one": "ok"}, url=GUARD_ON,
          kinds={"one": chaos.FULL}),
    Fault("timestamps", "scheme=timestamp beside other programs of that "
          "scheme, while the network and clients suffer", chaos.together(
              NETWORK, *[chaos.classic_program] * 3, chaos.turns(
                  chaos.kill_some, clients.stop_anybody, *[chaos.calm] * 8)),
          {"one": "ok"},
          url={"one": ["scheme=timestamp"]}, proxied=True, leaves=True,
          kinds={"one": chaos.STAMPS}),
    Fault("timestamps-bare", "scheme=timestamp without WATCH, beside dead "
          "programs of that scheme, while clients suffer", chaos.together(
              chaos.dead_time, CLIENTS), {"one": "ok"},
          url={"one": ["scheme=timestamp"]}, leaves=True,
          prepare=chaos.without_watch, kinds={"one": chaos.STAMPS}),
    *VERSIONS,
]
