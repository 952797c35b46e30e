"""The table of the ratios that bench measures: the two sides of each, and its goal."""

import fnmatch
from dataclasses import dataclass, field, replace
from statistics import median

from locks import Unavailable, all_locks
from testbed import HOT, LEARNERS, SPREAD, SPREAD_FIRST, Load, echoes_of

# What the speed of a side depends on: its name in JSON, what stands before and behind the count, and the counts that are tried.
TUNED = {
    "threads": (", ", "thread", ()),
    "clients": (", ", "client", (1, 2, 4, 8, 16, 32)),  # of pgbench
    "tuned_workers": ("; tuned: ", "worker", (1, 2, 4, 8, 16)),  # of the service, which is measured with its defaults as well
}


@dataclass
class Sample:
    """One round. Rates are per second; 0: the case has none."""

    value: float = 0.0  # what is measured; of two sides, their ratio
    numerator: float = 0.0
    denominator: float = 0.0
    tuned_value: float = 0.0  # value and numerator with the best number of workers
    tuned: float = 0.0
    facts: dict = field(default_factory=dict)  # stand beside the ratio

    def __post_init__(self):
        if self.denominator > 0:
            self.value = self.numerator / self.denominator
            self.tuned_value = self.tuned / self.denominator


@dataclass(frozen=True)
class Case:
    name: str
    measure: object  # (testbed, case, counts) → Sample
    goal: float = 0
    lower: bool = False  # is better
    against: str = ""  # for people; "": words tell
    words: object = None  # facts → text
    load: Load = None  # None: no shop is needed
    rival: str = ""  # another strategy
    tuned: tuple = ()  # of TUNED, in the sequence in which the counts are searched
    lock: str = ""
    server: str = ""  # of the lock
    one_key: bool = False
    threads: int = 0  # 0: as many as the command line says
    reference: object = None  # (testbed, threads) → a rate
    profiled: bool = False  # with --profile


# ---- the two sides --------------------------------------------------------------------------------


def measure_side(testbed, case, tuned, count, quick=False):
    """The rate of the side that depends on TUNED, with COUNT of them; 0 workers: the service's default."""
    if tuned == "clients":
        return testbed.pgbench(case.load, count, quick)
    return testbed.orders(replace(case.load, workers=count), quick)[0]


def find_best(testbed, case, tuned):
    """The count with which the side is fastest, in short measurements."""
    return max(TUNED[tuned][2], key=lambda count: measure_side(testbed, case, tuned, count, quick=True))


def against_pgbench(testbed, case, counts):
    workers = counts.get("tuned_workers", 0)
    return Sample(numerator=measure_side(testbed, case, "tuned_workers", 0),
                  tuned=measure_side(testbed, case, "tuned_workers", workers) if workers else 0.0,
                  denominator=measure_side(testbed, case, "clients", counts["clients"]))  # fmt: skip


def against(**change):
    """The case's load, and the same load with a CHANGE."""

    def measure(testbed, case, _counts):
        return Sample(numerator=testbed.orders(case.load)[0], denominator=testbed.orders(replace(case.load, **change))[0])

    return measure


def additive_ceiling(first, second):
    """The service, wrk and PostgreSQL or Redis share the same processors, so the times that an answer takes of each add up."""
    return 1 / (1 / first + 1 / second)


def beside_echo(testbed, case, counts):
    sample = against_pgbench(testbed, case, counts)
    sample.facts = {"echo_per_s": testbed.orders(echoes_of(case.load))[0], "pgbench_per_s": sample.denominator}
    if case.load.stock == 0:
        sample.facts["get_product_per_s"] = testbed.get(f"/products/{case.load.first}")
    return sample


def against_echo_and_pgbench(testbed, case, counts):
    seen = beside_echo(testbed, case, counts)
    return replace(seen, denominator=additive_ceiling(seen.facts["echo_per_s"], seen.facts["pgbench_per_s"]))


def against_echo_and_script(testbed, case, _counts):
    """How long PostgreSQL needs afterwards is a fact as well. The script comes first: it finds out whether there is a Redis."""
    testbed.need("redis")
    script = testbed.bare_cycles("redis-stock", testbed.connections)
    rate, seen = testbed.orders(case.load)
    echo = testbed.orders(echoes_of(case.load))[0]
    written = rate * testbed.seconds / (testbed.seconds + seen.written_s)
    return Sample(numerator=rate, denominator=additive_ceiling(echo, script),
                  facts={"echo_per_s": echo, "script_per_s": script, "written_s": seen.written_s, "written_per_s": written})  # fmt: skip


