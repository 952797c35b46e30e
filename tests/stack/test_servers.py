"""The servers that locks live on: each at the address that `env` prints, private, found again, and ended."""

import base64
import json
import os
import signal
import socket
import subprocess
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import redis
from kazoo.client import KazooClient
from private_stack import STACK, eventually, ok, stack

REDLOCK = [f"redis-{i}" for i in range(1, 6)]
ALL = ["postgres", "redis", *REDLOCK, "zookeeper", "etcd"]


class Shelf:
    """A place for one value on each kind of server, named by its address as `env` prints it."""

    def __init__(self, env):
        self.env = env

    def redis(self, url=None):
        return redis.Redis.from_url(url or self.env["REDIS_URL"], socket_timeout=60)

    def redlock(self):
        return [self.redis(url) for url in self.env["REDLOCK_URLS"].split(",")]

    def zookeeper(self, work, hosts=None):
        client = KazooClient(hosts=hosts or self.env["ZOOKEEPER_CONNECT"], timeout=60)
        client.start(timeout=120)
        try:
            return work(client)
        finally:
            client.stop()
            client.close()

    def etcd(self, call, body, endpoint=None):
        endpoint = endpoint or self.env["ETCD_ENDPOINTS"].split(",")[0]
        with urllib.request.urlopen(f"{endpoint}/v3/{call}", json.dumps(body).encode(), timeout=60) as reply:
            return json.load(reply)

    def put(self, value):
        for each in [self.redis(), *self.redlock()]:
            each.set("kept", value)
        self.zookeeper(lambda client: client.create("/kept", value))
        self.etcd("kv/put", {"key": encoded(b"kept"), "value": encoded(value)})

    def get_zookeeper(self, hosts=None):
        def read(client):
            client.sync("/kept")
            return client.get("/kept")[0]

        return self.zookeeper(read, hosts)

    def get_etcd(self, endpoint=None):
        return base64.b64decode(self.etcd("kv/range", {"key": encoded(b"kept")}, endpoint)["kvs"][0]["value"])


def encoded(value):
    return base64.b64encode(value).decode()


@pytest.mark.long
def test_each_server_answers_where_env_says_and_nobody_else_may_enter(servers):
    servers.up("all")
    assert servers.status() == dict.fromkeys(ALL, True)
    env = servers.env()
    assert list(env) == ["DATABASE_URL", "REDIS_URL", "REDLOCK_URLS", "ZOOKEEPER_CONNECT", "ETCD_ENDPOINTS"]
    assert env["REDLOCK_URLS"].count(",") == 4 and servers.sql("SELECT 1") == "1"
    shelf = Shelf(env)
    shelf.put(b"one")
    assert [each.get("kept") for each in [shelf.redis(), *shelf.redlock()]] == [b"one"] * 6
    assert shelf.redis().config_get("save", "appendonly", "maxmemory", "maxmemory-policy") == {
        "save": "", "appendonly": "no", "maxmemory": "67108864", "maxmemory-policy": "noeviction"}
    with pytest.raises(redis.AuthenticationError):
        redis.Redis(port=servers.port("redis")).ping()
    assert shelf.get_zookeeper() == b"one" and shelf.get_etcd() == b"one"
    assert shelf.etcd("lease/grant", {"TTL": 1})["TTL"] == "1", "a lease as short as asked for"
    for name in ALL:
        assert (servers.folder / name).stat().st_mode & 0o077 == 0
        assert os.geteuid() != 0 or Path(f"/proc/{servers.pid(name)}").stat().st_uid != 0
        assert listens_on_loopback_only(servers.pid(name))

    # Once more changes nothing; the next start has the same addresses, and all data but what lay in memory only.
    servers.up("all")
    assert servers.env() == env
    servers.down()
    assert servers.processes() == [] and not any(servers.status().values())
    servers.up("all")
    assert servers.env() == env and shelf.get_zookeeper() == b"one" and shelf.get_etcd() == b"one"
    assert shelf.redis().get("kept") is None
    servers.down("--purge")
    assert not servers.folder.exists()


