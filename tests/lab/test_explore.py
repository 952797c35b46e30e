"""The explorer from outside: what every schedule of two orders comes to, the same in every run, and the stories."""

import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest
from length import short_only
from proxy import Proxy

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / os.environ.get("BUILD", "build")
LOADTEST = BUILD / "loadtest"
STORIES = sorted((ROOT / "schedules").glob("*.sched"))

# Strategies whose flaw plain concurrency shows: of how many schedules how many oversell.
SHOWN_BY_LOAD = {
    "read-write": (24, 22),
    "decrement": (24, 22),
    "mutex-early-release": (40, 20),
    "mutex-wrong-object": (376, 350),
    "redis-lock-early-release": (40, 20),
    "redis-registry-shared": (376, 350),
}
# Orders are combined there, so that their steps are not those of one order.
NOT_EXPLORED = {"batched", "redis-stock"}
# Of a lock around the transaction: who is first, and where the other one asks for the lock.
AROUND = {"mutex": 12, "lock-row": 12, "redis-lock": 12, "redis-fenced": 14}
# The same where the lock has a queue: a waiter joins, watches, and is woken.
QUEUES = {"zookeeper": 42, "zookeeper-herd": 42, "curator": 42, "etcd": 42, "redis-fair": 42, "etcd-fenced": 56}
# A lock that overlooks what happens between its look and its watch: of 42 schedules in how many a waiter is stuck.
OVERLOOKS = {"zookeeper-naive": 10}


@pytest.fixture(scope="module")
def servers(tmp_path_factory):
    """A private stack for all tests here, as environment variables."""
    folder = tmp_path_factory.mktemp("stack")
    stack = ROOT / "stack" / "stack"
    names = ["postgres", "redis", "redlock", "zookeeper", "etcd"]
    subprocess.run([stack, "up", "--dir", folder, "--while", str(os.getpid()), "--purge", *names],
                   check=True, timeout=600, stdout=subprocess.DEVNULL)  # fmt: skip
    try:
        lines = subprocess.run([stack, "env", "--admin", "--dir", folder], check=True, capture_output=True, text=True).stdout
        yield os.environ | dict(re.findall(r"^export (\w+)='?([^'\n]*)'?$", lines, re.M))
    finally:
        subprocess.run([stack, "down", "--dir", folder, "--purge"], check=True, timeout=600, stdout=subprocess.DEVNULL)


def explore(servers, *arguments, seconds=3600, program=LOADTEST):
    return subprocess.run(
        [program, "explore", "--servers", "environment", *arguments],
        capture_output=True, text=True, timeout=seconds, check=False, cwd=ROOT, env=servers,
    )  # fmt: skip


def rows_of(ran):
    assert ran.stdout, ran.stderr
    return {row["strategy"]: row for row in json.loads(ran.stdout)["rows"]}


@pytest.fixture(scope="module")
def every(servers):
    """Two orders of every strategy for the last unit, no faults."""
    ran = explore(servers, "--format", "json")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    rows = rows_of(ran)
    for name in NOT_EXPLORED:
        row = rows.pop(name)
        assert (row["verdict"], "step by step" in row["reason"]) == ("unavailable", True), row
    return rows


def published(faults):
    """What docs/strategies.md shows: by `make explore-docs`."""
    document = json.loads((ROOT / "docs" / "results" / f"explore-{faults}.json").read_text(encoding="utf-8"))
    return {row["strategy"]: counts(row) for row in document["rows"] if row["verdict"] != "unavailable"}


def counts(row):
    """The figures of a row, and of its search with larger orders where there was one."""
    figures = {key: row[key] for key in ("schedules", "complete", "oversold", "drift", "stuck_locks", "robbed", "two_holders")}
    return figures | ({"larger_orders": counts(row["larger_orders"])} if "larger_orders" in row else {})


@pytest.mark.long
def test_the_counts_that_are_published_are_these(every):
    assert published("none") == {name: counts(row) for name, row in every.items()}


def test_every_search_is_complete(every):
    assert len(every) >= 45
    for row in every.values():
        assert (row["complete"], row["coverage"]) == (True, 1.0), row
        stuck = OVERLOOKS.get(row["strategy"], 0)
        assert row["schedules"] == row["sold_rightly"] + max(row["oversold"], row["drift"]) + stuck, row
        assert (row["deadlocks"], row["undersold"], row["stuck_locks"]) == (0, 0, stuck), row
        larger = row["larger_orders"]
        assert (larger["complete"], larger["stock"], larger["quantities"], larger["faults"]) == (True, 3, [2, 2], "timeout")
        for figures in (row, larger):
            assert {figures[name] for name in ("false_refusals", "leaked_locks", "failed", "answers_wrong")} == {0}, row
        if row["strategy"] in SHOWN_BY_LOAD:
            assert larger["oversold"] > 0, row
        else:
            assert larger["schedules"] == larger["sold_rightly"], row


def test_a_fair_lock_is_searched_with_two_waiters(every):
    fair = {name: row["three_orders"] for name, row in every.items() if "three_orders" in row}
    assert fair.pop("zookeeper-naive")["stuck_locks"] > 0  # needs two preemptions
    assert set(fair) == {"redis-fair", "zookeeper", "zookeeper-herd", "zookeeper-fenced", "curator", "etcd", "etcd-fenced"}
    for row in fair.values():
        assert (row["quantities"], row["stock"], row["verdict"], row["stuck_locks"]) == ([1, 1, 1], 1, "ok", 0), row
        assert row["schedules"] >= 600 and row["complete"] and "bound" not in row, row