def latencies(testbed, case, _counts):
    middle, p99 = testbed.latencies(case.load)
    return Sample(p99 / middle, facts={"median_ms": middle, "p99_ms": p99})


def calls(testbed, case, _counts):
    system_calls, allocations, trips = testbed.calls(case.load)
    return Sample(system_calls, facts={"allocations": allocations, "round_trips": trips})


def memory(testbed, _case, _counts):
    return Sample(testbed.memory(1000))


def lock_against(testbed, case, counts):
    testbed.need(case.server)
    return Sample(numerator=testbed.lock_cycles(case.lock, counts["threads"], testbed.seconds * 1000, case.one_key),
                  denominator=case.reference(testbed, counts["threads"]))  # fmt: skip


def hand_over(testbed, case, counts):
    """The time of a hand-over in cycles of one who is alone: how much longer than its requests take somebody waits. Both together take
    as long as one side of another ratio: there are many locks."""
    testbed.need(case.server)
    alone = testbed.lock_cycles(case.lock, 1, testbed.seconds * 250)
    middle, wake_ups, together = testbed.hand_overs(case.lock, counts["threads"], testbed.seconds * 750)
    if middle <= 0:
        raise Unavailable("the lock was handed over in no time")
    return Sample(numerator=alone, denominator=1000 / middle,
                  facts={"hand_over_ms": middle, "cycle_ms": 1000 / alone, "wake_ups_per_release": wake_ups, "together": together})  # fmt: skip


# ---- the table ------------------------------------------------------------------------------------

STATEMENT, FOR_UPDATE, DECREMENT = (Load(name) for name in ("atomic-statement", "select-for-update", "atomic-decrement"))
BATCHED = Load("batched", connections=256)  # so that there is something to combine
ACROSS = Load("atomic-statement", first=SPREAD_FIRST, products=SPREAD)
SEARCHED = {"tuned": ("clients", "tuned_workers"), "profiled": True}
PGBENCH = {"against": "pgbench", "measure": against_pgbench, **SEARCHED}
FEW = {"goal": 0.95, "against": "16 connections", "measure": against(connections=16)}
LATENCIES = {"goal": 3, "lower": True, "measure": latencies, "words": "p99 {p99_ms:.1f} ms; median {median_ms:.1f} ms".format_map}
CALLS = {"lower": True, "measure": calls, "words": "system calls an order; {allocations:.1f} allocations; {round_trips:.2f} round trips".format_map}
ALL_THREADS = {"tuned": ("threads",)}
EIGHT = {"tuned": ("threads",), "threads": 8}  # for one key
HAND_OVER = {"lower": True, "measure": hand_over, "words": "{hand_over_ms:.2f} ms; alone {cycle_ms:.2f} ms; {wake_ups_per_release:.1f} wake-ups".format_map}


