#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_tls.py NXLOCK: TLS as the command shows it, against real servers.

Options, what a nested nxlock inherits, every way in which a
handshake fails with its words and exit code, and what doctor finds.
"""

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
import urllib.parse

from rig import Cases, TlsServer, free_port, nx, play

SECONDS = 10  # for two commands with a time-out of 1 s, on a slow machine


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


class Room(Cases):
    def __init__(self, nxlock, server):
        super().__init__(nxlock, server)
        self.url = f"rediss://127.0.0.1:{server.port}"
        self.ca = server.file("ca.pem")
        self.trust = self.trusting()
        self.marker = server.file("started")

    def trusting(self, **parameters):
        """The options for the server, with these parameters of its URL."""
        query = urllib.parse.urlencode(parameters, quote_via=urllib.parse.quote)
        return "-u", self.url + "?" * bool(query) + query, "--cacert", self.ca

    def both(self, code, what, *words, says=(), lacks=(), **environ):
        """Both outputs together."""
        got = nx(self.program, *words, env={**os.environ, **environ})
        text = (got.stdout + got.stderr).decode()
        self.begin(
            got.returncode == code and all(one in text for one in says) and
            not any(one in text for one in lacks), what,
            f"{got.returncode}, not {code}: {text}\nwants {says}")
        return text

    def refused(self, code, what, *words, says=(), **environ):
        """status, and run, which starts nothing."""
        self.both(code, what, "status", "x", *words, says=says, **environ)
        self.both(code, f"{what}: run", "run", "x", "-n", *words, "--",
                   "touch", self.marker, says=says, **environ)
        self.check(not os.path.exists(self.marker), "starts nothing")

    # ----------------------------------------------------------------- options

    def options(self):
        s, url = self.server, self.url
        self.both(1, "--cacert", "status", "x", *self.trust,
                   says=("x free",))
        self.both(1, "valkeys://", "status", "x", "--cacert", self.ca,
                   "-u", url.replace("rediss", "valkeys"))
        self.both(1, "--insecure", "status", "x", "-u", url, "--insecure")
        self.both(1, "verify=ca", "status", "x", *self.trusting(
            verify="ca", tls_min="1.3", tls_ciphers="ECDHE+AESGCM",
            tls_ciphersuites="TLS_AES_128_GCM_SHA256"))
        self.both(1, "sni", "status", "x", *self.trusting(sni="localhost"))
        text = self.both(1, "status -v", "status", "x", "-v", *self.trust)
        self.check("TLSv1.3" in text, "which names the version", text)
        folder = s.file("hashed")
        os.mkdir(folder)
        done = shutil.which("openssl") and subprocess.run(
            ["openssl", "x509", "-hash", "-noout", "-in", self.ca],
            capture_output=True, check=True, timeout=60).stdout.decode()
        if done:
            shutil.copy(self.ca, os.path.join(folder, done.strip() + ".0"))
            self.both(1, "cacertdir", "status", "x", "-u",
                       f"{url}?cacertdir={folder}")
        self.both(69, "an option reaches every URL", "status", "x", "-u", url,
                   "-u", f"rediss://localhost:{s.port}", "--cacert",
                   "/etc/ssl/certs/ca-certificates.crt",
                   says=(f"127.0.0.1:{s.port}/0, rediss://localhost",
                         "does not know"))

    def combinations(self):
        s, url = self.server, self.url
        none = s.file("none")
        plain = f"redis://app:s3cret@127.0.0.1:{s.port}/3"
        self.refused(78, "a TLS option without TLS", "-u", plain, "--cacert",
                     self.ca, says=("-u with --cacert: cacert is for TLS",
                                    "write rediss://"))
        self.both(78, "one of several URLs without TLS", "status", "x", "-u",
                   url, "-u", "redis://127.0.0.1:1?timeout_ms=500",
                   "--insecure", says=("--insecure: URL 2 of 2: ", "for TLS"),
                   lacks=("timeout_ms",))
        self.both(78, "no URL", "status", "x", "--insecure", NXLOCK_URL="",
                   says=("the default URL with --insecure: ", "for TLS"))
        self.refused(78, "no such CA file", "-u", url, "--cacert", none,
                     "--prefix", "p:", says=("-u with --cacert: ",
                                             f"cacert={none}", "No such file"))
        self.both(78, "nor in a URL", "status", "x", "-u",
                   f"{url}?cacert={none}", says=("-u: cacert",))
        with open(s.file("garbage"), "w", encoding="ascii") as file:
            file.write("no certificate\n")
        self.both(78, "a file that is none", "status", "x", "-u", url,
                   "--cacert", s.file("garbage"), says=("cacert=",))
        self.refused(78, "cert without key",
                     *self.trusting(cert=s.file("client.pem")),
                     says=("cert is given without key",))
        self.both(78, "a key of another certificate", "status", "x",
                   *self.trusting(cert=s.file("client.pem"),
                                  key=s.file("server.key")),
                   says=("does not belong",))
        self.both(78, "--insecure with a CA", "status", "x", *self.trust,
                   "--insecure", says=("-u with --cacert and --insecure: ",
                                       "verify=none", "remove one"))
        self.both(64, "--insecure twice", "status", "x", "--insecure",
                   "--insecure", says=("--insecure is given twice",))
        self.both(78, "--insecure and verify", "status", "x", "-u",
                   url + "?verify=ca", "--insecure",
                   says=("-u with --insecure: ", "verify"))
        self.both(78, "verify of a wrong kind", "status", "x", "-u",
                   url + "?verify=no", says=("must be full, ca or none",))
        for option in ("--tls", "--tls=yes"):
            self.both(64, option, "status", "x", option,
                       says=("write rediss:// instead of redis://",))

    # -------------------------------------------------------- an nxlock inside

    def nested(self):
        s = self.server
        inner = f"cd / && exec '{self.program}' status x"
        for words in (("--cacert", "ca.pem"), ("--insecure",)):
            got = nx(self.program, "run", "x", "-u", self.url, *words, "-c",
                     inner, cwd=s.folder)
            self.check(
                got.returncode == 0 and b"x held by" in got.stdout,
                f"an nxlock inside has {words[0]}, from any folder", got)
        path = s.file("urls")
        with open(path, "w", encoding="ascii") as file:
            file.write(self.url + "?sni=localhost\n")
        os.chmod(path, 0o600)
        got = nx(self.program, "run", "x", "--url-file", path, "--cacert",
                 "ca.pem", "-c", inner, cwd=s.folder)
        self.check(got.returncode == 0 and b"x held by" in got.stdout,
                   "--url-file and options: both reach it", got)
        got = nx(self.program, "run", "x", "--url-file", path, "--cacert",
                 "ca.pem", "--pass-url", "-c", inner, cwd=s.folder)
        self.equal(got.returncode, 0, "with --pass-url, too")

    # ---------------------------------------------------------------- failures

    def server_certificates(self):
        s, yes = self.server, self.trust
        for name, says in (
                ("expired", ("expired on", "renew it at the server")),
                ("not-yet-valid", ("is valid from", "clock")),
                ("wrong-host", ("elsewhere.example", "not for 127.0.0.1",
                                "sni=", "redis-cli does not check names")),
                ("name-only", ("localhost", "not for 127.0.0.1", "sni=")),
                ("foreign", ("is signed by", "does not know", self.ca,
                             "cacert=")),
                ("self-signed", ("self-signed", "cacert=")),
                ("unchained", ("is signed by", "does not know"))):
            self.check(s.present(name), f"the server has {name}")
            self.refused(69, name, *yes, says=says)
        s.present("server")
        self.refused(69, "a CA that the system does not know", "-u", self.url,
                     says=("which the system does not know", "cacert="))
        for name, parameters in (("name-only", {"sni": "localhost"}),
                                 ("wrong-host", {"verify": "ca"}),
                                 ("chained", {})):
            s.present(name)
            self.both(1, f"{name}, {parameters}", "status", "x",
                       *self.trusting(**parameters))
        s.present("server")

    def versions(self):
        self.server.cli("CONFIG", "SET", "tls-protocols", "TLSv1.2")
        self.refused(69, "a server without TLS 1.3",
                     *self.trusting(tls_min="1.3"),
                     says=("no TLS version in common", "tls_min"))
        self.both(1, "which is no matter without", "status", "x", *self.trust)
        self.refused(69, "no cipher in common",
                     *self.trusting(tls_ciphers="AES256-SHA256"),
                     says=("cipher",))
        self.server.cli("CONFIG", "SET", "tls-protocols", "")

    def clients(self):
        s = self.server
        s.make("foreign-client", "locked-client")
        s.cli("CONFIG", "SET", "tls-auth-clients", "yes")
        for version in ("TLSv1.3", "TLSv1.2"):
            s.cli("CONFIG", "SET", "tls-protocols", version)
            self.refused(77, f"{version}: no client certificate", *self.trust,
                         says=("requires a client certificate",))
            self.refused(77, f"{version}: one that it does not know",
                         *self.trusting(cert=s.file("foreign-client.pem"),
                                        key=s.file("foreign-client.key")),
                         says=("does not accept the client certificate",))
            self.both(1, f"{version}: the right one", "status", "x",
                       *self.trusting(cert=s.file("client.pem"),
                                      key=s.file("client.key")))
        locked = {"cert": s.file("locked-client.pem"),
                  "key": s.file("locked-client.key")}
        self.both(78, "a key with a password", "status", "x",
                   *self.trusting(**locked), says=("key=",))
        with open(s.file("word"), "w", encoding="ascii") as file:
            file.write("open sesame\n")
        os.chmod(s.file("word"), 0o600)
        with_word = self.trusting(**locked, key_password_file=s.file("word"))
        self.both(1, "key_password_file", "status", "x", *with_word)
        got = nx(self.program, "run", "x", *with_word, "--", self.program,
                 "status", "x")
        self.equal(got.returncode, 0, "an nxlock inside has all of it")
        s.cli("CONFIG", "SET", "tls-protocols", "")
        s.cli("CONFIG", "SET", "tls-auth-clients", "no")

    def peers(self):
        s = self.server
        brief = "?timeout_ms=1000"
        port = free_port()
        s.cli("CONFIG", "SET", "port", str(port))
        for host in "127.0.0.1", "localhost":  # and [::1], which refuses
            begin = time.monotonic()
            self.refused(69, f"the plain port of a real server on {host}",
                         "-u", f"rediss://{host}:{port}{brief}", "--cacert",
                         self.ca, says=("no answer to the TLS handshake",
                                        "a plain Redis port",
                                        "write redis://"))
            took = time.monotonic() - begin
            self.check(took < SECONDS, "within the time-out", took)
        s.cli("CONFIG", "SET", "port", "0")
        with peer(b"HTTP/1.1 400 Bad Request\r\n\r\n") as at:
            self.refused(69, "a peer that answers without TLS", "-u",
                         f"rediss://127.0.0.1:{at}{brief}", "--insecure",
                         says=("does not speak TLS", "redis://"))
        self.refused(69, "redis:// to a port of TLS", "-u",
                     f"redis://127.0.0.1:{s.port}{brief}", says=("rediss://",))

    # ------------------------------------------------------------------ doctor

    def doctor(self, code, *words, **environ):
        got = nx(self.program, "doctor", *words,
                 env={**os.environ, **environ})
        self.equal(got.returncode, code, f"doctor, {code}")
        return got.stdout.decode()

    def findings(self):
        s, yes = self.server, self.trust
        text = self.doctor(0, *yes)
        self.finds(text, "ok", "server", "TLSv1.3")
        text = self.doctor(1, *self.trusting(verify="ca"))
        self.finds(text, "WARN", "tls", "verify=ca", "Remedy: remove verify")
        text = self.doctor(1, "-u", self.url, "--insecure")
        self.finds(text, "WARN", "tls", "verify=none", "Remedy: remove verify")
        text = self.doctor(78, "-u", self.url, "--cacert", s.file("none"))
        self.finds(text, "FAIL", "url", "No such file")
        text = self.doctor(78, "--json",
                           *self.trusting(cert=s.file("client.pem")))
        self.check('"level":"FAIL","what":"url"' in text,
                   "a wrong URL in JSON, too", text)
        s.present("expired")
        text = self.doctor(69, *yes)
        self.finds(text, "FAIL", "reach", "expired on")
        s.present("server")

    def passwords(self):
        """On the way to another machine."""
        s = self.server
        s.cli("ACL", "SETUSER", "app", "on", ">Zqx7Wvk9", "~*", "+@all")
        elsewhere = ["unshare", "-rn", "sh", "-c",
                     "ip link set lo up && ip addr add 10.1.2.3/32 dev lo && "
                     'exec "$@"', "sh"]
        if subprocess.run(elsewhere + ["true"], capture_output=True,
                          check=False).returncode != 0:
            print("# left out: a password without TLS: no unshare -rn, or ip")
            return
        port, path = free_port(), s.file("elsewhere")
        script = (
            f'setpriv --pdeathsig KILL "$1" --port {port} --bind 10.1.2.3 '
            '--save "" --unixsocket '
            f"{path} --protected-mode no --appendonly yes --appendfsync always"
            f" --dir {s.folder} --daemonize no > /dev/null & "
            f"until redis-cli -s {path} PING > /dev/null 2>&1; do sleep 0.02; "
            f"done; redis-cli -s {path} ACL SETUSER app on '>Zqx7Wvk9' '~*' "
            f'+@all > /dev/null; "$2" doctor -u redis://app@10.1.2.3:{port}'
            "?max_ttl_ms=20; kill $!")
        got = subprocess.run(
            [*elsewhere, "sh", "-c", script, "sh", s.program, self.program],
            env={**os.environ, "NXLOCK_PASSWORD": "Zqx7Wvk9"},
            capture_output=True, timeout=60, check=False)
        self.finds(got.stdout.decode(), "WARN", "password",
                   "sent to another machine without TLS", "Remedy: write "
                   "rediss://")


if __name__ == "__main__":
    # It keeps all locks, so doctor finds nothing else.
    sys.exit(play(
        Room, Room.options, Room.combinations, Room.nested,
        Room.server_certificates, Room.versions, Room.clients, Room.peers,
        Room.findings, Room.passwords, server=TlsServer,
        options=("--appendonly", "yes", "--appendfsync", "always")))