def apart_from_runs(row):
    """What a search found: all but how many schedules it ran for that. Further counterexamples are one for each kind then."""
    further = [key for key in ("larger_orders", "enough", "three_orders") if key in row]
    found = {key: value for key, value in row.items() if key not in ("run", "pruned", "coverage", "further_witnesses", *further)}
    found["witness"] = (row.get("witness") or {}).get("switches")
    # All schedules of three orders take hours without the reduction.
    return found | {key: apart_from_runs(row[key]) for key in further if key != "three_orders"}


@pytest.mark.parametrize(
    ("faults", "strategies"),
    [
        ("none", "read-write,mutex-wrong-object,redis-get-del,zookeeper"),
        pytest.param("none", "all", marks=pytest.mark.long),
        pytest.param("expire", "optimistic,lock-row,redis-lock,redis-fenced,fence-on-write", marks=pytest.mark.long),
        pytest.param("crash", "read-write,select-for-update,mutex,redis-lock,etcd-cas", marks=pytest.mark.long),
        pytest.param("timeout", "select-for-update,table-lock,redis-lock,zookeeper", marks=pytest.mark.long),
    ],
)
def test_a_reduced_search_says_the_same(servers, faults, strategies):
    """Of the schedules that differ only in the sequence of steps that do not affect each other it runs one, and counts all."""
    reduced, whole = (
        rows_of(explore(servers, "--strategies", strategies, "--faults", faults, "--reduce", how, "--format", "json"))
        for how in ("steps", "none")
    )
    assert {name: apart_from_runs(row) for name, row in reduced.items()} == {name: apart_from_runs(row) for name, row in whole.items()}
    explored = [name for name in whole if name not in NOT_EXPLORED]
    assert all(whole[name]["run"] == whole[name]["schedules"] for name in explored), whole
    assert sum(reduced[name]["run"] for name in explored) < sum(whole[name]["run"] for name in explored), reduced


def test_flaws_that_load_shows_are_found_and_no_others(every):
    for name, row in every.items():
        if name in SHOWN_BY_LOAD:
            assert (row["schedules"], row["oversold"]) == SHOWN_BY_LOAD[name], row
            assert row["share"] == pytest.approx(row["oversold"] / row["schedules"])
            assert row["verdict"] == "oversold-as-expected"
        elif name in OVERLOOKS:
            assert (row["oversold"], row["drift"], row["verdict"]) == (0, 0, "oversold-as-expected"), row
            assert "B>wait A>end B>lock~" in row["witness"]["replay"] and row["witness"]["reproduced"] == 10, row
            assert "waits for a lock that nobody will release" in row["witness"]["explanation"], row
        else:
            assert (row["oversold"], row["drift"], row["verdict"]) == (0, 0, "ok"), row
            assert row["witness"] is None
    for name, schedules in (AROUND | QUEUES).items():
        assert every[name]["schedules"] == schedules, every[name]


def test_every_witness_is_run_ten_times_and_explained(every):
    for name in SHOWN_BY_LOAD:
        witness = every[name]["witness"]
        assert witness["reproduced"] == 10, witness
        assert "both read 1" in witness["explanation"] and "no serial execution gives this result" in witness["explanation"]
        assert witness["ending"]["sold"] == 2, witness
    assert every["read-write"]["witness"]["replay"] == "read-write s=1 q=1,1 A>read B>end A>end"
    assert every["read-write"]["witness"]["switches"] == 2


def without_steps(row):
    """A row without what differs from run to run: the tokens that locks were granted."""
    row = row | {"witness": {key: value for key, value in row["witness"].items() if key != "steps"}}
    return row | ({"larger_orders": without_steps(row["larger_orders"])} if "larger_orders" in row else {})


def test_a_second_run_counts_the_same(servers, every):
    again = rows_of(explore(servers, "--strategies", ",".join(SHOWN_BY_LOAD), "--format", "json", "--jobs", "1"))
    for name, row in again.items():
        assert without_steps(row) == without_steps(every[name])


def test_a_row_can_be_judged_by_other_figures_than_it_promises(servers):
    """With them a witness is found for what is no oversell, and an unsafe row is as bad as it is seen to be."""
    ran = explore(servers, "--strategies", "read-write", "--never", "waited", "--format", "json")
    rows = rows_of(ran)
    assert (ran.returncode, rows["read-write"]["verdict"]) == (1, "broken"), rows
    assert rows["read-write"]["witness"]["ending"]["waited"] and rows["read-write"]["witness"]["reproduced"] == 10
    ran = explore(servers, "--strategies", "read-write", "--never", "undersold,stuck", "--format", "json")
    row = rows_of(ran)["read-write"]
    assert (ran.returncode, row["oversold"], row["verdict"], row["witness"]) == (0, 22, "ok", None), row


