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

STACK = Path(__file__).resolve().parents[2] / "stack" / "stack"
LIMIT_S = 120


def stack(*arguments, **options):
    return subprocess.run([STACK, *map(str, arguments)], capture_output=True, text=True, timeout=LIMIT_S,
                          stdin=subprocess.DEVNULL, check=False, **options)


def ok(*arguments, **options):
    ran = stack(*arguments, **options)
    assert ran.returncode == 0, f"{arguments}: exit {ran.returncode}\n{ran.stdout}{ran.stderr}"
    return ran.stdout


def eventually(condition, what, seconds=20):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"not within {seconds} s: {what}"
        time.sleep(0.05)


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


class Servers:
    """One stack in a folder of its own."""

    def __init__(self, folder):
        self.folder = folder

    def up(self, *arguments, **options):
        return ok("up", "--dir", self.folder, *arguments, **options)

    def down(self, *arguments):
        return ok("down", "--dir", self.folder, *arguments)

    def is_up(self):
        code = stack("status", "--dir", self.folder).returncode
        assert code in (0, 3)
        return code == 0

    @property
    def pid(self):
        return int((self.folder / "postgres.pid").read_text())

    @property
    def url(self):
        [line] = ok("env", "--dir", self.folder).splitlines()
        assert line.startswith("export DATABASE_URL=postgresql://")
        return line.split("=", 1)[1]

    def sql(self, text):
        ran = subprocess.run(["psql", "-XAtq", "-v", "ON_ERROR_STOP=1", self.url, "-c", text], capture_output=True,
                             text=True, timeout=LIMIT_S, check=False)
        assert ran.returncode == 0, ran.stderr
        return ran.stdout.strip()

    def processes(self):
        """Every process that names this folder in its command line or works in it, however it was started."""
        found = []
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if any(str(self.folder).encode() in word for word in words) and alive(entry.name):
                found.append(b" ".join(words).decode())
        return found


@pytest.fixture
def servers(tmp_path):
    # pytest's folders are closed to the servers' own user; this one is not.
    folder = Path(subprocess.run(["mktemp", "-d", "-t", "oversell-stack-XXXXXX"], capture_output=True, text=True,
                                 check=True).stdout.strip())
    folder.chmod(0o755)
    made = Servers(folder / "stack")
    try:
        yield made
    finally:
        stack("down", "--purge", "--dir", made.folder)
        left = made.processes()
        subprocess.run(["rm", "-rf", folder], check=True)
    assert left == []


