"""lockrun: a command that runs while a lock is held, and what becomes of it when something ends."""

import os
import signal
import subprocess
import time

import pytest
from basics import BUILD, PATIENCE, REPLY_S, SOON_S, at_any_speed, stays, wait_until
from conditions import LONG_MS, stranger_gets_it
from contender import SANITIZERS, fresh_key
from locks import BREAKS, BY_NAME, SHARED, declaring, lease_ms
from servers import with_port
from stack import proxies

LOCKRUN = BUILD / "lockrun"
LOCK = "redis-lock"
SAFE = [name for name in SHARED if not any(name in flawed for flawed in BREAKS.values())]
LEASED = [name for name in SAFE if BY_NAME[name].leased]
ONE_EACH = list({BY_NAME[name].setting: name for name in LEASED}.values())
FENCED = declaring(fenced=True)
# One for each kind of server, and those that are not renewed by themselves.
EXAMPLES = sorted({*ONE_EACH, *(name for name in LEASED if not BY_NAME[name].renewed)})


@pytest.fixture
def environment(stack):
    return {"PATH": os.environ["PATH"], **SANITIZERS, **stack.addresses}


@pytest.fixture
def lockrun(environment):
    """lockrun(key, command…, lock=, options=): starts it; what still runs at the end is killed."""
    started = []

    def begin(key, *command, lock=LOCK, options=(), more=None, **popen):
        words = [LOCKRUN, "--lock", lock, "--name", key, *options, "--", *command]
        started.append(
            subprocess.Popen(
                [str(word) for word in words],
                env={**environment, **(more or {})},
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                **{"stdin": subprocess.DEVNULL, **popen},
            )
        )
        return started[-1]

    yield begin
    for process in started:
        process.kill()
        process.communicate()


def ended(process, told=None, within=30):
    out, err = process.communicate(told, timeout=within * PATIENCE)
    return process.returncode, out, err


def usage(*words, **environment):
    return subprocess.run(
        [LOCKRUN, *words], capture_output=True, text=True, timeout=REPLY_S, check=False, env=environment
    )


def running(process):
    """Reads the line by which the command says that it runs: 'ready' and its process id."""
    line = process.stdout.readline().split()
    assert line and line[0] == "ready", (line, process.stderr.read() if process.poll() is not None else "")
    return int(line[1])


def is_alive(pid):
    try:
        return not open(f"/proc/{pid}/stat", encoding="utf-8").read().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return False


READY = "echo ready $$; "


# ---- its words ----


def test_help_and_usage():
    shown = usage("--help")
    assert shown.returncode == 0 and "Example:" in shown.stdout and LOCK in shown.stdout and not shown.stderr
    for words in (
        [],
        ["--lock", LOCK, "--name", "x"],
        ["--lock", LOCK, "--", "true"],
        ["--name", "x", "--", "true"],
        ["--lock", LOCK, "--name", "", "--", "true"],
        ["--lock", LOCK, "--name", "a/b", "--", "true"],
        ["--lock", LOCK, "--name", "x" * 65, "--", "true"],
        *(
            ["--lock", LOCK, "--name", "x", option, value, "--", "true"]
            for option in ("--ttl", "--wait")
            for value in ("", "5", "s", "-1s", "1.5s", "1h", " 1s", "99999999999999999999s", "25000m")
        ),
        ["--lock", LOCK, "--name", "x", "--ttl", "0s", "--", "true"],
        ["--lock", LOCK, "--name", "x", "--nonsense", "--", "true"],
        ["--lock", LOCK, "--name", "x", "--ttl"],
    ):
        ran = usage(*words)
        assert ran.returncode == 2 and ran.stderr and not ran.stdout, (words, ran)


def test_an_unknown_lock_lists_the_valid_ones():
    ran = usage("--lock", "nonsense", "--name", "x", "--", "true")
    assert ran.returncode == 2 and "nonsense" in ran.stderr
    assert all(name in ran.stderr.split() for name in SHARED), ran.stderr


def test_the_name_of_a_strategy_does_as_well(lockrun):
    for name in ("redis-lock-checked", "zookeeper-fenced", "etcd-fenced", "fence-on-write"):
        assert ended(lockrun(fresh_key(), "echo", "ran", lock=name))[:2] == (0, "ran\n"), name
        assert name in usage("--help").stdout.split()
    for name in ("mutex-early-release", "atomic-decrement"):
        assert ended(lockrun(fresh_key(), "echo", "ran", lock=name))[:2] == (2, ""), name