@pytest.mark.long
def test_two_holders_are_seen_without_faults(servers):
    """Otherwise `--never two-holders` would pass for a lock that excludes nobody."""
    ran = explore(servers, "--strategies", "mutex-wrong-object,mutex,redis-lock", "--never", "two-holders", "--format", "json")
    rows = rows_of(ran)
    assert {name: row["verdict"] for name, row in rows.items()} == {
        "mutex-wrong-object": "broken", "mutex": "ok", "redis-lock": "ok"
    }, rows  # fmt: skip
    assert (ran.returncode, rows["mutex-wrong-object"]["two_holders"] > 0) == (1, True), rows


def test_the_options_of_the_user_are_kept(servers):
    ran = explore(servers | {"PGOPTIONS": "-c default_transaction_read_only=on"}, "--strategies", "mutex")
    assert (ran.returncode, "read-only transaction" in ran.stderr) == (3, True), ran.stdout + ran.stderr
    kept = explore(servers | {"PGOPTIONS": "-c search_path=public -c work_mem=8MB"}, "--strategies", "mutex")
    assert kept.returncode == 0, kept.stdout + kept.stderr


def test_a_connection_that_fails_once_is_tried_again(servers):
    """As on a busy machine, where connecting may take too long. It is no failure of the strategy."""
    failures = [True]

    class FailsOnce(Proxy):
        @property
        def refuse(self):
            return failures.pop() if failures else False

        @refuse.setter
        def refuse(self, _):
            pass

    proxy = FailsOnce(servers["DATABASE_URL"])
    try:
        ran = explore(servers | {"DATABASE_URL": proxy.url}, "--strategies", "mutex", "--jobs", "1")
        assert (ran.returncode, failures) == (0, []), ran.stdout + ran.stderr
    finally:
        proxy.close()


def test_a_connection_string_that_hides_the_schema_is_refused(servers):
    """Its options replace PGOPTIONS, so the explorer would empty the tables of the user's own shop."""
    url = servers["DATABASE_URL"] + "?options=-csearch_path%3Dpublic"
    ran = explore(servers | {"DATABASE_URL": url}, "--strategies", "mutex")
    assert (ran.returncode, "search_path" in ran.stderr) == (3, True), ran.stdout + ran.stderr


def explore_until(servers, folder, seen, strike):
    """Starts a search of three strategies, one after the other, of which the second takes hours; when SEEN is there, STRIKE
    gets the process. Returns what was said, the rows stored, and the document."""
    names = "atomic-statement,optimistic,serializable"
    stored = folder / "rows.json"
    arguments = [LOADTEST, "explore", "--servers", "environment", "--strategies", names, "--actors", "4", "--jobs", "1",
                 "--checkpoint", folder / "kept", "--export-json", stored]  # fmt: skip
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=servers) as ran:
        try:
            until = time.monotonic() + 120
            while not (folder / "kept" / seen).exists():
                assert ran.poll() is None and time.monotonic() < until, ran.communicate()
                time.sleep(0.02)
            strike(ran)
            out, err = ran.communicate(timeout=600)
        finally:
            ran.kill()
    assert stored.exists(), out + err
    document = json.loads(stored.read_text(encoding="utf-8"))
    return ran.returncode, out + err, {row["strategy"]: row for row in document["rows"]}, document


def test_an_interrupted_run_keeps_the_rows_that_are_finished(servers, tmp_path):
    """The signal reaches the command alone, as from `kill`."""
    status, said, rows, document = explore_until(servers, tmp_path, "optimistic.checkpoint", lambda ran: ran.terminate())
    assert (status, document["interrupted"], document["missing"]) == (143, True, ["serializable"]), said
    assert (rows["atomic-statement"]["complete"], rows["atomic-statement"]["verdict"]) == (True, "ok"), rows
    assert (rows["optimistic"]["complete"], rows["optimistic"]["verdict"]) == (False, "unknown"), rows
    assert "atomic-statement" in said and "serializable" in said and "interrupted" in said.lower(), said


def test_the_rows_of_the_other_processes_are_kept_when_one_dies(servers, tmp_path):
    def kill_worker(ran):
        children = Path(f"/proc/{ran.pid}/task/{ran.pid}/children").read_text(encoding="utf-8").split()
        os.kill(int(children[0]), signal.SIGKILL)

    status, said, rows, document = explore_until(servers, tmp_path, "optimistic.checkpoint", kill_worker)
    assert (status, list(rows), document["missing"]) == (3, ["atomic-statement"], ["optimistic", "serializable"]), said
    assert "has died" in said and "optimistic, serializable" in said, said


def test_a_schedule_without_an_end_is_broken_off(servers, tmp_path):
    """All but the first order conflict at every try; the orders that are held then must not keep the search from ending."""
    program = build_mutant(
        tmp_path, "db/stock/counter.c", {"AND version = $4 RETURNING": "AND version = $4 AND version < 1 RETURNING"})  # fmt: skip
    ran = explore(servers, "--strategies", "optimistic,mutex", "--actors", "4", "--stock", "4", "--bound", "0", "--jobs", "1",
                  "--format", "json", program=program)  # fmt: skip
    rows = rows_of(ran)
    assert (ran.returncode, rows["optimistic"]["reason"]) == (3, "a schedule did not end"), ran.stderr
    assert rows["mutex"]["verdict"] == "unknown" and rows["mutex"]["schedules"] > 0, rows["mutex"]