def test_words_that_are_not_known_list_what_is_valid(tmp_path):
    for arguments, valid in (
        ([], "up down status env run"),
        (["start"], "up down status env run"),
        (["up", "--folder", tmp_path], "--dir, --while, --purge"),
        (["up", "oracle", "--dir", tmp_path], "postgres"),
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
        assert all(word in text for word in ("up", "down", "status", "env", "run", "--dir", "--while", "--purge"))


def test_a_stack_that_is_not_there(tmp_path):
    assert stack("status", "--dir", tmp_path / "none").returncode == 3
    ran = stack("env", "--dir", tmp_path / "none")
    assert (ran.returncode, ran.stdout) == (1, "")
    ok("down", "--dir", tmp_path / "none")
    assert not (tmp_path / "none").exists()


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
    assert os.geteuid() != 0 or Path(f"/proc/{servers.pid}").stat().st_uid != 0


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


def test_a_callers_settings_for_another_server_do_not_matter(servers):
    servers.up(env={**os.environ, "PGHOST": "nowhere.invalid", "PGPORT": "1", "PGUSER": "nobody", "PGSSLMODE": "require",
                    "PGOPTIONS": "-c fsync=off"})
    assert servers.sql("SELECT 1") == "1"


def test_a_killed_server_and_false_pid_files(servers):
    servers.up()
    servers.sql("CREATE TABLE kept AS SELECT 42 AS answer")
    with subprocess.Popen(["psql", "-Xq", servers.url, "-c", "SELECT pg_sleep(60)"], stderr=subprocess.DEVNULL):
        eventually(lambda: servers.sql("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'") == "1",
                   "a session at work")
        os.kill(servers.pid, signal.SIGKILL)
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
    os.kill(servers.pid, signal.SIGSTOP)
    started = time.monotonic()
    servers.down()
    assert time.monotonic() - started < 20 and servers.processes() == []


def test_a_port_that_is_taken_is_left_alone(servers):
    servers.up()
    servers.down()
    port = int((servers.folder / "postgres.port").read_text())
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(("127.0.0.1", port))
        other.listen()
        servers.up()
        assert int((servers.folder / "postgres.port").read_text()) != port
        assert servers.sql("SELECT 1") == "1"


def test_many_at_once_start_one_server(servers):
    with ThreadPoolExecutor(4) as pool:
        outputs = set(pool.map(lambda _: servers.up(), range(4)))
    assert len(outputs) == 1 and servers.is_up()


def test_the_stack_ends_with_the_last_process_it_is_kept_for(servers):
    with subprocess.Popen(["sleep", "300"]) as one, subprocess.Popen(["sleep", "300"]) as two:
        try:
            servers.up("--while", one.pid)
            servers.up("--while", two.pid)
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
            servers.up("--while", one.pid)
            servers.up()
        finally:
            one.kill()
    time.sleep(1.5)
    assert servers.is_up()


def test_while_with_purge_leaves_nothing(servers):
    with subprocess.Popen(["sleep", "300"]) as one:
        try:
            servers.up("--while", one.pid, "--purge")
        finally:
            one.kill()
    eventually(lambda: not servers.folder.exists(), "the folder is gone")


def test_run_gives_the_address_and_the_exit_status(servers):
    ran = stack("run", "--dir", servers.folder, "--", "sh", "-c", 'psql -XAtq "$DATABASE_URL" -c "SELECT 6*7"; exit 9')
    assert (ran.returncode, ran.stdout) == (9, "42\n")
    assert not servers.is_up()
    servers.up()
    ok("run", "--dir", servers.folder, "--", "true")
    assert servers.is_up(), "what was up before stays up"


def hear_signals():
    """A shell ignores them for what it starts in the background, and bash cannot undo that: perhaps we are there."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


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
    with subprocess.Popen([STACK, "run", "--dir", servers.folder, "--", sys.executable, "-c", COMMAND],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True,
                          preexec_fn=hear_signals) as run:
        try:
            assert run.stdout.readline() == "begun\n"
            if name == "SIGINT":  # a terminal sends it to the whole group
                os.killpg(run.pid, signal.SIGINT)
            else:
                run.send_signal(getattr(signal, name))
            assert (run.communicate(timeout=60)[0], run.returncode) == ("told\n", 0)
        finally:
            run.kill()
    assert not servers.is_up() and servers.processes() == []


def test_a_killed_run_leaves_nothing(servers):
    with subprocess.Popen([STACK, "run", "--dir", servers.folder, "--", sys.executable, "-c", COMMAND],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as run:
        assert run.stdout.readline() == "begun\n"
        run.kill()
        assert run.stdout.readline() == "told\n"
    eventually(lambda: not servers.is_up() and servers.processes() == [], "the stack is down")


def test_an_interrupted_up_leaves_nothing_running(servers):
    for seconds in (0.1, 0.3, 0.5, 0.7, 0.9):
        with subprocess.Popen([STACK, "up", "--dir", servers.folder], stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, start_new_session=True, preexec_fn=hear_signals) as up:
            time.sleep(seconds)
            finished = up.poll() == 0
            if not finished:
                os.killpg(up.pid, signal.SIGINT)
        if not finished and up.returncode != 0:
            eventually(lambda: servers.processes() == [], f"nothing runs after {seconds} s")
    servers.up()
    assert servers.sql("SELECT 1") == "1"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has folders that the servers' user cannot enter")
def test_a_folder_that_the_servers_user_cannot_enter(tmp_path):
    tmp_path.chmod(0o700)
    servers = Servers(tmp_path / "stack")
    try:
        servers.up()
        assert servers.sql("SELECT 1") == "1"
        elsewhere = Path(os.readlink(servers.folder / "postgres"))
        assert elsewhere.is_dir()
        servers.down()
        servers.up()
        servers.down("--purge")
        assert not elsewhere.exists() and not servers.folder.exists()
    finally:
        stack("down", "--purge", "--dir", servers.folder)
