#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_sentinels.py NXLOCK: what the command says of a primary that Sentinels
name: status, the metrics and doctor. table.py describes the rows."""

import contextlib
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import metrics_file
from rig import TlsServer, await_, free_port, nx, play
from sentinel_group import SERVICE, Data, Group, Sentinel
from table import Table

RUN = "nxlock_last_run_"
TTL = ("--ttl", "3s")
NEEDED_MS = 7500  # a primary of max_ttl_ms=3000 grants no lock before 6 s


def named_ms(sentinel):
    """For how long the Sentinel has known its primary as one."""
    lines = sentinel.cli("SENTINEL", "MASTER", SERVICE).split()
    return int(lines[lines.index(b"role-reported-time") + 1])


FIRST = (
    ("doctor", 0, ("ok", "server", "named by 3 of 3 Sentinels"), "!cut off: ",
     *(("ok", f"{{s{i}}} sentinel", "{primary}") for i in range(3)),
     "!sentinels: ", "!clock: "),
    # Not all Sentinels are in the URL.
    ("doctor -u {two}", 1, ("WARN", "sentinels", r"2 of 3, by {s0}, {s1}\. "
                            "Remedy: .*announce-ip"),
     "=(?!.* sentinels: .* sentinels: ).*"),
    ("doctor -u {one}", 78, ("WARN", "sentinels", "1 of 3"),
     ("FAIL", "(reach|lock)")),
    ("doctor -u {orders}", 78, ("WARN", "sentinel")),
    *((f"doctor -u redis://{{{which}}}?max_ttl_ms=3000", code,
       ("WARN", "sentinels", "does not follow the primary in a failover"
        r".*Remedy: write redis\+sentinel://"))
      for which, code in (("primary", 1), ("replica", 69))),
    ("doctor -u redis://{primary}?max_ttl_ms=3000&guard_failover=on", 1,
     (None, "sentinels")),
    ("doctor --once", 78, ("FAIL", "once", "wait_replicas")),
)
# The last Sentinel monitors another server.
APART = (("doctor", 1, ("WARN", "{s2} sentinel", "{stranger}, not redis://"
                        "{primary}/.*Remedy: .*SENTINEL REMOVE"),
          ("ok", "lock")),)
SHOWN = (
    ("status name -v", 1, "~ *server: redis://{primary}/0, connected, .*, role "
     "primary, named by 3 of 3 Sentinels [0-9.]+m?s ago.*"),
    ("status name --json", 1,
     '~.*"server":"[^"]*, named by 3 of 3 Sentinels.*'),
    ("status name -v -u redis://{primary}", 1, "!entinel"),
)
ONE_DOWN = (
    ("&timeout_ms=2000 doctor", 1, ("WARN", "{s1} sentinel", "does not count")),
    ("status name -v", 1, ", named by 2 of 3 Sentinels"),
)
TWO_DOWN = (("&timeout_ms=2000 doctor", 69,
             ("FAIL", "(reach|lock)", "2 of 3 Sentinels")),)
# FAILOVER instead of SENTINEL FAILOVER.
REPLICA_NAMED = (
    ("doctor", 69, ("FAIL", "lock", "do not send FAILOVER to a server")),
    ("run r -n --ttl 3s -- true", 69,
     "do not send FAILOVER to a server that"),
)
WATCHER = "&sentinel_user=watcher&sentinel_password="
RUN_R = "run r -n --ttl 3s -- true"
WRONG_PASSWORD = (
    (f"{WATCHER}other {RUN_R}", 77, "WRONGPASS",
     "set sentinel_user and sentinel_password_file"),
    (f"{WATCHER}other doctor", 77,
     ("WARN", "{s2} sentinel", "does not count: WRONGPASS"),
     ("FAIL", "reach", "WRONGPASS.*sentinel_user and sentinel_password_file")),
)


# A Sentinel with TLS, and one without in front of a server with TLS, which has
# just been named, and so grants no lock for long.
BY_TLS = (
    *((f"doctor -u rediss+sentinel://127.0.0.1:{{{at}}}/svc?max_ttl_ms=60000"
       f"&cacert={{ca}}{more}", 69,
       ("ok", f"127.0.0.1:{{{at}}} sentinel", "{server}"),
       ("(ok|note)", "server", "rediss://{server}/0, .*TLSv1"))
      for at, more in (("tls", ""), ("clear", "&sentinel_tls=0"))),
    *((f"run r -n --ttl 5s -u {url}&max_ttl_ms=5000 -- true", 69, said)
      for url, said in (
          ("redis+sentinel://127.0.0.1:{tls}/svc?timeout_ms=1000",
           "before it answered INFO (a TLS port? write rediss+sentinel://, or "
           "add sentinel_tls=1"),
          ("rediss+sentinel://127.0.0.1:{clear}/svc?cacert={ca}"
           "&timeout_ms=1000",
           "as from a Sentinel's plain port: if it is one, add sentinel_tls=0"),
          ("redis+sentinel://127.0.0.1:{tls}/svc?cacert={ca}&sentinel_tls=1",
           "a TLS port? write rediss+sentinel://;"),
          ("rediss+sentinel://127.0.0.2:{tls}/svc?cacert={ca}",
           "not for 127.0.0.2; if that is the right Sentinel, write a name of "
           "the certificate in the URL"))),
)


class Room(Table):
    def begin_group(self, group):
        self.group, self.primary = group, group.primary
        os.environ["NXLOCK_URL"] = group.url()
        sentinels = group.sentinels
        self.values.update(
            {f"s{i}": f"127.0.0.1:{one.port}"
             for i, one in enumerate(sentinels)},
            primary=f"127.0.0.1:{group.primary.port}",
            one=group.url(sentinels=sentinels[:1]),
            two=group.url(sentinels=sentinels[:2]),
            orders=group.url().replace("/svc?", "/orders?"))

    def nx(self, *words, url=None):
        return nx(self.program, words[0], "-u", url or self.group.url(),
                  *words[1:])

    def grants(self):
        """Whichever two of the Sentinels are heard first."""
        return await_(lambda: all(
            named_ms(each) > NEEDED_MS for each in self.group.sentinels)
        ) and await_(lambda: self.nx(
            "run", "first", "-n", *TTL, "--", "true").returncode == 0)

    # ------------------------------------------------------------- metrics

    def metrics(self):
        folder = self.group.primary.folder
        path = os.path.join(folder, f"{RUN}m.prom")
        naming = sum(one.names() == self.primary.port
                     for one in self.group.sentinels)
        self.nx("run", "m", *TTL, "--metrics", folder, "--", "true")
        _, found = metrics_file.read(path)
        self.equal([found.get(RUN + name) for name in
                   ("sentinels_naming", "unconfirmed", "failovers")],
                  [float(naming), 0.0, 0.0], "the metrics of a run")
        nx(self.program, "run", "m", *TTL, "--metrics", folder, "-u",
           self.group.primary.url, "--", "true")
        _, found = metrics_file.read(path)
        self.check(not [name for name in found
                   if "sentinels" in name or "unconfirmed" in name],
              "and of one without Sentinels", found)
        # One that has just started, and tells two histories, may have read
        # them from a file.
        self.check(self.group.are_older(12), "all are old enough")
        # A lease that ended within 3 s of the failover would be lost.
        process = subprocess.Popen(
            [self.program, "run", "-v", "m", "--ttl", "6s", "--metrics", folder,
             "-u", self.group.url("max_ttl_ms=6000"), "--", "sleep", "6"],
            stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.check(await_(lambda: self.group.primary.cli("EXISTS", "m") ==
                          b"1\n"), "it holds")
        self.primary = self.group.fail_over()
        self.check(self.primary, "another primary is named")
        said = process.communicate(timeout=60)[1]
        self.equal(process.returncode, 0, "the lock outlives the failover")
        _, found = metrics_file.read(path)
        self.check(found.get(RUN + "failovers") == 1.0 and
                   found.get(RUN + "sentinels_naming", 0) >= 2 and
                   RUN + "unconfirmed" in found,
                   "which is counted", f"{found}\n{said.decode()}")
        self.values["primary"] = f"127.0.0.1:{self.primary.port}"

    def unconfirmed(self):
        """A lock that is renewed, without a majority: it is lost in time, and
        what was asked of the primary is counted."""
        folder = self.group.primary.folder
        url = self.group.url("max_ttl_ms=5000&timeout_ms=1000")
        process = subprocess.Popen(
            [self.program, "run", "u", "--ttl", "5s", "--metrics", folder,
             "-u", url, "--", "sleep", "60"],
            stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.check(await_(lambda: self.primary.cli("EXISTS", "u") == b"1\n"),
                   "it holds")
        for one in self.group.sentinels[1:]:
            one.freeze()
        said = process.communicate(timeout=60)[1]
        self.equal(process.returncode, 79, "the lock is lost")
        self.check(b"2 of 3 Sentinels must name the same primary, and only 1 "
                   b"does; " in said, "and it is said why", said.decode())
        _, found = metrics_file.read(os.path.join(folder, f"{RUN}u.prom"))
        self.check(found.get(RUN + "unconfirmed", 0) >= 1 and
                   found.get(RUN + "sentinels_naming") == 1.0, "and counted",
                   found)
        for one in self.group.sentinels[1:]:
            one.thaw()

    def rights(self):
        """What docs/acl.md says that the user of the Sentinels needs."""
        page = pathlib.Path(__file__).parents[2] / "docs/acl.md"
        least = re.search(r"^    ACL SETUSER watcher (\+info .*)$",
                          page.read_text("utf-8"), re.M)[1].split()
        self.equal(len(least), 4, "docs/acl.md has a line for Sentinels")
        for lacks in (None, *least[:3]):
            for one in self.group.sentinels:
                one.cli("ACL", "SETUSER", "watcher", "reset", "on", ">pw",
                        *(right for right in least if right != lacks))
            if lacks is None:
                self.row(f"{WATCHER}pw doctor", 0, ("ok", "lock", "released"))
                continue
            self.rows(
                (f"{WATCHER}pw doctor", 77, (
                    "FAIL", "(reach|lock)", f"{re.escape(lacks[1:])}.*at each "
                    "Sentinel, allow")),
                (f"{WATCHER}pw {RUN_R}", 77, "NOPERM",
                 "at each Sentinel, allow", "+info"))
        self.rows(*WRONG_PASSWORD)

    def monitor(self, server):
        """The last Sentinel is told of this one anew, and of a stranger for
        good, although the others tell it of the primary."""
        last = self.group.sentinels[2]
        last.cli("ACL", "SETUSER", "default",
                 ("+" if server is self.primary else "-") + "publish")
        last.cli("SENTINEL", "REMOVE", "svc")
        last.cli("SENTINEL", "MONITOR", "svc", "127.0.0.1", str(server.port),
                 "2")

    def agree(self):
        self.monitor(self.primary)
        self.check(self.group.know_each_other(), "they agree again")

    def fewer(self):
        for number, rows in (1, ONE_DOWN), (2, TWO_DOWN):
            self.group.sentinels[number].freeze()
            self.rows(*rows)
        for one in self.group.sentinels[1:]:
            one.thaw()

    def replica_named(self):
        self.primary.cli("FAILOVER")
        self.check(await_(lambda: b"role:slave" in self.primary.cli(
            "INFO", "replication")), "it becomes a replica")
        self.rows(*REPLICA_NAMED)


def one_sentinel(room):
    """Alone, and its primary is gone."""
    with Group(replicas=0, sentinels=1, quorum=1) as group:
        room.check(group.know_each_other(), "one Sentinel")
        group.primary.process.kill()
        room.check(await_(lambda: b"s_down" in group.sentinels[0].cli(
            "SENTINEL", "MASTER", "svc")), "its primary is down")
        room.row(f"doctor -u {group.url()}", 69,
                 ("FAIL", "reach", "replica-announce-ip"))


def by_tls(room):
    """The Sentinel and the server, or the server alone."""
    if not os.environ.get("NXLOCK_TEST_CERTS"):
        print("# left out: TLS; built without OpenSSL")
        return
    port = free_port()
    with TlsServer() as server, Sentinel(
            "bind 127.0.0.1 127.0.0.2", f"tls-port {port}",
            "tls-auth-clients no", "tls-replication yes",
            f"tls-cert-file {server.file('server.pem')}",
            f"tls-key-file {server.file('server.key')}",
            f"tls-ca-cert-file {server.file('ca.pem')}",
            f"sentinel monitor svc 127.0.0.1 {server.port} 1") as sentinel:
        room.values.update(tls=str(port), clear=str(sentinel.port),
                           server=f"127.0.0.1:{server.port}",
                           ca=server.file("ca.pem"))
        room.rows(*BY_TLS)


def in_clear(room):
    """The password of the Sentinels, on the way to another machine."""
    elsewhere = ["unshare", "-rn", "sh", "-c",
                 "ip link set lo up && ip addr add 10.1.2.3/32 dev lo && "
                 'exec "$@"', "sh"]
    if nx(*elsewhere, "true").returncode != 0:
        print("# left out: a password without TLS: no unshare -rn, or ip")
        return
    with tempfile.TemporaryDirectory() as folder:
        port = free_port()
        for name, text in (("password", "Zqx7Wvk9"), ("conf", "\n".join((
                f"port {port}", "bind 10.1.2.3", "protected-mode no",
                f"unixsocket {folder}/s", f"dir {folder}",
                "user app on >Zqx7Wvk9 +info +sentinel",
                "sentinel monitor svc 10.1.2.3 1 1", "")))):
            with open(f"{folder}/{name}", "w", encoding="ascii") as file:
                file.write(text)
            os.chmod(f"{folder}/{name}", 0o600)
        script = (
            f'setpriv --pdeathsig KILL "$1" {folder}/conf --sentinel '
            "> /dev/null & "
            f"until redis-cli -s {folder}/s PING > /dev/null 2>&1; do "
            'sleep 0.02; done; "$2" doctor -u redis+sentinel://10.1.2.3:'
            f"{port}/svc'?sentinel_user=app&sentinel_password_file="
            f"{folder}/password'; kill $!")
        program = os.environ.get("NXLOCK_REDIS_SERVER") or "redis-server"
        done = nx(*elsewhere, "sh", "-c", script, "sh", program,
                  os.path.abspath(room.program))
        out = done.stdout.decode()
        room.check(room.finds(
            out, "WARN", f"10.1.2.3:{port} password", "to another machine "
            r"without TLS: .*Remedy: write rediss\+sentinel://"),
            "doctor finds a password without TLS", out)


HOST = "127.0.0.5"  # not the address from which the servers connect


@contextlib.contextmanager
def containers():
    """The commands of the compose file, without containers: an address and
    ports of the loopback interface. Gives the ports by their names."""
    page = pathlib.Path(__file__).parents[2] / (
        "docs/examples/sentinel/compose.yaml")
    text = page.read_text("utf-8").replace("${HOST:?}", HOST)
    ports = {}
    for name, port in re.findall(r'^  (\w+):\n(?:    .*\n)*?    ports: '
                                 r'\["(\d+):\2"\]$', text, re.M):
        ports[name] = str(free_port())
        text = re.sub(rf"\b{port}\b", ports[name], text)
    with tempfile.TemporaryDirectory() as folder, \
            contextlib.ExitStack() as stack:
        for name, command in re.findall(
                r'^  (\w+):\n    <<: \*server\n    command: sh -c "(.*)"$',
                text, re.M):
            os.mkdir(f"{folder}/{name}")
            command = command.replace("/data/", f"{folder}/{name}/").replace(
                "; exec ", "; exec setpriv --pdeathsig KILL ")
            process = subprocess.Popen(
                ["sh", "-c", f"{command} --bind 127.0.0.1 {HOST} --dir "
                 f"{folder}/{name}"], stdout=subprocess.DEVNULL)
            stack.callback(process.wait)
            stack.callback(process.kill)
        yield ports


def compose(room):
    with containers() as ports:
        room.equal(sorted(ports), [
            "redis1", "redis2", "redis3", "sentinel1", "sentinel2",
            "sentinel3"], "the compose file")
        url = "redis+sentinel://" + ",".join(
            f"{HOST}:{port}" for name, port in sorted(ports.items())
            if name.startswith("sentinel")) + "/mymaster?max_ttl_ms=1000"

        def finds(words):
            return words in nx(room.program, "doctor", "-u",
                               url).stdout.decode()

        room.check(await_(lambda: finds("named by 3 of 3 Sentinels")),
                   "they agree")

        def known(where, what):
            """The addresses of the others, as a Sentinel says them."""
            said = nx("redis-cli", "-h", HOST, "-p", ports["sentinel1"],
                      "SENTINEL", what, "mymaster").stdout.decode().split()
            return {(said[i + 1], said[i + 3]) for i in range(len(said) - 3)
                    if said[i] == "ip" and said[i + 2] == "port"} == {
                        (HOST, ports[name]) for name in where}

        room.check(await_(lambda: known(("sentinel2", "sentinel3"),
                                        "SENTINELS")),
                   "they announce the address, the Sentinels")
        room.check(await_(lambda: known(("redis2", "redis3"), "REPLICAS")),
                   "and the replicas")


def three(room):
    with Group() as group, Data() as stranger:
        room.begin_group(group)
        room.check(group.know_each_other(), "they know each other")
        room.check(room.grants(), "the primary is old enough")
        room.values.update(replica=f"127.0.0.1:{group.replicas[0].port}",
                           stranger=str(stranger.port))
        room.rows(*FIRST)
        room.rights()
        room.monitor(stranger)
        room.rows(*APART)
        room.metrics()
        room.agree()
        room.rows(*SHOWN)
        # A Sentinel that was stopped takes part in no failover for 30 s.
        for act in (room.fewer, room.unconfirmed, room.replica_named):
            act()


if __name__ == "__main__":
    sys.exit(play(Room, three, one_sentinel, compose, by_tls, in_clear))