def everything_of(postgres):
    """The process, and its children: PostgreSQL's sessions."""
    children = Path(f"/proc/{postgres}/task/{postgres}/children").read_text(encoding="utf-8").split()
    return [postgres, *map(int, children)]


@pytest.mark.long
@pytest.mark.parametrize("blow", short_only([signal.SIGKILL], [signal.SIGKILL, signal.SIGSTOP]), ids=["killed", "frozen"])
def test_a_search_that_loses_postgresql_ends(tmp_path, blow):
    """The rows that are finished are kept, and no process is left."""
    stack, folder = ROOT / "stack" / "stack", tmp_path / "stack"
    subprocess.run([stack, "up", "--dir", folder, "--while", str(os.getpid()), "--purge", "postgres"],
                   check=True, timeout=300, stdout=subprocess.DEVNULL)  # fmt: skip
    struck = []

    def strike(_):
        struck.extend(everything_of(int((folder / "postgres/data/postmaster.pid").read_text(encoding="utf-8").split()[0])))
        for pid in struck:
            os.kill(pid, blow)

    try:
        lines = subprocess.run([stack, "env", "--admin", "--dir", folder], check=True, capture_output=True, text=True).stdout
        own = os.environ | dict(re.findall(r"^export (\w+)='?([^'\n]*)'?$", lines, re.M))
        status, said, rows, document = explore_until(own, tmp_path, "optimistic.checkpoint", strike)
        assert (status, rows["atomic-statement"]["verdict"]) == (3, "ok"), said
        assert rows["optimistic"]["reason"] and document["missing"] == ["serializable"], said
    finally:
        for pid in struck if blow == signal.SIGSTOP else []:
            os.kill(pid, signal.SIGCONT)
        subprocess.run([stack, "down", "--dir", folder, "--purge"], check=False, timeout=300, stdout=subprocess.DEVNULL)


def test_a_search_that_was_cut_short_promises_nothing(servers):
    row = rows_of(explore(servers, "--strategies", "mutex", "--limit", "5", "--reduce", "none", "--format", "json"))["mutex"]
    assert (row["schedules"], row["complete"], row["share"], row["verdict"]) == (5, False, None, "unknown")
    assert 0 < row["coverage"] < 1
    told = explore(servers, "--strategies", "mutex", "--limit", "5", "--reduce", "none").stdout
    assert "0 kept their guarantee" in told and "1 were not searched completely" in told and "All as" not in told, told


def test_a_search_goes_on_from_its_checkpoint(servers, tmp_path):
    names, once = "read-write,mutex", ["--stock", "1", "--bound", "9", "--show", "2"]
    kept = ["--checkpoint", tmp_path / "kept", *once]
    whole = rows_of(explore(servers, "--strategies", names, *once, "--format", "json"))
    schedules = []
    for _ in range(4):
        ran = explore(servers, "--strategies", names, *kept, "--limit", "9", "--format", "json")
        assert ran.returncode == 0, ran.stderr
        rows = rows_of(ran)
        schedules.append((rows["read-write"]["schedules"], rows["mutex"]["schedules"]))
    assert schedules == [(9, 9), (18, 12), (24, 12), (24, 12)]
    assert rows == whole
    ran = explore(servers, "--strategies", "mutex", *kept, "--faults", "crash", "--format", "json")
    assert ran.returncode == 3 and "was saved by another search" in rows_of(ran)["mutex"]["reason"], ran.stdout
    file = tmp_path / "kept" / "mutex.checkpoint"
    damaged = bytearray(file.read_bytes())
    damaged[-3000] ^= 1
    file.write_bytes(damaged)
    ran = explore(servers, "--strategies", "mutex", *kept, "--format", "json")
    assert ran.returncode == 3 and "is incomplete" in rows_of(ran)["mutex"]["reason"], ran.stdout


def test_one_that_is_asked_for_by_name_and_cannot_be_had_is_no_success(servers):
    for names in ("batched", "mutex,batched"):
        ran = explore(servers, "--strategies", names, "--limit", "2")
        assert (ran.returncode, "step by step" in ran.stdout) == (3, True), ran.stdout
    assert explore({**servers, "REDIS_URL": "redis://127.0.0.1:1"}, "--strategies", "redis-lock").returncode == 3


def test_more_stock_and_larger_orders(servers):
    ran = explore(servers, "--strategies", "read-write,optimistic,serializable", "--stock", "3", "--quantities", "1,2",
                  "--format", "json")  # fmt: skip
    rows = rows_of(ran)
    assert rows["read-write"]["drift"] == 22 and rows["read-write"]["oversold"] == 0
    for name in ("optimistic", "serializable"):
        assert (rows[name]["verdict"], rows[name]["sold_rightly"]) == ("ok", rows[name]["schedules"]), rows[name]


# ---- faults ----------------------------------------------------------------------------------------------------


def faulty(servers, faults, strategies, *more):
    """Fault by fault the rows of STRATEGIES, and the exit status, which says whether they are as they promise."""
    ran = explore(servers, "--faults", faults, "--strategies", ",".join(strategies), "--format", "json", *more)
    return rows_of(ran), ran.returncode


FENCED = ["zookeeper-fenced", "etcd-fenced"]
DELETES_ANOTHERS = ["redis-del", "redis-get-del", "redis-setnx-repair"]


