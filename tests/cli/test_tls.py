#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_tls.py NXLOCK: TLS as the command shows it, against real servers.

Options, what a nested nxlock inherits, every way in which a handshake fails
with its words and exit code, and what doctor finds. table.py describes the
rows.
"""

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import threading

from rig import TlsServer, free_port, nx, play
from table import Table, part

SECONDS = 10  # for a command with a time-out of 1 s, on a slow machine
TRUST = "-u {tls} --cacert {d}/ca.pem"
# With parameters behind it.
TRUST_WITH = "--cacert {d}/ca.pem -u {tls}"
OTHER_CA = "/etc/ssl/certs/ca-certificates.crt"


@contextlib.contextmanager
def peer(answer):
    """A peer at a port, which says answer to each that connects."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        def serve():
            with contextlib.suppress(OSError):
                while True:
                    one = listener.accept()[0]
                    with one, contextlib.suppress(OSError):
                        one.recv(4096)
                        one.sendall(answer)
        threading.Thread(target=serve, daemon=True).start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)


def refused(code, words, *said):
    """By status, and by run, which starts nothing."""
    return ((f"status x {words}", code, *said),
            (f"run x -n {words} -- touch {{started}}", code, *said))


OPTIONS = (
    (f"status x {TRUST}", 1, "x free"),
    ("status x --cacert {d}/ca.pem -u valkeys://{at}", 1),
    ("status x -u {tls} --insecure", 1),
    (f"status x {TRUST_WITH}?verify=ca&tls_min=1.3&tls_ciphers=ECDHE%2BAESGCM"
     "&tls_ciphersuites=TLS_AES_128_GCM_SHA256", 1),
    (f"status x {TRUST_WITH}?sni=localhost", 1),
    (f"status x -v {TRUST}", 1, "TLSv1.3"),
    # An option reaches every URL.
    (f"status x -u {{tls}} -u rediss://localhost:{{port}} --cacert {OTHER_CA}",
     69, "{at}/0, rediss://localhost", "does not know"),
)
COMBINATIONS = (
    *refused(78, "-u redis://app:s3cret@{at}/3 --cacert {d}/ca.pem",
             "-u with --cacert: cacert is for TLS", "write rediss://"),
    ("status x -u {tls} -u redis://127.0.0.1:1?timeout_ms=500 --insecure", 78,
     "--insecure: URL 2 of 2: ", "for TLS", "!timeout_ms"),
    ("NXLOCK_URL= status x --insecure", 78,
     "the default URL with --insecure: ", "for TLS"),
    *refused(78, "-u {tls} --cacert {d}/none --prefix p:",
             "-u with --cacert: ", "cacert={d}/none", "No such file"),
    ("status x -u {tls}?cacert={d}/none", 78, "-u: cacert"),
    ("write garbage", "no certificate\n"),
    ("status x -u {tls} --cacert {d}/garbage", 78, "cacert="),
    *refused(78, TRUST_WITH + "?cert={d}/client.pem",
             "cert is given without key"),
    (f"status x {TRUST_WITH}?cert={{d}}/client.pem&key={{d}}/server.key", 78,
     "does not belong"),
    (f"status x {TRUST} --insecure", 78, "-u with --cacert and --insecure: ",
     "verify=none", "remove one"),
    ("status x --insecure --insecure", 64, "--insecure is given twice"),
    ("status x -u {tls}?verify=ca --insecure", 78, "-u with --insecure: ",
     "verify"),
    ("status x -u {tls}?verify=no", 78, "must be full, ca or none"),
    *((f"status x {option}", 64, "write rediss:// instead of redis://")
      for option in ("--tls", "--tls=yes")),
)
# An nxlock inside has the options, from any folder.
INSIDE = " -c 'cd / && exec {nx} status x'"
NESTED = (
    *((f"run x -u {{tls}} {words}{INSIDE}", 0, "~x held by .*")
      for words in ("--cacert ca.pem", "--insecure")),
    ("write urls", "{tls}?sni=localhost\n"),
    *((f"run x --url-file {{d}}/urls --cacert ca.pem{words}{INSIDE}", 0,
       "~x held by .*") for words in ("", " --pass-url")),
)
# Certificates of the server, and what is said of them.
WRONG = (
    ("expired", "expired on", "renew it at the server"),
    ("not-yet-valid", "is valid from", "clock"),
    ("wrong-host", "elsewhere.example", "not for 127.0.0.1", "sni=",
     "redis-cli does not check names"),
    ("name-only", "localhost", "not for 127.0.0.1", "sni="),
    ("foreign", "is signed by", "does not know", "{d}/ca.pem", "cacert="),
    ("self-signed", "self-signed", "cacert="),
    ("unchained", "is signed by", "does not know"),
)
RIGHT = (("name-only", "?sni=localhost"), ("wrong-host", "?verify=ca"),
         ("chained", ""))
VERSIONS = (
    ("db CONFIG SET tls-protocols TLSv1.2", "OK"),
    *refused(69, TRUST_WITH + "?tls_min=1.3", "no TLS version in common",
             "tls_min"),
    (f"status x {TRUST}", 1),
    *refused(69, TRUST_WITH + "?tls_ciphers=AES256-SHA256", "cipher"),
    ("db CONFIG SET tls-protocols ''", "OK"),
)


def client(name):
    return TRUST_WITH + f"?cert={{d}}/{name}.pem&key={{d}}/{name}.key"


