#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_sentinels.py NXLOCK: what the command says of a primary that Sentinels
name: status, the metrics and doctor."""

import contextlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import metrics_file
from rig import Cases, TlsServer, await_, free_port, nx, play
from sentinel_group import SERVICE, Data, Group, Sentinel

RUN = "nxlock_last_run_"
TTL = ("--ttl", "3s")
NEEDED_MS = 7500  # a primary of max_ttl_ms=3000 grants no lock before 6 s


def named_ms(sentinel):
    """For how long the Sentinel has known its primary as one."""
    lines = sentinel.cli("SENTINEL", "MASTER", SERVICE).split()
    return int(lines[lines.index(b"role-reported-time") + 1])


class Room(Cases):
    def begin_group(self, group):
        self.group, self.primary = group, group.primary
        os.environ["NXLOCK_URL"] = group.primary.url

    def nx(self, *words, url=None):
        return nx(self.program, words[0], "-u", url or self.group.url(),
                  *words[1:])

    def grants(self):
        """Whichever two of the Sentinels are heard first."""
        return await_(lambda: all(
            named_ms(each) > NEEDED_MS for each in self.group.sentinels)
        ) and await_(lambda: self.nx(
            "run", "first", "-n", *TTL, "--", "true").returncode == 0)

    # -------------------------------------------------------------- status

    def status(self):
        done = self.nx("status", "name", "-v")
        self.check(re.search(
            rb"server: redis://127\.0\.0\.1:%d/0, connected, .*, role primary, "
            rb"named by 3 of 3 Sentinels [0-9.]+m?s ago"
            % self.primary.port, done.stdout),
                   "status -v says who names the server", done)
        done = self.nx("status", "name", "--json")
        self.check(", named by 3 of 3 Sentinels" in
                   json.loads(done.stdout)["server"], "so does --json", done)
        self.group.sentinels[2].freeze()
        done = self.nx("status", "name", "-v")
        self.check(b", named by 2 of 3 Sentinels" in done.stdout,
                   "one does not answer", done)
        self.group.sentinels[2].thaw()
        done = self.nx("status", "name", "-v", url=self.group.primary.url)
        self.check(b"entinel" not in done.stdout,
                   "nothing is said of Sentinels without them", done)

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


    # -------------------------------------------------------------- doctor

    def doctor(self, *words, url=None):
        done = self.nx("doctor", *words, url=url)
        return done.returncode, done.stdout.decode()

    def finds(self, name, out, level, what, words):
        self.check(re.search(rf"^{level} .*\b{what}: .*{words}", out, re.M),
                   f"doctor: {name}", out)

    def lacks(self, name, out, words):
        self.check(not re.search(words, out), f"doctor: {name}", out)

    def at(self, number):
        return f"127.0.0.1:{self.group.sentinels[number].port}"

    def healthy(self):
        primary = f"127.0.0.1:{self.group.primary.port}"
        code, out = self.doctor()
        self.equal(code, 0, "nothing is wrong")
        for i in range(3):
            self.finds(f"Sentinel {i}", out, "ok", f"{self.at(i)} sentinel",
                       primary)
        self.finds("who names it", out, "ok", "server",
                   "named by 3 of 3 Sentinels")
        self.lacks("nothing else is said", out, "cut off: |sentinels: |clock: ")

    def one_is_down(self):
        self.group.sentinels[1].freeze()
        code, out = self.doctor(url=self.group.url(
            "max_ttl_ms=3000&timeout_ms=2000"))
        self.finds("one does not answer", out, "WARN",
                   f"{self.at(1)} sentinel", "does not count")
        self.equal(code, 1, "a warning")
        self.group.sentinels[2].freeze()
        code, out = self.doctor(url=self.group.url(
            "max_ttl_ms=3000&timeout_ms=2000"))
        self.finds("two do not answer", out, "FAIL", "reach|lock",
                   "2 of 3 Sentinels")
        self.equal(code, 69, "no lock is granted")
        self.thaw()

    def thaw(self):
        for one in self.group.sentinels[1:]:
            one.thaw()

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
        self.thaw()

    def listed(self):
        """Not all of them."""
        both = self.group.sentinels[:2]
        code, out = self.doctor(url=self.group.url(sentinels=both))
        self.finds("two of three are listed", out, "WARN", "sentinels",
                   f"2 of 3, by {self.at(0)}, {self.at(1)}\\. "
                   "Remedy: .*announce-ip")
        self.equal(out.count(" sentinels: "), 1, "which is said once")
        self.equal(code, 1, "they are a majority")
        code, out = self.doctor(url=self.group.url(sentinels=both[:1]))
        self.finds("one of three is", out, "WARN", "sentinels", "1 of 3")
        self.finds("which is no majority", out, "FAIL", "reach|lock", "")
        self.equal(code, 78, "so the URL is wrong")
        code, out = self.doctor(
            url=self.group.url().replace("/svc?", "/orders?"))
        self.finds("the service is unknown", out, "WARN", "sentinel", "")
        self.equal(code, 78, "so the URL is wrong")

    def rights(self):
        """What docs/acl.md says that the user of the Sentinels needs."""
        page = pathlib.Path(__file__).parents[2] / "docs/acl.md"
        least = re.search(r"^    ACL SETUSER watcher (\+info .*)$",
                          page.read_text("utf-8"), re.M)[1].split()
        self.equal(len(least), 4, "docs/acl.md has a line for Sentinels")
        for one in self.group.sentinels:
            one.cli("ACL", "SETUSER", "watcher", "reset", "on", ">pw", *least)
        login = "max_ttl_ms=3000&sentinel_user=watcher&sentinel_password=pw"
        code, out = self.doctor(url=self.group.url(login))
        self.lacks("the least rights are enough", out, "WARN|FAIL")
        self.finds("for locks, too", out, "ok", "lock", "released")
        for lacks in least[:3]:
            for one in self.group.sentinels:
                one.cli("ACL", "SETUSER", "watcher", "reset", "on", ">pw",
                        *(right for right in least if right != lacks))
            code, out = self.doctor(url=self.group.url(login))
            self.finds(f"without {lacks}", out, "FAIL", "reach|lock",
                       f"{re.escape(lacks[1:])}.*at each Sentinel, allow")
            self.equal(code, 77, "no lock is granted")
            self.refused("run says which rights", login,
                         b"NOPERM", b"at each Sentinel, allow", b"+info")
        login = "max_ttl_ms=3000&sentinel_user=watcher&sentinel_password="
        self.refused("a wrong password", login + "other", b"WRONGPASS",
                     b"set sentinel_user and sentinel_password_file")
        _, out = self.doctor(url=self.group.url(login + "other"))
        self.finds("doctor names who refuses", out, "WARN",
                   f"{self.at(2)} sentinel", "does not count: WRONGPASS")
        self.finds("doctor says whose password", out, "FAIL", "reach",
                   "WRONGPASS.*sentinel_user and sentinel_password_file")

    def refused(self, name, query, *words):
        done = self.nx("run", "r", "-n", *TTL, "--", "true",
                       url=self.group.url(query))
        self.check(done.returncode == 77 and
                   all(word in done.stderr for word in words), name, done)

    def watched(self):
        def url(server):
            return f"redis://127.0.0.1:{server.port}?max_ttl_ms=3000"

        plain = url(self.group.primary)
        for server, wanted in ((self.group.primary, 1),
                               (self.group.replicas[0], 69)):
            code, out = self.doctor(url=url(server))
            self.finds(f"a URL without Sentinels, {wanted}", out, "WARN",
                       "sentinels", "does not follow the primary in a failover"
                       r".*Remedy: write redis\+sentinel://")
            self.equal(code, wanted, "a warning, and a replica fails")
        _, out = self.doctor(url=plain + "&guard_failover=on")
        self.lacks("with the guard it is none", out, " sentinels: ")

    def once(self):
        code, out = self.doctor("--once")
        self.finds("records", out, "FAIL", "once", "wait_replicas")
        self.equal(code, 78, "the URL does not suit them")

    def monitor(self, server):
        """The last Sentinel is told of this one anew, and of a stranger for
        good, although the others tell it of the primary."""
        last = self.group.sentinels[2]
        last.cli("ACL", "SETUSER", "default",
                 ("+" if server is self.primary else "-") + "publish")
        last.cli("SENTINEL", "REMOVE", "svc")
        last.cli("SENTINEL", "MONITOR", "svc", "127.0.0.1", str(server.port),
                 "2")

    def apart(self, stranger):
        """One of them monitors another server."""
        self.monitor(stranger)
        code, out = self.doctor()
        self.finds("they disagree", out, "WARN", f"{self.at(2)} sentinel",
                   f"{stranger.port}, not redis://127.0.0.1:"
                   f"{self.primary.port}/"
                   ".*Remedy: .*SENTINEL REMOVE")
        self.finds("a majority agrees", out, "ok", "lock", "")
        self.equal(code, 1, "is a warning")

    def agree(self):
        self.monitor(self.primary)
        self.check(self.group.know_each_other(), "they agree again")

    def replica_named(self):
        """FAILOVER instead of SENTINEL FAILOVER."""
        self.primary.cli("FAILOVER")
        self.check(await_(lambda: b"role:slave" in self.primary.cli(
            "INFO", "replication")), "it becomes a replica")
        code, out = self.doctor()
        self.finds("they name a replica", out, "FAIL", "lock",
                   "do not send FAILOVER to a server")
        self.equal(code, 69, "no lock is granted")
        done = self.nx("run", "r", "-n", *TTL, "--", "true")
        self.check(b"do not send FAILOVER to a server that" in done.stderr,
                   "run says that, too", done)


def one_sentinel(room):
    """Alone, and its primary is gone."""
    with Group(replicas=0, sentinels=1, quorum=1) as group:
        room.group = group
        room.check(group.know_each_other(), "one Sentinel")
        group.primary.process.kill()
        room.check(await_(lambda: b"s_down" in group.sentinels[0].cli(
            "SENTINEL", "MASTER", "svc")), "its primary is down")
        code, out = room.doctor()
        room.finds("it is not reached", out, "FAIL", "reach",
                   "replica-announce-ip")
        room.equal(code, 69, "no lock is granted")


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
        query = f"svc?max_ttl_ms=1000&cacert={server.file('ca.pem')}"
        for what, at, more in (
                ("both", port, ""),
                ("the server alone", sentinel.port, "&sentinel_tls=0")):
            _, out = room.doctor(
                url=f"rediss+sentinel://127.0.0.1:{at}/{query}{more}")
            room.finds(f"TLS of {what}", out, "ok", f"127.0.0.1:{at} sentinel",
                       f"127.0.0.1:{server.port}")
            room.finds("the server", out, "(ok|note)", "server",
                       f"rediss://127.0.0.1:{server.port}/0, .*TLSv1")
        query = query.replace("max_ttl_ms=1000", "max_ttl_ms=5000")
        for what, url, words in (
                ("a plain URL", f"redis+sentinel://127.0.0.1:{port}/svc",
                 r"before it answered INFO \(a TLS port\? write "
                 r"rediss\+sentinel://, or add sentinel_tls=1"),
                ("a plain port",
                 f"rediss+sentinel://127.0.0.1:{sentinel.port}/{query}"
                 "&timeout_ms=1000", "as from a Sentinel's plain port: if it "
                 "is one, add sentinel_tls=0"),
                ("the server's plain URL",
                 f"redis+sentinel://127.0.0.1:{port}/{query}&sentinel_tls=1",
                 r"a TLS port\? write rediss\+sentinel://;"),
                ("a name that the certificate lacks",
                 f"rediss+sentinel://127.0.0.2:{port}/{query}",
                 "not for 127.0.0.2; if that is the right Sentinel, write a "
                 "name of the certificate in the URL")):
            done = room.nx("run", "r", "-n", "--ttl", "5s", "--", "true",
                           url=url)
            room.check(done.returncode == 69 and
                       re.search(words, done.stderr.decode()), what, done)


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
        room.finds("a password without TLS", done.stdout.decode(), "WARN",
                   f"10.1.2.3:{port} password", "to another machine without "
                   r"TLS: .*Remedy: write rediss\+sentinel://")


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
        for act in (room.healthy, room.listed, room.rights, room.watched,
                    room.once):
            act()
        room.apart(stranger)
        room.metrics()
        room.agree()
        # A Sentinel that was stopped takes part in no failover for 30 s.
        for act in (room.status, room.one_is_down, room.unconfirmed,
                    room.replica_named):
            act()


if __name__ == "__main__":
    sys.exit(play(Room, three, one_sentinel, compose, by_tls, in_clear))