def listens_on_loopback_only(pid):
    """Every address at which this process listens, as /proc has it: bytes of each word of four back to front."""
    inodes = set()
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        inodes.add(os.readlink(descriptor).removeprefix("socket:[").removesuffix("]"))
    local = []
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == "0A" and words[9] in inodes:
                local.append(words[1].split(":")[0])
    return bool(local) and all(address[-2:] == "7F" for address in local)


@pytest.mark.long
def test_a_killed_server_is_down_alone_and_comes_back_where_it_was(servers):
    names = ["redis-2", "zookeeper", "etcd"]
    servers.up("redis", "redlock", "redis", "redis-1", "zookeeper", "etcd")
    env = servers.env()
    Shelf(env).put(b"one")
    pids = {name: servers.pid(name) for name in servers.status()}
    for name in names:
        os.kill(pids[name], signal.SIGKILL)
    eventually(lambda: [name for name, up in servers.status().items() if not up] == names, "the killed are down")
    assert stack("status", "--dir", servers.folder).returncode == 3
    # A majority is one of all five, whether they answer or not.
    assert servers.env() == {"REDIS_URL": env["REDIS_URL"], "REDLOCK_URLS": env["REDLOCK_URLS"]}
    servers.up(*names)
    assert servers.env() == env and Shelf(env).get_zookeeper() == b"one" and Shelf(env).get_etcd() == b"one"
    assert {name: servers.pid(name) == pid for name, pid in pids.items()} == {
        name: name not in names for name in pids}

    # Named ones go down, politely or not, and the others stay.
    for name in names:
        os.kill(servers.pid(name), signal.SIGSTOP)
    started = time.monotonic()
    servers.down(*names)
    assert time.monotonic() - started < 100
    assert [name for name, up in servers.status().items() if not up] == names


@pytest.mark.long
def test_ports_that_are_taken_are_left_alone(servers):
    names = ["redis", "zookeeper", "etcd"]
    servers.up(*names)
    servers.down()
    taken = {name: servers.port(name) for name in names}
    others = []
    try:
        for port in taken.values():
            others.append(socket.create_server(("127.0.0.1", port)))
        servers.up(*names)
        assert all(servers.port(name) != port for name, port in taken.items())
        shelf = Shelf(servers.env())
        assert shelf.redis().ping() and shelf.zookeeper(lambda client: client.exists("/zookeeper"))
    finally:
        for other in others:
            other.close()


@pytest.mark.long
def test_a_killed_up_leaves_nothing_that_is_not_found_again(servers):
    names = ["redlock", "zookeeper", "etcd"]
    for seconds in (0.15, 0.5):
        with subprocess.Popen([STACK, "up", *names, "--dir", servers.folder], stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL) as up:
            time.sleep(seconds)
            up.kill()
    servers.up(*names)
    assert len(servers.processes()) == 7, "one process a server"
    (servers.folder / "etcd.pid").unlink()
    servers.down()
    assert servers.processes() == []


@pytest.mark.long
def test_stacks_side_by_side_do_not_know_each_other(stacks):
    some = [stacks() for _ in range(3)]
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda each: each.up("redlock", "redis", "zookeeper", "etcd"), some))
    for number, each in enumerate(some):
        Shelf(each.env()).put(b"stack %d" % number)
    for number, each in enumerate(some):
        shelf = Shelf(each.env())
        assert {shelf.get_zookeeper(), shelf.get_etcd(), shelf.redis().get("kept")} == {b"stack %d" % number}
    some[0].down("--purge")
    assert some[1].is_up() and some[2].is_up()


def test_all_of_them_end_with_the_process_they_are_kept_for(servers):
    with subprocess.Popen(["sleep", "300"]) as one:
        try:
            servers.up("redlock", "zookeeper", "etcd", "--while", one.pid, "--purge")
            assert servers.is_up()
        finally:
            one.kill()
    eventually(lambda: not servers.folder.exists(), "the folder is gone")