CLIENTS = (
    ("db CONFIG SET tls-auth-clients yes", "OK"),
    *(row for version in ("TLSv1.3", "TLSv1.2") for row in (
        (f"db CONFIG SET tls-protocols {version}", "OK"),
        *refused(77, TRUST, "requires a client certificate"),
        *refused(77, client("foreign-client"),
                 "does not accept the client certificate"),
        (f"status x {client('client')}", 1))),
    (f"status x {client('locked-client')}", 78, "key="),
    ("write word", "open sesame\n"),
    (f"status x {client('locked-client')}&key_password_file={{d}}/word", 1),
    (f"run x {client('locked-client')}&key_password_file={{d}}/word -- {{nx}} "
     "status x", 0),
    ("db CONFIG SET tls-protocols ''", "OK"),
    ("db CONFIG SET tls-auth-clients no", "OK"),
)
FINDINGS = (
    (f"doctor {TRUST}", 0, ("ok", "server", "TLSv1.3")),
    (f"doctor {TRUST_WITH}?verify=ca", 1,
     ("WARN", "tls", "verify=ca.*Remedy: remove verify")),
    ("doctor -u {tls} --insecure", 1,
     ("WARN", "tls", "verify=none.*Remedy: remove verify")),
    ("doctor -u {tls} --cacert {d}/none", 78, ("FAIL", "url", "No such file")),
    (f"doctor --json {TRUST_WITH}?cert={{d}}/client.pem", 78,
     '"level":"FAIL","what":"url"'),
)


class Room(Table):
    def __init__(self, nxlock, server):
        super().__init__(nxlock, server)
        os.chdir(server.folder)
        os.umask(0o077)  # a file with a secret is not for others
        at = f"127.0.0.1:{server.port}"
        self.values.update(at=at, tls=f"rediss://{at}", port=str(server.port))
        server.make("foreign-client", "locked-client")

    def cacertdir(self):
        if not shutil.which("openssl"):
            return
        os.mkdir(self.path("hashed"))
        name = subprocess.run(
            ["openssl", "x509", "-hash", "-noout", "-in", self.path("ca.pem")],
            capture_output=True, check=True, timeout=60).stdout.decode()
        shutil.copy(self.path("ca.pem"),
                    self.path(f"hashed/{name.strip()}.0"))
        self.row("status x -u {tls}?cacertdir={d}/hashed", 1)

    def certificates(self):
        for name, *said in WRONG:
            self.check(self.server.present(name), f"the server has {name}")
            self.rows(*refused(69, TRUST, *said))
            if name == "expired":
                self.row(f"doctor {TRUST}", 69, ("FAIL", "reach", "expired on"))
        for name, query in RIGHT:
            self.check(self.server.present(name), f"the server has {name}")
            self.row(f"status x {TRUST_WITH}{query}", 1)
        self.server.present("server")
        self.rows(*refused(69, "-u {tls}", "which the system does not know",
                           "cacert="))

    def peers(self):
        port = str(free_port())
        self.row(f"db CONFIG SET port {port}", "OK")
        for host in "127.0.0.1", "localhost":  # and [::1], which refuses
            self.rows(*refused(
                69, f"-u rediss://{host}:{port}?timeout_ms=1000 --cacert "
                "{d}/ca.pem", "no answer to the TLS handshake",
                "a plain Redis port", "write redis://", SECONDS))
        self.row("db CONFIG SET port 0", "OK")
        with peer(b"HTTP/1.1 400 Bad Request\r\n\r\n") as at:
            self.rows(*refused(
                69, f"-u rediss://127.0.0.1:{at}?timeout_ms=1000 --insecure",
                "does not speak TLS", "redis://"))
        self.rows(*refused(69, "-u redis://{at}?timeout_ms=1000", "rediss://"))

    def passwords(self):
        """On the way to another machine."""
        elsewhere = ["unshare", "-rn", "sh", "-c",
                     "ip link set lo up && ip addr add 10.1.2.3/32 dev lo && "
                     'exec "$@"', "sh"]
        if nx(*elsewhere, "true").returncode != 0:
            print("# left out: a password without TLS: no unshare -rn, or ip")
            return
        port, path = free_port(), self.path("elsewhere")
        script = (
            f'setpriv --pdeathsig KILL "$1" --port {port} --bind 10.1.2.3 '
            f'--save "" --unixsocket {path} --protected-mode no --appendonly '
            f"yes --appendfsync always --dir {self.server.folder} --daemonize "
            f"no > /dev/null & until redis-cli -s {path} PING > /dev/null 2>&1;"
            f" do sleep 0.02; done; redis-cli -s {path} ACL SETUSER app on "
            f"'>Zqx7Wvk9' '~*' +@all > /dev/null; \"$2\" doctor -u "
            f"redis://app@10.1.2.3:{port}?max_ttl_ms=20; kill $!")
        done = nx(*elsewhere, "sh", "-c", script, "sh", self.server.program,
                  self.program,
                  env={**os.environ, "NXLOCK_PASSWORD": "Zqx7Wvk9"})
        out = done.stdout.decode()
        self.check(self.finds(out, "WARN", "password", "sent to another machine"
                              " without TLS.*Remedy: write rediss://"),
                   "doctor finds a password without TLS", out)


if __name__ == "__main__":
    # It keeps all locks, so doctor finds nothing else.
    sys.exit(play(
        Room, part("options", OPTIONS), Room.cacertdir,
        part("combinations", COMBINATIONS), part("nested", NESTED),
        Room.certificates, part("versions", VERSIONS),
        part("clients", CLIENTS), Room.peers, part("findings", FINDINGS),
        Room.passwords, server=TlsServer,
        options=("--appendonly", "yes", "--appendfsync", "always")))
