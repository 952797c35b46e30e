"""The private servers, and a look into each of them."""

import contextlib
import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import tempfile
from pathlib import Path
from urllib.parse import urlsplit

import redis
from basics import REPLY_S, ROOT
from kazoo.client import KazooClient
from proxy import Proxy
from servers import CLIENT_SESSIONS, psql

SCRIPT = os.environ.get("OVERSELL_STACK", ROOT / "stack" / "stack")


def run(*command, status=0, **options):
    ran = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, timeout=300, check=False, **options
    )
    assert ran.returncode == status, f"{command}: exit {ran.returncode}\n{ran.stdout}{ran.stderr}"
    return ran.stdout


@contextlib.contextmanager
def proxies(addresses, setting):
    """A proxy before each server of SETTING: gives the environment that leads through them, and the proxies."""
    plain = "://" not in addresses[setting]
    urls = [f"tcp://{url}" if plain else url for url in addresses[setting].split(",")]
    made = [Proxy(url) for url in urls]
    try:
        yield {setting: ",".join(proxy.url.removeprefix("tcp://") for proxy in made)}, made
    finally:
        for proxy in made:
            proxy.close()


class Servers:
    """A private stack with the servers that `stack up` is given."""

    def __init__(self, *what):
        self.what = what

    def up(self):
        self.folder = Path(tempfile.mkdtemp(prefix="oversell-contract-"))
        self.folder.chmod(0o755)
        self.dir = ["--dir", self.folder / "servers"]
        self.start(*self.what)
        lines = run(SCRIPT, "env", *self.dir).splitlines()
        self.addresses = dict(shlex.split(line)[1].split("=", 1) for line in lines if line.startswith("export"))

    def start(self, *what):
        run(SCRIPT, "up", *self.dir, "--while", os.getpid(), *what)

    def stop(self, *what):
        run(SCRIPT, "down", *self.dir, *what)

    def down(self):
        try:
            run(SCRIPT, "down", "--purge", *self.dir)
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)

    def kill(self, name):
        """As a machine dies: without a word."""
        os.kill(int((self.folder / "servers" / f"{name}.pid").read_text()), signal.SIGKILL)

    @contextlib.contextmanager
    def ill(self, name, fault):
        """NAME is "frozen" or "killed", and well again afterwards."""
        pid = int((self.folder / "servers" / f"{name}.pid").read_text())
        os.kill(pid, signal.SIGKILL if fault == "killed" else signal.SIGSTOP)
        try:
            yield
        finally:
            if fault == "killed":
                self.start(name.split("-")[0])
            else:
                os.kill(pid, signal.SIGCONT)

    def is_leader(self, name):
        """Of the ensemble that NAME is a member of."""
        kind, number = name.split("-")
        setting = {"zookeeper": "ZOOKEEPER_CONNECT", "etcd": "ETCD_ENDPOINTS"}[kind]
        address = self.addresses[setting].split(",")[int(number) - 1]
        if kind == "zookeeper":
            return "Mode: leader" in four_letters(address, b"srvr")
        status = run("etcdctl", "endpoint", "status", "-w", "json", env=etcdctl_environment(address))
        status = json.loads(status)[0]["Status"]
        return status["leader"] == status["header"]["member_id"]


def four_letters(address, word):
    """What a ZooKeeper server answers to one of its commands."""
    host, port = address.split(":")
    with socket.create_connection((host, int(port)), timeout=REPLY_S) as connection:
        connection.sendall(word)
        return b"".join(iter(lambda: connection.recv(65536), b"")).decode()


def etcdctl_environment(endpoint):
    return {"PATH": os.environ["PATH"], "ETCDCTL_API": "3", "ETCDCTL_ENDPOINTS": endpoint.removeprefix("http://")}