def test_callers_settings_for_other_servers_do_not_matter(servers):
    servers.up("zookeeper", "etcd", env={**os.environ, "ETCD_DATA_DIR": "/nowhere", "ETCD_NAME": "other",
                                         "JAVA_TOOL_OPTIONS": "-Xmx1k", "CLASSPATH": "/nowhere"})
    assert list(servers.env()) == ["ZOOKEEPER_CONNECT", "ETCD_ENDPOINTS"]


@pytest.mark.long
def test_three_servers_are_one_ensemble(servers):
    servers.up("--ensemble", "zookeeper", "etcd")
    names = [f"{kind}-{i}" for kind in ("zookeeper", "etcd") for i in (1, 2, 3)]
    assert servers.status() == dict.fromkeys(names, True)
    env = servers.env()
    hosts, endpoints = env["ZOOKEEPER_CONNECT"].split(","), env["ETCD_ENDPOINTS"].split(",")
    assert len(set(hosts)) == len(set(endpoints)) == 3
    shelf = Shelf(env)
    shelf.zookeeper(lambda client: client.create("/kept", b"one"), hosts[0])
    shelf.etcd("kv/put", {"key": encoded(b"kept"), "value": encoded(b"one")})
    assert [shelf.get_zookeeper(host) for host in hosts] == [b"one"] * 3
    assert [shelf.get_etcd(endpoint) for endpoint in endpoints] == [b"one"] * 3

    # A minority is missed by nobody, and is taken back. The words mean the three that there are.
    follower = next(i for i in range(3) if not leads(shelf, endpoints[i]))
    killed = ["zookeeper-2", f"etcd-{follower + 1}"]
    for name in killed:
        os.kill(servers.pid(name), signal.SIGKILL)
    eventually(lambda: [name for name, up in servers.status().items() if not up] == killed, "two are down")
    assert servers.env() == env
    assert shelf.zookeeper(lambda client: client.set("/kept", b"two"), f"{hosts[0]},{hosts[2]}").version == 1
    shelf.etcd("kv/put", {"key": encoded(b"kept"), "value": encoded(b"two")}, endpoints[follower - 1])
    servers.up("zookeeper", "etcd")
    assert servers.status() == dict.fromkeys(names, True) and servers.env() == env
    assert shelf.get_zookeeper(hosts[1]) == b"two" and shelf.get_etcd(endpoints[follower]) == b"two"
    servers.down()
    servers.up("zookeeper", "etcd")
    assert servers.env() == env and shelf.get_zookeeper() == b"two" and shelf.get_etcd() == b"two"


def leads(shelf, endpoint):
    status = shelf.etcd("maintenance/status", {}, endpoint)
    return status["leader"] == status["header"]["member_id"]


def test_a_single_server_does_not_become_three(servers):
    servers.up("etcd")
    refused = stack("up", "--ensemble", "etcd", "--dir", servers.folder)
    assert (refused.returncode, refused.stdout) == (1, "") and "purge it first" in refused.stderr
    assert servers.status() == {"etcd": True}


@pytest.fixture
def without(tmp_path):
    """A PATH without some programs."""
    def make(*programs):
        for folder in reversed(os.environ["PATH"].split(":")):
            for program in Path(folder).glob("*"):
                link = tmp_path / program.name
                link.unlink(missing_ok=True)
                if program.name not in programs:
                    link.symlink_to(program)
        return str(tmp_path)

    return make


def test_what_is_not_installed_is_named_with_its_package(servers, without):
    env = {**os.environ, "PATH": without("redis-server", "java", "etcd")}
    for name, package in (("redis-4", "redis-server"), ("zookeeper", "zookeeper"), ("etcd", "etcd-server")):
        ran = stack("up", name, "--dir", servers.folder, env=env)
        assert ran.returncode == 1 and f"package {package} is not installed" in ran.stderr
    assert not servers.folder.exists()


def test_run_gives_every_address(servers):
    text = ok("run", "--dir", servers.folder, "redis", "zookeeper", "--", "sh", "-c", 'echo "$REDIS_URL $ZOOKEEPER_CONNECT"')
    assert text.startswith("redis://default:") and " 127.0.0.1:" in text
    assert not servers.is_up()
