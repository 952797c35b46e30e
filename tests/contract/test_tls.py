"""rediss://: TLS where the hiredis of this build has it, and where it has none, an error that says what is needed.

Each build proves what it can: the same question that the Makefile asks decides which of the two is demanded here."""

import os
import shlex
import socket
import subprocess
import time

import pytest
from basics import BUILD, REPLY_S, SOON_S, die_with_parent, wait_until
from contender import SANITIZERS, fresh_key
from locks import BY_NAME

PKG_CONFIG = shlex.split(os.environ.get("PKG_CONFIG", "pkg-config"))
HAS_TLS = subprocess.run([*PKG_CONFIG, "--exists", "hiredis_ssl", "openssl"], check=False).returncode == 0
LOCKS = ["redis-lock", "redis-reentrant", "redlock"]  # the three that send: by request, as a subscriber, by vote
NEEDED = "needs a build with hiredis 1.0 or newer and its libhiredis_ssl"
OK, AWAY = 0, 69


def openssl(*words):
    subprocess.run(["openssl", *words], check=True, capture_output=True, timeout=REPLY_S)


def certify(folder, host):
    """A certificate that signs itself, so that it is its own authority: FOLDER/HOST.crt and .key."""
    kind = "IP" if host[0].isdigit() else "DNS"
    words = f"req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=test -addext subjectAltName={kind}:{host}".split()
    openssl(*words, "-keyout", folder / f"{host}.key", "-out", folder / f"{host}.crt")
    return folder / f"{host}.crt"


class Server:
    """A Redis server that shows the certificate of HOST; a plain one where HOST is None."""

    def __init__(self, folder, host):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        words = ["--port", self.port]
        if host:
            certificate = certify(folder, host)
            words = ["--port", 0, "--tls-port", self.port, "--tls-auth-clients", "no"]
            words += ["--tls-cert-file", certificate, "--tls-key-file", certificate.with_suffix(".key")]
            words += ["--tls-ca-cert-file", certificate]
        words = ["redis-server", "--bind", "127.0.0.1", "--save", "", "--dir", folder, *words]
        self.process = subprocess.Popen(map(str, words), stdout=subprocess.DEVNULL, preexec_fn=die_with_parent)
        wait_until(self.listens, "redis-server listens")

    def listens(self):
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def end(self):
        self.process.kill()
        self.process.wait()


@pytest.fixture(scope="module")
def servers(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tls")
    made = {host: Server(folder, host) for host in ("localhost", "127.0.0.1", "elsewhere.example", None)}
    yield {host: server.port for host, server in made.items()}, folder
    for server in made.values():
        server.end()


def lock_once(lock, url, authority="/dev/null"):
    """Runs a command under LOCK of the server of URL; Redlock asks it as its only one."""
    words = [BUILD / "lockrun", "--lock", lock, "--name", fresh_key(), "--wait", "5s", "--", "echo", "ran"]
    environment = {
        "PATH": os.environ["PATH"],
        **SANITIZERS,
        BY_NAME[lock].setting: url,
        "SSL_CERT_FILE": str(authority),
        "SSL_CERT_DIR": "/nonexistent",
    }
    began = time.monotonic()
    ran = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=REPLY_S, check=False)
    assert time.monotonic() - began < SOON_S, ran
    assert (ran.stdout == "ran\n") == (ran.returncode == OK), ran
    return ran.returncode, ran.stderr


def prove_the_error(lock):
    status, words = lock_once(lock, "rediss://localhost:1/")
    assert status == AWAY and NEEDED in words, words


def prove_tls(lock, servers):
    ports, folder = servers
    for host in ("localhost", "127.0.0.1"):
        status, words = lock_once(lock, f"rediss://{host}:{ports[host]}/3", folder / f"{host}.crt")
        assert status == OK, words
    refused = [
        ("localhost", "localhost", "elsewhere.example", "certificate"),  # of an authority that we do not know
        ("localhost", "elsewhere.example", "elsewhere.example", "ostname mismatch"),
        ("127.0.0.1", "localhost", "localhost", "IP address mismatch"),
        ("localhost", None, "localhost", "no TLS"),
    ]
    for host, shown, authority, why in refused:
        status, words = lock_once(lock, f"rediss://{host}:{ports[shown]}/", folder / f"{authority}.crt")
        assert status == AWAY and (why in words or lock == "redlock"), words


@pytest.mark.parametrize("lock", LOCKS)
def test_tls(lock, request):
    if HAS_TLS:
        prove_tls(lock, request.getfixturevalue("servers"))
    else:
        prove_the_error(lock)