def test_a_mutex_in_memory_would_keep_nobody_out():
    ran = usage("--lock", "mutex", "--name", "x", "--", "true")
    assert ran.returncode == 2 and "memory" in ran.stderr


def test_what_names_begin_with_is_checked_as_by_the_service(environment):
    """Of a longer one the keys would have the beginning alone, and different names would share a lock."""
    command = ["--lock", LOCK, "--name", "x", "--", "echo", "ran"]
    for prefix in ("p" * 33, "p" * 300, "a/b", ".a", "a b", "a:b"):
        ran = usage(*command, **{**environment, "LOCK_PREFIX": prefix})
        assert (ran.returncode, ran.stdout) == (2, ""), (prefix, ran)
        assert ran.stderr.startswith("lockrun: LOCK_PREFIX is not valid; valid: 1 to 32 of"), ran
    for prefix in ("p" * 32, "a.b_c-D9"):
        ran = usage(*command, **{**environment, "LOCK_PREFIX": prefix})
        assert (ran.returncode, ran.stdout) == (0, "ran\n"), (prefix, ran)


@pytest.mark.parametrize("setting, most", [("REDLOCK_URLS", 15), ("ETCD_ENDPOINTS", 16)])
def test_too_many_servers_are_refused_in_words(setting, most, environment):
    one = environment[setting].split(",")[0]
    for lock in declaring(setting=setting):
        for servers, said in (([one] * (most + 1), f"names {most + 1} servers"), (["", ""], "names 0 servers")):
            ran = usage(
                "--lock", lock, "--name", "x", "--", "true", **{**environment, setting: ",".join(servers)}
            )
            assert ran.returncode == 2, ran
            assert ran.stderr == f"lockrun: {setting} {said}; valid: 1 to {most}\n", ran
    ran = usage(
        "--lock", lock, "--name", "x", "--wait", "0s", "--", "true",
        **{**environment, setting: ",".join([one] * most)},
    )  # fmt: skip
    assert ran.returncode in (0, 75), ran  # 75: one server has been asked fifteen times


# ---- any lock around a command ----


@pytest.mark.parametrize("lock", SHARED)
def test_it_holds_the_lock_while_the_command_runs(lock, lockrun, start):
    other = start().contender(lock)

    def it_holds(scale):
        key, options = fresh_key(), ("--ttl", f"{lease_ms(lock) * scale}ms")
        holder = lockrun(key, "sh", "-c", READY + "read line", lock=lock, options=options)
        status, out, err = ended(holder)  # its input is empty: it ends at once
        assert (status, out.split()[0]) == (1, "ready"), err
        holder = lockrun(key, "sh", "-c", READY + "read line; exit 7", lock=lock, options=options, stdin=subprocess.PIPE)
        running(holder)
        if lock not in BREAKS["threads"]:
            assert not stranger_gets_it(other, key)
        assert ended(holder, "\n")[0] == 7
        other.got(key)
        other.released()

    at_any_speed(it_holds)


@pytest.mark.parametrize("lock", EXAMPLES)
def test_it_renews_while_the_command_runs(lock, lockrun, start):
    def it_renews(scale):
        key, other, lease = fresh_key(), start().contender(lock), lease_ms(lock) * scale
        options = ("--ttl", f"{lease}ms")
        holder = lockrun(key, "sh", "-c", READY + "read line", lock=lock, options=options, stdin=subprocess.PIPE)
        running(holder)
        time.sleep(2 * lease / 1000)
        assert not stranger_gets_it(other, key)
        assert ended(holder, "\n") == (0, "", "")

    at_any_speed(it_renews)  # a server that syncs to a busy disk is late for a short lease now and then


@pytest.mark.parametrize("lock", [*FENCED, LOCK])
def test_the_fencing_token(lock, lockrun):
    key = fresh_key()
    fences = [
        ended(lockrun(key, "sh", "-c", "echo ${LOCK_FENCE-none}", lock=lock, more={"LOCK_FENCE": "old"}))[1]
        for _ in range(2)
    ]
    if BY_NAME[lock].fenced:
        assert 0 < int(fences[0]) < int(fences[1]), fences
    else:
        assert fences == ["none\n"] * 2


