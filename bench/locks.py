"""Measures locks, and the programs and bare calls that they are compared with, on the private servers."""

import re
import socket
import urllib.parse

from harness import PATIENCE_S, ROOT, Failure, output_of, show
from scripts import LOCKBENCH

ZOOKEEPER_WARM_UP = 5  # in its first ten seconds under load, Java's compiler makes ZooKeeper three times as fast
STACK_NAMES = {"lock-database": "postgres"}  # of servers that lock/ calls otherwise


class Unavailable(Failure):
    """Why one case cannot be measured on this machine; the others can."""


def all_locks():
    """Name → its server, of each lock that has one."""
    pairs = (line.split() for line in output_of([LOCKBENCH, "locks"]).splitlines())
    return {name: server for name, server in pairs if server != "-"}


class Locks:
    """The servers at ADDRESSES. MISSING: name of one that did not start → the reason."""

    def __init__(self, addresses, missing, seconds):
        self.addresses, self.missing, self.seconds = addresses, missing, seconds
        self.what = ""  # what is measured, for people
        self.zookeeper_is_warm = False

    def say(self, text):
        show(f"{self.what}: {text}")

    def need(self, server):
        """The server is up, and as fast as it gets."""
        name = STACK_NAMES.get(server, server)
        if name in self.missing:
            raise Unavailable(self.missing[name])
        if name == "zookeeper" and not self.zookeeper_is_warm:
            self.say("warming up ZooKeeper")
            self.lockbench("cycles", "zookeeper", 8, self.seconds * 1000 * ZOOKEEPER_WARM_UP, "one-key")
            self.zookeeper_is_warm = True

    def lockbench(self, *words):
        """The numbers that lockbench prints."""
        return [float(word) for word in self.program(LOCKBENCH, *words).split()[-3 if words[0] == "hand-overs" else -1 :]]

    def program(self, *words, reason=""):
        """What a program prints; if it fails, the case is not available here, for REASON or for what it says."""
        try:
            return output_of(words, self.addresses, self.seconds * 10 + 2 * PATIENCE_S)
        except Failure as failure:
            raise Unavailable(reason or failure.said[-240:] or str(failure)) from None

    def lock_cycles(self, lock, threads, ms, one_key=False):
        """Acquisitions, each with its release, a second."""
        self.say(f"{lock}, {threads} threads{' on one key' if one_key else ''}")
        return self.lockbench("cycles", lock, threads, ms, *(["one-key"] if one_key else []))[0]

    def hand_overs(self, lock, threads, ms):
        """Median time in ms, wake-ups for each release, and the share of acquisitions while another thread was inside."""
        self.say(f"{lock}, hand-over among {threads} threads")
        return self.lockbench("hand-overs", lock, threads, ms)

    def bare_cycles(self, loop, threads):
        """What a lock is compared with: the calls of etcd, zookeeper, or of the script of redis-stock, in a bare loop."""
        self.say(f"{loop}: its calls in a bare loop")
        return self.lockbench(loop, threads, self.seconds * 1000)[0]

    def redis_sets(self, threads):
        """redis-benchmark's SET, one request at a time on each connection. It takes a password as an argument only, so it works as a user
        without one, who may do nothing but set the benchmark's own key."""
        self.say("redis-benchmark SET")
        url = urllib.parse.urlsplit(self.addresses["REDIS_URL"])

        def sets(requests):
            text = self.program("redis-benchmark", "-h", "127.0.0.1", "-p", url.port, "--user", "redis-benchmark", "-a", "none", "-t", "set", "-c",
                                threads, "-n", requests, "--csv", reason="redis-benchmark failed or is missing: install the package redis-tools")  # fmt: skip
            return redis_benchmark_rate(text)

        if not redis_tell(url, "ACL SETUSER redis-benchmark reset on nopass ~key:__rand_int__ +set"):
            raise Unavailable("cannot create a Redis user for redis-benchmark: Redis is older than 6.0")
        try:
            return sets(int(sets(20_000) * self.seconds) + 1)
        finally:
            redis_tell(url, "ACL DELUSER redis-benchmark")

    def kazoo_cycles(self, threads):
        """kazoo's lock on ZooKeeper, one key for all threads."""
        self.say("kazoo")
        text = self.program("/usr/bin/python3", "-B", ROOT / "bench/kazoo_lock.py", self.addresses["ZOOKEEPER_CONNECT"], threads, self.seconds,
                            reason="kazoo failed or is missing: install the package python3-kazoo")  # fmt: skip
        return kazoo_rate(text)


def kazoo_rate(text):
    """Among what its libraries say."""
    rates = re.findall(r"^\d+\.\d+$", text, re.M)
    if not rates or float(rates[-1]) <= 0:
        raise Unavailable("kazoo printed no rate")
    return float(rates[-1])


def redis_benchmark_rate(csv):
    """Before version 7 there is no heading."""
    rate = re.search(r'^"SET","([\d.]+)"', csv, re.M)
    if not rate or float(rate[1]) <= 0:
        raise Unavailable("redis-benchmark printed no rate")
    return float(rate[1])


def redis_tell(url, command):
    """What an operator would type into redis-cli, whose arguments everybody could read. False: the server refused it."""
    with socket.create_connection(("127.0.0.1", url.port), timeout=10) as connection:
        connection.sendall(f"AUTH {url.password}\r\n{command}\r\nQUIT\r\n".encode())
        reply = b"".join(iter(lambda: connection.recv(4096), b""))
    return reply.startswith(b"+OK\r\n") and b"\r\n-" not in reply
