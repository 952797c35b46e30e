"""What only Redis has: a unix socket in the URL, and scripts that the server forgets between any two requests."""

import re
import subprocess

import pytest
import redis
from basics import die_with_parent, wait_until
from conditions import LONG_MS
from conftest import probes_on
from contender import fresh_key
from locks import BY_NAME

LOCKS = [name for name, lock in BY_NAME.items() if lock.setting in ("REDIS_URL", "REDLOCK_URLS")]
WITHOUT_SCRIPTS = ["redis-setnx-forever", "redis-setnx", "redis-setnx-repair", "redis-del", "redis-get-del"]
CALLS_BY_NAME = [name for name in LOCKS if name not in [*WITHOUT_SCRIPTS, "redlock"]]  # which sends the whole text
DATABASE = 3


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A server that no port leads to; given as a client of its database DATABASE."""
    path = tmp_path_factory.mktemp("redis") / "redis.sock"
    words = ["redis-server", "--port", "0", "--unixsocket", str(path), "--save", "", "--dir", str(path.parent)]
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, preexec_fn=die_with_parent)
    client = redis.Redis(unix_socket_path=str(path), db=DATABASE)
    try:
        wait_until(path.exists, "redis-server listens")
        yield client
    finally:
        client.close()
        process.kill()
        process.wait()


def unknown_scripts(server):
    counted = server.info("errorstats").get("errorstat_NOSCRIPT", 0)  # "count=2", or {"count": 2} by a newer client
    return int(re.search(r"\d+", str(counted))[0])


@pytest.mark.parametrize("lock", LOCKS)
def test_through_a_unix_socket_with_scripts_forgotten(lock, server):
    url = f"unix://{server.connection_pool.connection_kwargs['path']}?db={DATABASE}"
    with probes_on({BY_NAME[lock].setting: url}) as start:
        holder, other = start().contender(lock), start().contender(lock)  # which have made their scripts known
        key, before = fresh_key(), unknown_scripts(server)
        server.script_flush()
        holder.got(key, lease=LONG_MS)
        assert any(key.encode() in name for name in server.keys()), server.keys()
        server.script_flush()
        other.waits(key, wait=60000, lease=LONG_MS)
        server.script_flush()
        holder.released()
        assert other.done("acquire")["status"] == "ok"
        server.script_flush()
        other.released()
        refused = unknown_scripts(server) - before  # of the two releases at least
        assert (refused >= 2) == (lock in CALLS_BY_NAME), refused