# ---- exit status ----


def test_exit_status(lockrun, tmp_path):
    (tmp_path / "plain").write_text("no program")
    for command, status in {
        ("true",): 0,
        ("sh", "-c", "exit 3"): 3,
        ("sh", "-c", "kill -TERM $$"): 128 + signal.SIGTERM,
        ("sh", "-c", "kill -KILL $$"): 128 + signal.SIGKILL,
        ("/no/such/command",): 127,
        ("no-such-command",): 127,
        (tmp_path / "plain",): 126,
        (tmp_path,): 126,
    }.items():
        got = ended(lockrun(fresh_key(), *command))
        assert got[0] == status, (command, got)
        assert bool(got[2]) == (status in (126, 127)), got


def test_not_got_in_time(lockrun, start):
    key = fresh_key()
    start().contender(LOCK).got(key, lease=LONG_MS)
    for wait_ms in (0, 400):
        began = time.monotonic()
        status, out, err = ended(lockrun(key, "echo", "ran", options=("--wait", f"{wait_ms}ms")))
        assert (status, out) == (75, "") and key in err
        assert wait_ms / 1000 <= time.monotonic() - began < wait_ms / 1000 + SOON_S


@pytest.mark.parametrize("lock", {lock.setting: lock.name for lock in BY_NAME.values() if lock.server}.values())
def test_its_server_is_away_or_not_set(lock, lockrun, stack):
    setting = BY_NAME[lock].setting
    unset = {setting: "", "DATABASE_URL": ""}
    gone = with_closed_port(stack.addresses[setting])
    for more, word in ((unset, setting), ({setting: gone}, "")):
        began = time.monotonic()
        status, out, err = ended(lockrun(fresh_key(), "echo", "ran", lock=lock, more=more, options=("--wait", "300ms")))
        assert (status, out) == (69, "") and word in err and err, err
        assert time.monotonic() - began < SOON_S


def with_closed_port(addresses):
    if "://" not in addresses:
        return "127.0.0.1:1"
    return ",".join(with_port(address, 1) for address in addresses.split(","))


# ---- endings ----


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_are_passed_on(number, lockrun, start):
    key, other = fresh_key(), start().contender(LOCK)
    trap = f"trap 'echo told; exit 9' {number.name[3:]}; " + READY + "while :; do sleep 0.05; done"
    holder = lockrun(key, "sh", "-c", trap)
    running(holder)
    holder.send_signal(number)
    assert ended(holder)[:2] == (9, "told\n")
    other.got(key)
    plain = lockrun(fresh_key(), "sh", "-c", READY + "exec sleep 30")  # one that does not take it dies of it
    running(plain)
    plain.send_signal(number)
    assert ended(plain)[0] == 128 + number


def test_a_signal_while_it_waits_ends_it(lockrun, start):
    key = fresh_key()
    start().contender(LOCK).got(key, lease=LONG_MS)
    waiter = lockrun(key, "echo", "ran", options=("--wait", "1m"))
    stays(lambda: waiter.poll() is None, "it waits", 0.3)
    waiter.send_signal(signal.SIGTERM)
    assert ended(waiter)[:2] == (-signal.SIGTERM, "")


def test_a_killed_lockrun_takes_its_command_with_it(lockrun, start):
    key, other = fresh_key(), start().contender(LOCK)
    holder = lockrun(key, "sh", "-c", READY + "trap '' TERM INT HUP; while :; do sleep 0.05; done",
                     options=("--ttl", "600ms"))  # fmt: skip
    pid = running(holder)
    holder.kill()
    wait_until(lambda: not is_alive(pid), "the command is gone")
    other.got(key)


def test_killed_at_any_moment_it_leaves_no_command_behind(lockrun):
    """Also where it dies between starting the command and the command's asking to die with it."""
    marker = f"97{os.getpid()}.5"  # seconds that nobody else sleeps
    for round_ in range(40):
        holder = lockrun(fresh_key(), "sleep", marker, options=("--ttl", "500ms"))
        time.sleep(0.0005 * round_)
        holder.kill()
        holder.wait()
    wait_until(lambda: not sleeping(marker), "no command is left")