@pytest.mark.long
def test_what_carries_a_lock_ends_under_its_holder(servers):
    rows, status = faulty(servers, "expire", ["while-lease-holds", *FENCED])
    assert status == 0 and len(rows) == 16 + len(FENCED), rows
    shown = published("expire")
    assert {name: counts(row) for name, row in rows.items()} == {name: shown[name] for name in rows}
    for name in rows.keys() - FENCED:
        row = rows[name]
        assert (row["oversold"] > 0, row["verdict"]) == (True, "oversold-as-expected"), row
        assert "!expire" in row["witness"]["replay"] and row["witness"]["reproduced"] == 10, row
    for name in FENCED:
        assert (rows[name]["oversold"], rows[name]["drift"]) == (0, 0), rows[name]
    for row in rows.values():
        assert row["robbed"] == row["two_holders"] == row["stuck_locks"] == 0, row


def test_a_waiter_that_believes_has_a_lock_of_which_the_server_knows_nothing(servers):
    rows, status = faulty(servers, "expire", ["zookeeper-naive"], "--bound", "1")
    row = rows["zookeeper-naive"]
    assert (status, row["verdict"]) == (0, "oversold-as-expected"), row
    assert row["two_holders"] > 0 and row["stuck_locks"] > 0, row


@pytest.mark.long
def test_only_who_does_not_compare_in_one_step_releases_anothers_lock(servers):
    rows, status = faulty(servers, "expire", [*DELETES_ANOTHERS, "redis-lock"], "--bound", "2")
    assert status == 0, rows
    for name in DELETES_ANOTHERS:
        assert (rows[name]["robbed"] > 0, rows[name]["verdict"]) == (True, "oversold-as-expected"), rows[name]
    assert (rows["redis-lock"]["robbed"], rows["redis-lock"]["oversold"] > 0) == (0, True), rows["redis-lock"]


@pytest.mark.long
def test_a_fence_that_is_registered_before_the_read_keeps_every_schedule_right(servers):
    rows, status = faulty(servers, "expire", ["redis-fenced"])
    row = rows["redis-fenced"]
    assert (status, row["complete"], row["oversold"], row["drift"], row["verdict"]) == (0, True, 0, 0, "ok"), row


@pytest.mark.long
def test_orders_die_at_every_step(servers):
    stuck = ["redis-setnx-forever", "redis-setnx"]
    kept = ["safe", "while-lease-holds", "mutex"]
    rows, status = faulty(servers, "crash", [*kept, *stuck, "reentrant-mutex"], "--bound", "1")
    assert status == 0, rows
    for name in NOT_EXPLORED:
        assert rows.pop(name)["verdict"] == "unavailable"
    assert len(rows) >= 34
    for name in stuck:
        row = rows.pop(name)
        assert row["stuck_locks"] > 0 and row["oversold"] == 0, row
        assert "!crash" in row["witness"]["replay"], row
    lost = rows.pop("reentrant-mutex")
    assert lost["drift"] > 0 and lost["oversold"] == 0 and lost["verdict"] == "oversold-as-expected", lost
    assert "subtracted but in no order" in lost["witness"]["explanation"], lost
    for row in rows.values():
        # Who finds a unit locked that the dead will give back is turned away there, and only there.
        turned_away = row["undersold"] if row["strategy"] == "skip-locked" else 0
        assert row["sold_rightly"] + turned_away == row["schedules"], row
        assert (row["stuck_locks"], row["verdict"]) == (0, "ok" if row["complete"] else "unknown"), row


# ---- the explorer's own test: engines with one thing wrong --------------------------------------------------------

# File, what is changed there (each text once, by another), and what finds it.
EXPIRE = ["--faults", "expire", "--bound", "1"]
MUTANTS = {
    "no guard in the UPDATE": (
        "db/stock/counter.c", {"WHERE id = $1 AND count >= $2 AND": "WHERE id = $1 AND $2::bigint > 0 AND"},
        ["atomic-decrement"]),
    "no owner check in the release": (
        "lock/redis/lock.c",
        {"if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0":
         "return redis.call('DEL', KEYS[1])"}, ["redis-lock", *EXPIRE]),
    "no fence in the UPDATE": (
        "db/stock/fenced.c", {'"fenced", "", " = $4"': '"fenced", "", " + $4::bigint * 0 >= 0"'},
        ["redis-fenced", *EXPIRE]),
    "registered after the read": (
        "db/stock/fenced.c",
        {"enum db_status fence_register(struct db *db, int64_t product_id,":
         "static enum db_status later(struct db *db, int64_t product_id,",
         "static enum take_status take(struct db *db,":
         "enum db_status fence_register(struct db *d, int64_t id, const struct fence *f, int64_t *s, bool *registered)"
         "{ *s = f->token; *registered = id > 0 && d; return DB_OK; }\nstatic enum take_status take(struct db *db,",
         "    status = stock_write(db, registered ?":
         "    int64_t stored; bool done; if (registered && later(db, want->product_id, &want->fence, &stored, &done) != DB_OK)"
         " return TAKE_CONFLICT;\n    status = stock_write(db, registered ?"},
        ["redis-fenced", *EXPIRE]),
    "no second read of the own key": (
        "lock/etcd/mutex.c",
        {'if (etcd_number(etcd_found(reply, 0), "create_revision") != place->created)': "if (place->created < 0)"},
        ["etcd", *EXPIRE]),
    "unlocked before COMMIT": (
        "service/engine/create_order.c", {"    if (s->span == SPAN_INSIDE_TX)\n        unlock(p, outcome);": "    unlock(p, outcome);"},
        ["mutex"]),
}  # fmt: skip

