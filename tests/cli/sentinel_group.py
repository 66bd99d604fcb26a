# SPDX-License-Identifier: MIT
"""A primary, its replicas and the Sentinels that watch them: real servers on
private ports, which end with the group."""

import contextlib
import re

from rig import Server, await_, free_port
from servers import SentinelMixin

SERVICE = "svc"


class Data(Server):
    """The primary or a replica, at a port too."""

    def __init__(self, *options):
        self.port = free_port()
        super().__init__("--port", str(self.port), "--bind", "127.0.0.1",
                         "--repl-diskless-sync-delay", "0", *options)


class Sentinel(SentinelMixin, Server):
    def __init__(self, *lines):
        self.port = free_port()
        self.lines = (f"port {self.port}", "bind 127.0.0.1", *lines)
        super().__init__()

    def names(self):
        """The port of the primary that it names; 0: none."""
        said = self.cli("SENTINEL", "GET-MASTER-ADDR-BY-NAME",
                        SERVICE).split()
        return int(said[1]) if len(said) == 2 else 0


class Group(contextlib.ExitStack):
    """lines: more for the file of each Sentinel."""

    def __init__(self, replicas=1, sentinels=3, quorum=2, lines=()):
        super().__init__()
        self.primary = self.enter_context(Data())
        self.replicas = [
            self.enter_context(Data("--replicaof", "127.0.0.1",
                                    str(self.primary.port)))
            for _ in range(replicas)]
        self.sentinels = [self.enter_context(Sentinel(
            f"sentinel monitor {SERVICE} 127.0.0.1 {self.primary.port} "
            f"{quorum}",
            f"sentinel down-after-milliseconds {SERVICE} 1000",
            f"sentinel failover-timeout {SERVICE} 4000", *lines))
                          for _ in range(sentinels)]

    def know_each_other(self):
        """Each Sentinel the replicas and the other Sentinels."""
        counts = (f"slaves={len(self.replicas)},"
                  f"sentinels={len(self.sentinels)}").encode()
        return await_(lambda: all(counts in one.cli("INFO", "sentinel")
                                  for one in self.sentinels))

    def are_older(self, seconds):
        """The primary and its replicas have been up for longer than that."""
        def uptime(server):
            found = re.search(rb"uptime_in_seconds:(\d+)",
                              server.cli("INFO", "server"))
            return int(found[1]) if found else 0
        return await_(lambda: min(map(uptime, (
            self.primary, *self.replicas))) > seconds)

    def server(self, port):
        """The one at this port."""
        return next(one for one in (self.primary, *self.replicas)
                    if one.port == port)

    def most_name(self, port):
        naming = sum(one.names() == port for one in self.sentinels)
        return 2 * naming > len(self.sentinels)

    def fail_over(self):
        """SENTINEL FAILOVER, until most name another primary, which is
        returned; None: none was named in time."""
        former = self.sentinels[0].names()
        if not await_(lambda: self.sentinels[0].cli(
                "SENTINEL", "FAILOVER", SERVICE) == b"OK\n"):
            return None
        if not await_(lambda: any(self.most_name(one.port) for one in
                                  (self.primary, *self.replicas)
                                  if one.port != former)):
            return None
        return self.server(next(one.port for one in
                                (self.primary, *self.replicas)
                                if self.most_name(one.port)))

    def url(self, query="max_ttl_ms=3000", sentinels=None):
        hosts = ",".join(f"127.0.0.1:{one.port}"
                         for one in sentinels or self.sentinels)
        return f"redis+sentinel://{hosts}/{SERVICE}?{query}"