def sleeping(marker):
    found = subprocess.run(["pgrep", "-fx", f"sleep {marker}"], capture_output=True, text=True, check=False)
    return found.stdout.split()


def test_a_lost_lock_is_told(lockrun, stack):
    key = fresh_key()
    holder = lockrun(key, "sh", "-c", "trap 'echo told; exit 9' TERM; " + READY + "while :; do sleep 0.05; done",
                     options=("--ttl", "900ms"))  # fmt: skip
    running(holder)
    assert stack.redis.delete(f"oversell:lock:{key}") == 1
    status, out, err = ended(holder)
    assert (status, out) == (9, "told\n") and "lost" in err


def test_a_server_that_stays_away_for_a_lease_has_lost_the_lock(lockrun, stack):
    """Nobody has prolonged it; away for less, it has not."""
    def it_stays_away(scale):
        with proxies(stack.addresses, "REDIS_URL") as (through, servers):
            holder = lockrun(fresh_key(), "sh", "-c", "trap 'echo told; exit 9' TERM; " + READY + "while :; do sleep 0.05; done",
                             more=through, options=("--ttl", f"{2 * scale}s"))  # fmt: skip
            running(holder)
            servers[0].refuse = True
            servers[0].cut()
            time.sleep(0.8 * scale)
            servers[0].refuse = False
            time.sleep(1.5 * scale)
            assert holder.poll() is None, holder.stderr.read()
            servers[0].refuse = True
            servers[0].cut()
            status, out, err = ended(holder)
        assert (status, out) == (9, "told\n") and "lost" in err

    at_any_speed(it_stays_away)


@pytest.mark.parametrize("lock", EXAMPLES)
def test_without_renewal_the_lease_ends_and_the_command_is_told(lock, lockrun):
    def it_ends(scale):
        lease, began = lease_ms(lock) * scale, time.monotonic()
        holder = lockrun(fresh_key(), "sleep", "600", lock=lock, options=("--ttl", f"{lease}ms", "--no-renew"))
        status, _, err = ended(holder)
        assert "timed out" not in err, "the server of a busy machine says nothing for 2 s now and then"
        assert status == 128 + signal.SIGTERM and "lost" in err, err
        assert time.monotonic() - began >= 0.9 * lease / 1000

    at_any_speed(it_ends)


def test_a_lost_lock_is_told_once(lockrun, stack):
    """A command that goes on all the same keeps its exit status."""
    def it_goes_on(scale):
        key, script = fresh_key(), f"trap 'echo told' TERM; {READY} for i in $(seq {6 * scale}); do sleep 0.3; done; exit 4"
        holder = lockrun(key, "sh", "-c", script, options=("--ttl", "600ms"))
        running(holder)
        stack.redis.delete(f"oversell:lock:{key}")
        status, out, _ = ended(holder)
        assert (status, out) == (4, "told\n")

    at_any_speed(it_goes_on)


# ---- what the command gets ----


def test_the_command_gets_its_own_descriptors_only(lockrun):
    """Not the lock's connection, which would keep the lock after lockrun's death; but those that lockrun was given."""
    read, write = os.pipe()
    list_open = "import os; print(sorted(int(n) for n in os.listdir('/proc/self/fd') if os.path.exists('/proc/self/fd/' + n)))"
    holder = lockrun(fresh_key(), "/usr/bin/python3", "-c", list_open, pass_fds=(write,))
    assert ended(holder)[1].strip() == str([0, 1, 2, write])
    os.close(read)
    os.close(write)


def test_the_command_gets_the_signals_as_they_were(lockrun):
    show = ["grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status"]
    plain = subprocess.run(show, capture_output=True, text=True, check=True).stdout
    assert ended(lockrun(fresh_key(), *show))[1] == plain


def test_two_at_the_same_time_take_turns(lockrun, tmp_path):
    log = tmp_path / "log"
    script = f"echo in >>{log}; sleep 0.1; echo out >>{log}"
    key = fresh_key()
    both = [lockrun(key, "sh", "-c", script, options=("--wait", "5m")) for _ in range(4)]
    assert [ended(one)[0] for one in both] == [0] * 4
    assert log.read_text().split() == ["in", "out"] * 4