class LockStack(Servers):
    def __init__(self):
        super().__init__("all")

    def up(self):
        super().up()
        self.addresses["LOCK_DATABASE_URL"] = self.addresses["DATABASE_URL"]
        self.database_url = self.addresses["DATABASE_URL"]
        self.redis = redis.Redis.from_url(self.addresses["REDIS_URL"], decode_responses=True)
        self.redlock = [
            redis.Redis.from_url(url, decode_responses=True) for url in self.addresses["REDLOCK_URLS"].split(",")
        ]
        self.zookeeper = self.addresses["ZOOKEEPER_CONNECT"]

    # ---- what is left on a server: nothing of it may grow with the number of acquisitions ----

    def left_behind(self, setting):
        return {
            "": dict,
            "LOCK_DATABASE_URL": self._in_postgresql,
            "REDIS_URL": lambda: self._in_redis([self.redis]),
            "REDLOCK_URLS": lambda: self._in_redis(self.redlock),
            "ZOOKEEPER_CONNECT": self._in_zookeeper,
            "ETCD_ENDPOINTS": self._in_etcd,
        }[setting]()

    def _in_postgresql(self):
        rows = psql(
            self.database_url,
            "SELECT c.relname, (xpath('/row/n/text()', query_to_xml("
            "format('SELECT count(*) AS n FROM %I.%I', n.nspname, c.relname), false, true, '')))[1]"
            " FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
            " WHERE c.relkind = 'r' AND c.relname IN ('distribute_lock', 'int_lock', 'shedlock')",
        )
        sessions = psql(self.database_url, f"SELECT count(*) FROM {CLIENT_SESSIONS} = current_database()")
        return {**{name: int(count) for name, count in rows}, "sessions": int(sessions[0][0])}

    def _in_redis(self, servers):
        return {
            "keys": sum(server.dbsize() for server in servers),
            "clients": sum(server.info("clients")["connected_clients"] for server in servers),
            "channels": sum(len(server.pubsub_channels()) + server.pubsub_numpat() for server in servers),
        }

    def _in_zookeeper(self):
        figures = dict(line.split("\t", 1) for line in four_letters(self.zookeeper, b"mntr").splitlines())
        names = ("zk_znode_count", "zk_watch_count", "zk_ephemerals_count")
        return {name: int(figures[name]) for name in names}

    def _in_etcd(self):
        keys = self.etcdctl("get", "--prefix", "", "--keys-only").split()
        leases = self.etcdctl("lease", "list").splitlines()[1:]
        return {"keys": len(keys), "leases": len(leases)}

    def left_of(self, setting, keys):
        """The names of what there is under these locks' keys, but for the counters of redis-fenced and the rows in which
        PostgreSQL's locks lie while they are free."""
        named = re.compile("(" + "|".join(map(re.escape, keys)) + r")(?!\d)")
        names = {
            "REDIS_URL": lambda: self.redis.scan_iter("*"),
            "REDLOCK_URLS": lambda: (name for server in self.redlock for name in server.scan_iter("*")),
            "ZOOKEEPER_CONNECT": lambda: self.nodes_under(keys),
            "ETCD_ENDPOINTS": lambda: self.etcdctl("get", "--prefix", "", "--keys-only").split(),
        }.get(setting, list)()
        return [name for name in names if named.search(name) and not name.startswith("redisson_lock_token:")]

    def nodes_under(self, keys):
        """The contenders' nodes in ZooKeeper; the server itself takes away the empty parents, some time later."""
        with self.zookeeper_client() as client:
            for key in keys:
                parent = f"/oversell/locks/{key}"
                if client.exists(parent):
                    yield from (f"{parent}/{name}" for name in client.get_children(parent))

    # ---- the servers' own tools ----

    @contextlib.contextmanager
    def zookeeper_client(self):
        client = KazooClient(self.zookeeper)
        client.start(timeout=REPLY_S)
        try:
            yield client
        finally:
            client.stop()
            client.close()

    def etcdctl(self, *words):
        return run("etcdctl", *words, env=self.etcd_environment)

    @property
    def etcd_environment(self):
        return etcdctl_environment(self.addresses["ETCD_ENDPOINTS"])

    def psql(self, sql):
        return psql(self.database_url, sql)

    def freeze_redlock(self, count):
        """Stops COUNT of the Redlock servers as a process is stopped; returns what lets them run again."""
        pids = [server.info("server")["process_id"] for server in self.redlock[:count]]
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        return lambda: [os.kill(pid, signal.SIGCONT) for pid in pids]

    def port_of(self, setting):
        return urlsplit(self.addresses[setting]).port
