"""The script that starts the private servers: what it prints, what it survives, and that nothing stays behind."""

import os
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from private_stack import LIMIT_S, STACK, Servers, eventually, hear_signals, ok, stack


def test_words_that_are_not_known_list_what_is_valid(tmp_path):
    for arguments, valid in (
        ([], "up down status env run"),
        (["start"], "up down status env run"),
        (["up", "--folder", tmp_path], "--dir, --while, --purge"),
        (["up", "oracle", "--dir", tmp_path], "postgres redis redis-1"),
        (["down", "oracle", "--dir", tmp_path], "redlock all"),
        (["down", "redis", "--purge", "--dir", tmp_path], "--purge removes a whole stack"),
        (["up", "etcd-2", "--dir", tmp_path], "up --ensemble etcd"),
        (["up", "--dir"], "needs a value"),
        (["up", "--dir", tmp_path, "--while", "me"], "not a process"),
        (["up", "--dir", tmp_path, "--while", "4194304999"], "no process"),
        (["run", "--dir", tmp_path], "command"),
    ):
        ran = stack(*arguments)
        assert (ran.returncode, ran.stdout) == (2, ""), arguments
        assert valid in ran.stderr
    assert list(tmp_path.iterdir()) == []


def test_help_names_every_command():
    for arguments in (["--help"], ["up", "--help"]):
        text = ok(*arguments)
        assert all(word in text for word in ("up", "down", "status", "env", "run", "--dir", "--while", "--purge", "--ensemble",
                                      "redlock", "zookeeper", "etcd", "all"))


def test_a_stack_that_is_not_there(tmp_path):
    assert stack("status", "--dir", tmp_path / "none").returncode == 3
    ran = stack("env", "--dir", tmp_path / "none")
    assert (ran.returncode, ran.stdout) == (1, "")
    ok("down", "--dir", tmp_path / "none")
    assert not (tmp_path / "none").exists()


@pytest.mark.long
def test_up_is_durable_private_and_idempotent(servers):
    first = servers.up()
    settings = dict(line.split("|") for line in servers.sql(
        "SELECT name, setting FROM pg_settings WHERE name IN ('fsync', 'synchronous_commit', 'full_page_writes',"
        " 'track_commit_timestamp', 'max_connections', 'listen_addresses')").splitlines())
    assert settings == {"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on",
                        "track_commit_timestamp": "on", "max_connections": "200", "listen_addresses": "127.0.0.1"}
    assert servers.up() == first == ok("status", "--dir", servers.folder)
    wrong = servers.url.replace("shop:", "shop:x")
    refused = subprocess.run(["psql", "-XAtq", wrong, "-c", "SELECT 1"], capture_output=True, text=True,
                             timeout=LIMIT_S, check=False)
    assert refused.returncode == 2 and "password authentication failed" in refused.stderr
    assert (servers.folder / "postgres.password").stat().st_mode & 0o077 == 0
    assert os.geteuid() != 0 or Path(f"/proc/{servers.pid()}").stat().st_uid != 0


@pytest.mark.long
def test_down_keeps_the_data_and_the_address_and_purge_removes_them(servers):
    servers.up()
    servers.sql("CREATE TABLE kept AS SELECT 42 AS answer")
    url = servers.url
    servers.down()
    assert not servers.is_up() and servers.processes() == []
    servers.up()
    assert servers.url == url and servers.sql("SELECT answer FROM kept") == "42"
    servers.down("--purge")
    assert not servers.folder.exists()
    servers.up()
    assert servers.sql("SELECT count(*) FROM pg_class WHERE relname = 'kept'") == "0"


def test_up_succeeds_beside_servers_that_stay_down(servers):
    servers.up("redis-1", "redis-2")
    servers.down()
    servers.up("redis-1")
    assert servers.status() == {"redis-1": True, "redis-2": False}
    ran = stack("run", "--dir", servers.folder, "redis-1", "--", "echo", "ran")
    assert (ran.returncode, ran.stdout) == (0, "ran\n"), ran


@pytest.mark.long
def test_a_callers_settings_for_another_server_do_not_matter(servers):
    servers.up(env={**os.environ, "PGHOST": "nowhere.invalid", "PGPORT": "1", "PGUSER": "nobody", "PGSSLMODE": "require",
                    "PGOPTIONS": "-c fsync=off"})
    assert servers.sql("SELECT 1") == "1"


@pytest.mark.long
def test_a_killed_server_and_false_pid_files(servers):
    servers.up()
    servers.sql("CREATE TABLE kept AS SELECT 42 AS answer")
    with subprocess.Popen(["psql", "-Xq", servers.url, "-c", "SELECT pg_sleep(60)"], stderr=subprocess.DEVNULL):
        eventually(lambda: servers.sql("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'") == "1",
                   "a session at work")
        os.kill(servers.pid(), signal.SIGKILL)
        eventually(lambda: not servers.is_up(), "the server is gone")
    servers.up()
    assert servers.sql("SELECT answer FROM kept") == "42"
    servers.down()
    # This very process is no server, whatever the files say.
    (servers.folder / "postgres.pid").write_text(f"{os.getpid()}\n")
    assert not servers.is_up()
    servers.up()
    assert servers.sql("SELECT answer FROM kept") == "42"


def test_a_stopped_server_goes_down_in_time(servers):
    servers.up()
    os.kill(servers.pid(), signal.SIGSTOP)
    started = time.monotonic()
    servers.down()
    assert time.monotonic() - started < 100 and servers.processes() == []