CASES = (
    Case("hot/atomic-statement", goal=1, load=STATEMENT, **PGBENCH),
    Case("hot/select-for-update", goal=1, load=FOR_UPDATE, **PGBENCH),
    Case("hot/atomic-decrement", goal=1, load=DECREMENT, **PGBENCH),
    Case("spread/atomic-statement", beside_echo, 0.8, against="pgbench", load=ACROSS, **SEARCHED),
    Case("crowd/512-vs-16", load=replace(STATEMENT, connections=512), **FEW),
    Case("crowd/select-for-update", load=replace(FOR_UPDATE, connections=512), **FEW),
    Case("crowd/atomic-decrement", load=replace(DECREMENT, connections=512), **FEW),
    Case("latency/atomic-statement", load=replace(STATEMENT, connections=64), **LATENCIES),
    Case("latency/select-for-update", load=replace(FOR_UPDATE, connections=64), **LATENCIES),
    Case("latency/atomic-decrement", load=replace(DECREMENT, connections=64), **LATENCIES),
    Case("pages/30-open", against(pages=0), 0.95, against="no page open", load=replace(STATEMENT, pages=30)),
    # Both sides have a class, because a class has other limits.
    Case("pages/class-of-40", against(learners=0), 0.95, against="no page open", load=replace(STATEMENT, learners=LEARNERS, classroom=True)),
    Case("sold-out", against_echo_and_pgbench, 0.95, against="echo + pgbench", load=replace(STATEMENT, stock=0, counted="sold_out"), **SEARCHED),
    Case("batched/vs-select-for-update", against(strategy="select-for-update"), 8, against="select-for-update", load=BATCHED),
    Case("batched/hot", against_echo_and_pgbench, 0.8, against="echo + pgbench", load=BATCHED, **SEARCHED),
    Case("redis-stock/hot", against_echo_and_script, 0.8, against="echo + script in Redis", load=Load("redis-stock", kind="redis"), profiled=True),
    Case("calls/atomic-statement", load=STATEMENT, **CALLS),
    Case("calls/select-for-update", load=FOR_UPDATE, **CALLS),
    Case("calls/batched", load=BATCHED, **CALLS),
    Case("memory/1000-connections", memory, 32, True, "resident MiB", load=Load("", first=HOT)),
    Case("locks/redis-lock", lock_against, 0.45, against="redis-benchmark SET", lock="redis-lock", server="redis",
         reference=lambda testbed, threads: testbed.redis_sets(threads), **ALL_THREADS),
    Case("locks/zookeeper", lock_against, 0.8, against="a bare loop of its calls", lock="zookeeper", server="zookeeper",
         reference=lambda testbed, threads: testbed.bare_cycles("zookeeper", threads), **ALL_THREADS),
    Case("locks/zookeeper-contended", lock_against, 2, against="kazoo", lock="zookeeper", server="zookeeper", one_key=True,
         reference=lambda testbed, threads: testbed.kazoo_cycles(threads), **EIGHT),
    Case("locks/etcd", lock_against, 0.8, against="a bare loop of its calls", lock="etcd", server="etcd",
         reference=lambda testbed, threads: testbed.bare_cycles("etcd", threads), **ALL_THREADS),
)  # fmt: skip


def all_cases():
    """And one for each lock that is not the process's own."""
    return [*CASES, *(Case(f"hand-over/{lock}", lock=lock, server=server, **HAND_OVER, **EIGHT) for lock, server in all_locks().items())]


def choose(cases, only):
    """The cases that match a pattern of ONLY: lists of a name, a part of a name, or wildcards, with commas between. Raises ValueError if
    a pattern matches nothing."""
    wanted = set()
    for pattern in (pattern for each in only for pattern in each.split(",")):
        found = {case.name for case in cases if pattern and (fnmatch.fnmatchcase(case.name, pattern) or pattern in case.name)}
        if not found:
            raise ValueError(f"--only '{pattern}' matches nothing (valid: {' '.join(case.name for case in cases)})")
        wanted |= found
    return [case for case in cases if case.name in wanted or not only]


# ---- the result -----------------------------------------------------------------------------------


def counts_text(case, counts):
    """"pgbench, 2 clients; tuned: 3 workers": the counts that were used."""
    parts = [f"{before}{counts[name]} {noun}{'' if counts[name] == 1 else 's'}" for name, (before, noun, _) in TUNED.items() if counts.get(name)]
    return case.against + "".join(parts)


def row_of(case, counts, samples):
    """The case's result, from the samples of all rounds."""
    values = [sample.value for sample in samples]
    value = float(median(values))
    facts = {name: float(median(sample.facts[name] for sample in samples)) for name in samples[0].facts}
    reached = None if not case.goal else value <= case.goal if case.lower else value >= case.goal
    row = head(case, value, min(values), max(values), reached, case.words(facts) if case.words else counts_text(case, counts))
    for name, member in (("numerator_per_s", "numerator"), ("denominator_per_s", "denominator"), ("tuned_value", "tuned_value"), ("tuned_per_s", "tuned")):
        figure = float(median(getattr(sample, member) for sample in samples))
        row |= {name: figure} if figure > 0 else {}
    return row | {name: counts[name] for name in reversed(TUNED) if counts.get(name)} | facts


def head(case, value, least, most, reached, text):
    return {"name": case.name, "value": value, "min": least, "max": most, "goal": float(case.goal) if case.goal else None,
            "better": "lower" if case.lower else "higher", "reached": reached, "with": text}  # fmt: skip


def unavailable_row(case, reason):
    return head(case, None, None, None, None, case.against) | {"reason": reason}