# The same, found by a search with the defaults alone: file, changes, the strategy, what its row says.
SEEN_BY_DEFAULT = {
    "the read shares the row's lock": (
        "db/stock/counter.c", {'id = $1 FOR UPDATE",': 'id = $1 FOR SHARE",'}, "select-for-update", "deadlock"),
    "a guard that asks for one unit": (
        "db/stock/counter.c", {"WHERE id = $1 AND count >= $2 AND": "WHERE id = $1 AND count >= 1 AND"},
        "atomic-decrement", "more units were sold than the stock had"),
    "a guard that is too strict by one": (
        "db/stock/counter.c", {"WHERE id = $1 AND count >= $2 AND": "WHERE id = $1 AND count > $2 AND"},
        "atomic-decrement", "an order without competitors ends as conflict"),
    "the last unit is never sold": (
        "db/stock/stock_impl.c", {"if (ret_taken->seen < want->quantity) {": "if (ret_taken->seen <= want->quantity) {"},
        "select-for-update", "an order without competitors ends as sold-out, although enough units are left"),
    "buckets are swept without their locks": (
        "db/stock/buckets.c", {"count > 0 ORDER BY no FOR UPDATE) AS held": "count > 0 ORDER BY no) AS held"},
        "bucketed", "schedules"),
    "units that others hold count as sold": (
        "db/stock/units.c", {"? TAKE_BUSY : TAKE_CONFLICT;": "? TAKE_SOLD_OUT : TAKE_CONFLICT;"},
        "skip-locked", "refused as sold out although enough units were left"),
    "a lock's time limit answers sold-out": (
        "service/engine/create_order.c", {"    case LOCK_TIMED_OUT: return ORDER_LOCK_TIMEOUT;": "    case LOCK_TIMED_OUT: return ORDER_SOLD_OUT;"},
        "mutex", "refused as sold out although enough units were left"),
    "PostgreSQL's time limit answers sold-out": (
        "service/engine/create_order.c", {"    case DB_TIMEOUT: return ORDER_LOCK_TIMEOUT;": "    case DB_TIMEOUT: return ORDER_SOLD_OUT;"},
        "select-for-update", "refused as sold out although enough units were left"),
    "a process keeps its lock when sold out": (
        "service/engine/create_order.c", {"    if (p->held == 0)\n        return;": "    if (p->held == 0 || outcome == ORDER_SOLD_OUT)\n        return;"},
        "mutex", "an order ended without releasing its lock"),
    "a server keeps the lock when sold out": (
        "service/engine/create_order.c", {"    if (p->held == 0)\n        return;": "    if (p->held == 0 || outcome == ORDER_SOLD_OUT)\n        return;"},
        "redis-reentrant", "an order ended without releasing its lock"),
    "a lock that is counted as released": (
        "service/engine/create_order.c",
        {"        enum lock_status status = lock_release(p->lock, &p->grants[--p->held]);":
         "        p->held--;\n"
         "        enum lock_status status = outcome == ORDER_CREATED ? lock_release(p->lock, &p->grants[p->held]) : LOCK_OK;"},
        "zookeeper", "an order ended without releasing its lock"),
}  # fmt: skip


def mutated(file, changes):
    source = (ROOT / file).read_text(encoding="utf-8")
    for before, after in changes.items():
        assert source.count(before) == 1, f"{file} has changed: {before}"
        source = source.replace(before, after)
    return source


@pytest.mark.parametrize("mutant", [*MUTANTS, *SEEN_BY_DEFAULT])
def test_the_sources_still_have_what_is_changed(mutant):
    """Most of these are built only by the long tests."""
    file, changes, *_ = (MUTANTS | SEEN_BY_DEFAULT)[mutant]
    mutated(file, changes)


def build_mutant(folder, file, changes):
    """The load test with one source changed, linked from the objects that are there."""
    (folder / "mutant.c").write_text(mutated(file, changes), encoding="utf-8")
    flags = (BUILD / "obj/flags").read_text(encoding="utf-8").split()
    words = (BUILD / "obj/link-flags").read_text(encoding="utf-8").split()
    libraries = [word for word in words if word.startswith("-l")]
    archives = [BUILD / f"liboversell-{layer}.a" for layer in ("base", "db", "lock", "service", "loadtest")]
    subprocess.run([*flags, "-w", "-c", "-o", folder / "mutant.o", folder / "mutant.c"], check=True, cwd=ROOT, timeout=600)
    # The first definition of a symbol counts, so the changed object stands for its archive's member.
    subprocess.run(
        [*(word for word in words if word not in libraries), "-Wl,-z,muldefs", "-o", folder / "loadtest",
         BUILD / "obj/loadtest/cli/main.o", folder / "mutant.o", "-Wl,--start-group", *archives, "-Wl,--end-group",
         *libraries, "-lm"], check=True, cwd=ROOT, timeout=600)  # fmt: skip
    return folder / "loadtest"