@pytest.mark.long
def test_a_port_that_is_taken_is_left_alone(servers):
    servers.up()
    servers.down()
    port = servers.port()
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(("127.0.0.1", port))
        other.listen()
        servers.up()
        assert servers.port() != port
        assert servers.sql("SELECT 1") == "1"


def test_many_at_once_start_one_server(servers):
    with ThreadPoolExecutor(4) as pool:
        outputs = set(pool.map(lambda _: servers.up("redis"), range(4)))
    assert len(outputs) == 1 and servers.is_up()


def test_the_stack_ends_with_the_last_process_it_is_kept_for(servers):
    with subprocess.Popen(["sleep", "300"]) as one, subprocess.Popen(["sleep", "300"]) as two:
        try:
            servers.up("redis", "--while", one.pid)
            servers.up("redis", "--while", two.pid)
            one.kill()
            one.wait()
            time.sleep(1.5)
            assert servers.is_up()
        finally:
            one.kill()
            two.kill()
    eventually(lambda: not servers.is_up(), "the stack is down")
    eventually(lambda: servers.processes() == [], "the watcher is gone")


def test_a_plain_up_outlives_the_watched(servers):
    with subprocess.Popen(["sleep", "300"]) as one:
        try:
            servers.up("redis", "--while", one.pid)
            servers.up("redis")
        finally:
            one.kill()
    time.sleep(1.5)
    assert servers.is_up()


def test_while_with_purge_leaves_nothing(servers):
    with subprocess.Popen(["sleep", "300"]) as one:
        try:
            servers.up("redis", "--while", one.pid, "--purge")
        finally:
            one.kill()
    eventually(lambda: not servers.folder.exists(), "the folder is gone")


@pytest.mark.long
def test_run_gives_the_address_and_the_exit_status(servers):
    ran = stack("run", "--dir", servers.folder, "--", "sh", "-c", 'psql -XAtq "$DATABASE_URL" -c "SELECT 6*7"; exit 9')
    assert (ran.returncode, ran.stdout) == (9, "42\n")
    assert not servers.is_up()
    servers.up()
    ok("run", "--dir", servers.folder, "--", "true")
    assert servers.is_up(), "what was up before stays up"


COMMAND = """
import signal, sys
def end(*_):
    print("told", flush=True)
    sys.exit(0)
signal.signal(signal.SIGTERM, end)
print("begun", flush=True)
while True:
    signal.pause()
"""


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_run_ends_its_command_and_the_stack_on_a_signal(servers, name):
    with subprocess.Popen([STACK, "run", "--dir", servers.folder, "redis", "--", sys.executable, "-c", COMMAND],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True,
                          preexec_fn=hear_signals) as run:
        try:
            assert run.stdout.readline() == "begun\n"
            if name == "SIGINT":  # a terminal sends it to the whole group
                os.killpg(run.pid, signal.SIGINT)
            else:
                run.send_signal(getattr(signal, name))
            assert (run.communicate(timeout=LIMIT_S)[0], run.returncode) == ("told\n", 0)
        finally:
            run.kill()
    assert not servers.is_up() and servers.processes() == []


def test_a_killed_run_leaves_nothing(servers):
    with subprocess.Popen([STACK, "run", "--dir", servers.folder, "redis", "--", sys.executable, "-c", COMMAND],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as run:
        assert run.stdout.readline() == "begun\n"
        run.kill()
        assert run.stdout.readline() == "told\n"
    eventually(lambda: not servers.is_up() and servers.processes() == [], "the stack is down")


@pytest.mark.long
def test_an_interrupted_up_leaves_nothing_running(servers):
    for seconds in (0.1, 0.5, 0.9):
        with subprocess.Popen([STACK, "up", "all", "--dir", servers.folder], stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, start_new_session=True, preexec_fn=hear_signals) as up:
            time.sleep(seconds)
            finished = up.poll() == 0
            if not finished:
                os.killpg(up.pid, signal.SIGINT)
        if not finished and up.returncode != 0:
            eventually(lambda: servers.processes() == [], f"nothing runs after {seconds} s")
    servers.up("all")
    assert servers.sql("SELECT 1") == "1"


SLOW_SETSID = """#!/usr/bin/python3
import os, sys, time
os.setsid()
print("alone", flush=True)
time.sleep(3)
os.execvp(sys.argv[1], sys.argv[1:])
"""


def test_an_up_that_is_interrupted_while_a_server_leaves_its_session(servers):
    """Between its own session and its own program a server is nobody's job any more, and not yet to be told by its name."""
    tools, log = servers.folder.parent / "tools", servers.folder / "redis.log"
    tools.mkdir()
    (tools / "setsid").write_text(SLOW_SETSID)
    (tools / "setsid").chmod(0o755)
    with subprocess.Popen([STACK, "up", "redis", "--dir", servers.folder], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                          start_new_session=True, preexec_fn=hear_signals,
                          env={**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"}) as up:
        eventually(lambda: log.exists() and "alone" in log.read_text(), "it has its own session")
        os.killpg(up.pid, signal.SIGINT)
    assert servers.processes() == []
    assert up.returncode == 130


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has folders that the servers' user cannot enter")
def test_a_folder_that_the_servers_user_cannot_enter(tmp_path):
    tmp_path.chmod(0o700)
    servers = Servers(tmp_path / "stack")
    try:
        servers.up("redis", "etcd")
        elsewhere = Path(os.readlink(servers.folder / "etcd"))
        assert elsewhere.is_dir()
        servers.down()
        servers.up("redis", "etcd")
        servers.down("--purge")
        assert not elsewhere.parent.exists() and not servers.folder.exists()
    finally:
        stack("down", "--purge", "--dir", servers.folder)