@pytest.mark.parametrize("mutant", short_only(["no guard in the UPDATE"], MUTANTS))
def test_an_engine_with_one_thing_wrong_is_caught(servers, tmp_path, mutant):
    file, changes, arguments = MUTANTS[mutant]
    program = build_mutant(tmp_path, file, changes)
    ran = explore(servers, "--format", "json", "--strategies", *arguments, program=program)
    assert ran.returncode == 1, ran.stdout + ran.stderr
    row = rows_of(ran)[arguments[0]]
    assert row["verdict"] == "broken", row


@pytest.mark.parametrize("mutant", short_only(["the read shares the row's lock"], SEEN_BY_DEFAULT))
def test_the_defaults_see_one_thing_wrong_and_name_it(servers, tmp_path, mutant):
    file, changes, strategy, named = SEEN_BY_DEFAULT[mutant]
    program = build_mutant(tmp_path, file, changes)
    ran = explore(servers, "--format", "json", "--strategies", strategy, program=program)
    row = rows_of(ran)[strategy]
    assert (ran.returncode, row["verdict"]) == (1, "broken"), row
    assert named in row.get("broken_by", row.get("reason")), row
    if "broken_by" in row:
        assert row["witness"]["reproduced"] == 10, row


def test_the_victim_of_a_deadlock_is_the_one_that_closes_the_cycle(servers, tmp_path):
    program = build_mutant(tmp_path, "db/stock/counter.c", {'id = $1 FOR UPDATE",': 'id = $1 FOR SHARE",'})
    row = rows_of(explore(servers, "--strategies", "select-for-update", "--format", "json", program=program))
    row = row["select-for-update"]
    assert (row["schedules"], row["deadlocks"], row["complete"], row["oversold"]) == (10, 4, True, 0), row
    victims_close_the_cycle(servers, program)


@pytest.mark.long
def test_the_victim_is_the_same_for_a_role_that_looks_for_deadlocks_late(servers, tmp_path):
    """A role that is no superuser cannot set deadlock_timeout: the first that waits would look when the cycle is there."""
    url = servers["DATABASE_URL"]
    database = url.rsplit("/", 1)[1]
    role = f"CREATE ROLE late LOGIN PASSWORD 'late'; ALTER ROLE late SET deadlock_timeout = '300ms'; GRANT CREATE ON DATABASE {database} TO late"
    subprocess.run(["psql", "-qX", "-v", "ON_ERROR_STOP=1", servers["DATABASE_ADMIN_URL"], "-c", role], check=True, timeout=60)
    late = servers | {"DATABASE_URL": re.sub("//[^@]*@", "//late:late@", url)}
    program = build_mutant(tmp_path, "db/stock/counter.c", {'id = $1 FOR UPDATE",': 'id = $1 FOR SHARE",'})
    victims_close_the_cycle(late, program)
    row = rows_of(explore(late, "--strategies", "select-for-update", "--stock", "1", "--format", "json", program=program))
    row = row["select-for-update"]
    assert (row["schedules"], row["deadlocks"], row["complete"], row["verdict"]) == (10, 4, True, "broken"), row
    assert row["witness"]["reproduced"] == 10, row


def victims_close_the_cycle(servers, program):
    for waits, closes in ("AB", "BA"):
        ran = explore(servers, "--replay", f"select-for-update s=2 q=1,1 A>read B>read {waits}>write~ {closes}>end",
                      "--format", "json", program=program)  # fmt: skip
        replay = json.loads(ran.stdout)["replays"][0]
        assert replay["ending"]["outcomes"]["AB".index(closes)] == "conflict", replay
        assert (replay["ending"]["deadlock"], replay["ending"]["sold"]) == (True, 1), replay


@pytest.mark.long
def test_three_orders_are_searched_by_preemptions(servers):
    rows = rows_of(explore(servers, "--strategies", "mutex,select-for-update,atomic-decrement", "--actors", "3",
                           "--format", "json"))  # fmt: skip
    counted = {name: (row["schedules"], row["oversold"], row["coverage"]) for name, row in rows.items()}
    assert counted == {"mutex": (492, 0, 1.0), "select-for-update": (60, 0, 1.0), "atomic-decrement": (36, 0, 1.0)}


@pytest.mark.long
def test_a_bound_and_a_sample_promise_nothing_for_safe_rows(servers):
    few = rows_of(explore(servers, "--strategies", "read-write,optimistic", "--bound", "1", "--format", "json"))
    assert (few["read-write"]["schedules"], few["read-write"]["oversold"]) == (8, 6)
    assert (few["optimistic"]["schedules"], few["optimistic"]["verdict"]) == (8, "unknown")
    assert (few["optimistic"]["coverage"], few["optimistic"]["share"]) == (pytest.approx(0.375), None)
    search = ["--strategies", "read-write,optimistic", "--sample", "20", "--pct", "2", "--format", "json"]
    found = rows_of(explore(servers, *search))
    assert found == rows_of(explore(servers, *search))
    assert found["read-write"]["oversold"] > 0 and found["read-write"]["share"] is None, found["read-write"]
    assert found["optimistic"]["verdict"] == "unknown", found["optimistic"]
    sample = ["--strategies", "read-write,optimistic", "--sample", "60", "--format", "json"]
    one, same, other = (rows_of(explore(servers, *sample, "--seed", seed)) for seed in ("7", "7", "8"))
    assert one == same and one["read-write"]["oversold"] > 0
    assert [one[name]["blocked"] for name in one] != [other[name]["blocked"] for name in one]
    assert (one["optimistic"]["schedules"], one["optimistic"]["verdict"]) == (60, "unknown")


@pytest.mark.long
@pytest.mark.parametrize("story", STORIES, ids=lambda path: path.stem)
def test_the_stories_are_true(servers, story):
    ran = explore(servers, "--replay", story)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "✓ as expected" in ran.stdout and "✗" not in ran.stdout


@pytest.mark.long
def test_the_simplest_schedules_are_shown_on_demand(servers):
    ran = explore(servers, "--strategies", "read-write,mutex", "--show", "3")
    told = re.findall(r"^read-write s=1 q=1,1 (.*)\n  # A +B +stock\n", ran.stdout, re.M)
    assert (ran.returncode, len(told), told[0]) == (0, 3, "A>read B>end A>end"), ran.stdout
    switches = [len(script.split()) for script in told]
    assert switches == sorted(switches) and ran.stdout.count("both read 1") == 4, ran.stdout
    row = rows_of(explore(servers, "--strategies", "read-write", "--show", "3", "--format", "json"))["read-write"]
    assert [witness["reproduced"] for witness in [row["witness"], *row["further_witnesses"]]] == [10, 10, 10], row


def test_a_replay_is_told_in_columns(servers):
    ran = explore(servers, "--replay", "read-write s=1 q=1,1 A>read B>end A>end")
    assert ran.returncode == 0
    lines = [re.sub(r"  +", "  ", line.strip()) for line in ran.stdout.splitlines()]
    assert lines[1:6] == [
        "# A  B  stock", "1 read 1  1", "2  read 1  1", "3  write 0, commit  0", "4 write 0, commit  0"
    ]  # fmt: skip


def test_a_replay_prints_what_was_sent_on_demand(servers):
    story = "optimistic s=2 q=1,1 A>read B>end A>retry A>end"
    told = explore(servers, "--replay", story, "--sent")
    assert told.returncode == 0, told.stderr
    conflict = told.stdout.partition("\nA retry\n")[2].splitlines()
    assert conflict[0].startswith("    postgresql: UPDATE product SET count = $2, "), told.stdout
    assert conflict[1].endswith(", 1, explore, 0") and conflict[2] == "        → UPDATE 0", told.stdout
    steps = json.loads(explore(servers, "--replay", story, "--sent", "--format", "json").stdout)["replays"][0]["steps"]
    assert [sent["answer"] for step in steps if step["step"] == "retry" for sent in step["sent"]] == ["UPDATE 0", "ROLLBACK"]
    silent = json.loads(explore(servers, "--replay", story, "--format", "json").stdout)["replays"][0]["steps"]
    assert all("sent" not in step for step in silent)


def test_a_schedule_that_cannot_be_followed_is_said_so(servers):
    ran = explore(servers, "--replay", "mutex A>read B>read")
    assert ran.returncode == 1
    assert "B waits before its 'read'" in ran.stdout
    ran = explore(servers, "--replay", "mutex A>end B>write")
    assert ran.returncode == 1
    assert "B ended (sold-out) before its 'write'" in ran.stdout


def test_an_expectation_that_is_not_met_fails(servers, tmp_path):
    story = tmp_path / "wrong.sched"
    story.write_text("strategy mutex stock 1 orders A:1 B:1\nschedule A>end\nexpect sold 2\n")
    ran = explore(servers, "--replay", story)
    assert ran.returncode == 1
    assert "sold 1, where 2 was expected" in ran.stdout


@pytest.mark.long
def test_saved_witnesses_are_true_again(servers, tmp_path):
    ran = explore(servers, "--strategies", "read-write,decrement,mutex-early-release", "--save", tmp_path / "found")
    assert ran.returncode == 0, ran.stderr
    files = sorted((tmp_path / "found").iterdir())
    assert [file.name for file in files] == ["decrement.sched", "mutex-early-release.sched", "read-write.sched"]
    ran = explore(servers, *(word for file in files for word in ("--replay", file)))
    assert (ran.returncode, ran.stdout.count("✓ as expected")) == (0, 3), ran.stdout


@pytest.mark.parametrize(
    "arguments, complaint",
    [
        (["--strategies", "nobody"], "unknown strategy 'nobody'"),
        (["--actors", "9"], "--actors"),
        (["--pct", "2"], "--pct needs --sample"),
        (["--sent"], "--sent needs --replay"),
        (["--quantities", "1,x"], "--quantities '1,x' is not valid"),
        (["--never", "oversold,nonsense"], "--never: 'nonsense' is no figure of a schedule"),
        (["--replay", "nobody A>end"], "unknown strategy 'nobody'"),
        (["--replay", "mutex A>sleep"], "'A>sleep' is not valid"),
        (["--replay", "no/such.sched"], "No such file"),
    ],
)
def test_wrong_usage_starts_nothing(arguments, complaint):
    ran = subprocess.run([LOADTEST, "explore", *arguments], capture_output=True, text=True, timeout=600, check=False)
    assert ran.returncode == 2, ran.stderr
    assert complaint in ran.stderr
