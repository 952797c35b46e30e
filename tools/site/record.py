"""Records schedules of a service, for the static site: counterexamples, and a sample of other schedules, with their states.

Usage: record.py FOLDER, inside `stack/stack run all --`. It starts build/order-service, asks the explorer for a counterexample of
each strategy without a fault, with a lease that ends, and with a crash, and records by POST /steps the states of these schedules,
of schedules/*.sched, and of the schedules with the fewest switches. It writes FOLDER/strategies.js and FOLDER/NAME.js for each strategy.
"""

import argparse
import concurrent.futures
import heapq
import html
import http.client
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
BUILD = Path(os.environ.get("BUILD") or ROOT / "build").resolve()
FAULTS = ("none", "expire", "crash")
SETTINGS = "s=1 q=1,1"
SEARCH_TIME = "2s"  # of each strategy and fault …
LONG_SEARCH_TIME = "20s"  # … and again where the strategy has a flaw that was not found
TREE_STATES = 60  # of each strategy without a fault, those with the fewest switches
FAULT_STATES = 25  # in addition, after the faults of each counterexample
START_S = 30
ATTEMPTS = 5
CALL_S = 60
TOKEN_STEPS = ("lock", "fence", "refuse")  # their value is a fencing token
TOKEN_IN_TEXT = re.compile(r'(fence_\w+\W{1,3}|revision\W{1,5}|^")(\d+)')  # of a request or an answer
RANDOM = re.compile(r"\b[0-9a-f]{8}-[0-9a-f-]{27}\b|\b[0-9a-f]{12,}\b")  # what a lock writes, and the product's number
# Values that differ from run to run and tell a reader nothing: times, snapshots, transaction numbers.
UNTOLD = re.compile(r"\d{4}-\d\d-\d\d[T ][\d:.+]+Z?|\d+:\d+:[\d,]*|\d{3,11}|\d{16}")
LEASE_MS = 100_000  # a lease's rest is rounded up to a multiple of this


class Service:
    """A separate service on a free port, while the block lasts."""

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory()
        port_file = Path(self.folder.name) / "port"
        arguments = ["--listen", "127.0.0.1:0", "--port-file", port_file]
        with open(Path(self.folder.name) / "log", "wb") as log:
            self.process = subprocess.Popen([BUILD / "order-service", *arguments], stdout=log, stderr=log)
        end = time.monotonic() + START_S
        while not (port_file.exists() and port_file.read_text().strip()):
            if self.process.poll() is not None or time.monotonic() > end:
                self.__exit__()
                sys.exit("record.py: the service did not start; run make, and look whether its servers are up")
            time.sleep(0.05)
        self.port = int(port_file.read_text().strip().rsplit(":", 1)[-1])
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        self.folder.cleanup()

    def call(self, method, path, body=None):
        """The answer's JSON. Asks again while all explorers are busy, and a few times if a schedule failed: on a busy machine a lease
        can end by itself."""
        end = time.monotonic() + CALL_S
        for attempt in itertools.count(1):
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=CALL_S)
            connection.request(method, path, body and json.dumps(body), {"Content-Type": "application/json"} if body else {})
            reply = connection.getresponse()
            text = reply.read()
            connection.close()
            if reply.status == 200:
                return json.loads(text)
            again = reply.status in (429, 503) or (reply.status == 422 and attempt < ATTEMPTS)
            if not again or time.monotonic() > end:
                raise RuntimeError(f"{method} {path} {body}: {reply.status} {text.decode()}")
            time.sleep(0.2)


SHOWN_BY = {"none": "load", "expire": "expire", "crash": "crash"}


def search(table, faults):
    """The explorer's row of each strategy of TABLE. A strategy whose flaw this fault shows has a counterexample in it."""
    found = searches([row["name"] for row in table], faults, SEARCH_TIME)
    missing = [row["name"] for row in table if SHOWN_BY[faults] in row["shown_by"].split("+") and not found[row["name"]]["witness"]]
    return {**found, **(searches(missing, faults, LONG_SEARCH_TIME) if missing else {})}


def searches(names, faults, search_time):
    """The explorer's row of each strategy, as POST /steps/search would answer."""
    command = [BUILD / "loadtest", "explore", "--servers", "environment", "--strategies", ",".join(names)]
    command += ["--actors", "2", "--stock", "1", "--quantities", "1", "--faults", faults, "--time", search_time, "--format", "json"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode not in (0, 1):
        sys.exit(f"record.py: {' '.join(map(str, command))} failed: {done.stderr}")
    result = json.loads(done.stdout)
    rows = result if isinstance(result, list) else result["rows"]
    return {row["strategy"]: row for row in rows}


def saved_schedules():
    """The schedules of schedules/*.sched in their short form, by strategy."""
    found = {}
    for file in sorted((ROOT / "schedules").glob("*.sched")):
        head = None
        for line in file.read_text().splitlines():
            words = line.split("#")[0].split()
            if words[:1] == ["strategy"]:
                orders = [word.split(":")[1] for word in words if re.fullmatch(r"[A-F]:\d+", word)]
                head = (words[1], f"{words[1]} s={words[words.index('stock') + 1]} q={','.join(orders)}")
            elif words[:1] == ["schedule"] and head:
                found.setdefault(head[0], []).append(f"{head[1]} {' '.join(words[1:])}")
    return found


def lesson_schedules(folder):
    """The schedules of the lessons' pages: {strategy: ([schedule…], [settings whose schedules a learner looks for…])}."""
    found = {}
    for file in sorted(folder.glob("*.html")):
        for run in re.findall(r'data-run="([^"]*)"', file.read_text()):
            schedule = json.loads(html.unescape(run)).get("schedule")
            if not schedule:
                continue
            words = schedule.split()
            settings = " ".join(word for word in words if not re.search("[>!]", word))
            schedules, starts = found.setdefault(words[0], ([], []))
            schedules.append(schedule)
            starts.append(settings)
    return found


def renumber(state):
    """Fencing tokens as 1, 2, 3 in their order: a lock counts on from run to run, and then no two states were equal."""
    steps = state["told"] + [step for order in state["orders"] for step in order["did"]]
    tokens = {step["value"] for step in steps if step["step"] in TOKEN_STEPS} | {state["database"]["fence"]}
    tokens |= {holder["fence"] for holder in (state["lock"] or {}).get("holders", [])}
    small = {token: rank for rank, token in enumerate(sorted(tokens - {None, 0}), 1)}

    def replace_value(value, is_fenced):
        if value is not None and UNTOLD.fullmatch(value):
            return "…"
        return str(small.get(int(value), value)) if is_fenced and value and value.isdigit() else value

    def replace(value):
        if isinstance(value, dict) and "values" in value:
            values = [replace_value(one, "fence_" in value["text"]) for one in value["values"]]
            return {**value, "values": values, "text": replace(value["text"]), "answer": replace(value["answer"])}
        if isinstance(value, dict):
            is_token = value.get("step") in TOKEN_STEPS
            return {
                key: small.get(part, part) if key == "fence" or (key == "value" and is_token) else replace(part)
                for key, part in value.items()
            }
        if isinstance(value, list):
            return [replace(part) for part in value]
        if isinstance(value, str) and "oken" in value:
            return re.sub(r"\d+", lambda number: str(small.get(int(number[0]), number[0])), value)
        if isinstance(value, str):
            return TOKEN_IN_TEXT.sub(lambda found: found[1] + str(small.get(int(found[2]), found[2])), value)
        return value

    if state["lock"] and state["lock"].get("ttl_ms"):
        state["lock"]["ttl_ms"] = -(-state["lock"]["ttl_ms"] // LEASE_MS) * LEASE_MS
    return replace(state)


def in_terms_of(state, before):
    """STATE with the random values that the same requests have in BEFORE, the state before it, which comes from another run."""
    names = {}
    for mine, theirs in zip(state["told"], before["told"]):
        texts = [json.dumps(event, sort_keys=True) for event in (mine, theirs)]
        if RANDOM.sub("", texts[0]) == RANDOM.sub("", texts[1]):
            names.update(zip(*(RANDOM.findall(text) for text in texts)))
    return json.loads(RANDOM.sub(lambda found: names.get(found[0], found[0]), json.dumps(state)))


class Recording:
    """The states of one strategy, each stored as what differs from the state before it."""

    def __init__(self, service, strategy):
        self.service = service
        self.strategy = strategy
        self.states = []
        self.parents = []
        self.moves = []
        self.index = {}  # the schedule of a state → its place
        self.aliases = {}  # other texts of a schedule → the place of its state

    def ask(self, schedule, move=None):
        question = {"schedule": schedule} if move is None else {"schedule": schedule, "move": move}
        return renumber(self.service.call("POST", "/steps", question))

    def keep(self, state, parent=None):
        place = self.index.get(state["schedule"])
        if place is None:
            place = self.index[state["schedule"]] = len(self.states)
            self.states.append(state if parent is None else in_terms_of(state, self.states[parent]))
            self.parents.append(parent)
            self.moves.append({})
        return place

    def move(self, place, move):
        """The place of the state after MOVE."""
        if move not in self.moves[place]:
            self.moves[place][move] = self.keep(self.ask(self.states[place]["schedule"], move), place)
        return self.moves[place][move]

    def follow(self, schedule):
        """Records SCHEDULE with all states at which the page stops. Returns their places."""
        full = self.ask(schedule)
        inserts = {told["move"] for told in full["told"] if told["step"] == "insert"}
        stops = [text for move, text in enumerate(full["history"]) if move + 1 not in inserts]
        places = [self.keep(self.ask(stops[0]))]
        for text in stops[1:]:
            last = re.match(r"([A-F])(?:>|(!\w+))", text.split()[-1])
            place = self.move(places[-1], last[1] + (last[2] or ""))
            if self.states[place]["schedule"] != text:
                place = self.keep(self.ask(text), places[-1])
            places.append(place)
        self.aliases[schedule] = places[-1]
        return places

    def spread(self, places, most):
        """Records up to MOST states that follow those of PLACES without another fault, with the fewest switches first."""
        end = len(self.states) + most
        queue = [(0, 0, place, "") for place in places]
        seen = set(places)
        heapq.heapify(queue)
        while queue and len(self.states) < end:
            switches, depth, place, last = heapq.heappop(queue)
            for order in self.states[place]["orders"]:
                if not order["can"]["step"]:
                    continue
                following = self.move(place, order["name"])
                if following not in seen:
                    seen.add(following)
                    heapq.heappush(queue, (switches + (last not in ("", order["name"])), depth + 1, following, order["name"]))

    def record(self, rows, saved, starts):
        self.follow(f"{self.strategy} {SETTINGS}")
        for row in rows.values():
            if row["witness"]:
                places = self.follow(row["witness"]["replay"])
                if "!" in row["witness"]["replay"]:
                    self.spread(places, FAULT_STATES)
        for schedule in saved:
            self.follow(schedule)
        for start in sorted({f"{self.strategy} {SETTINGS}", *starts}):
            self.spread(self.follow(start)[:1], TREE_STATES)

    def stored(self, place):
        """The state as what differs from its parent's: lists that only grew have what was added."""
        state, parent = self.states[place], self.parents[place]
        before = self.states[parent] if parent is not None else {}
        changed = {}
        for key, value in state.items():
            old = before.get(key)
            if key in ("told", "history") and old is not None and value[: len(old)] == old:
                if len(value) > len(old):
                    changed[f"{key}+"] = value[len(old) :]
            elif key not in before or value != old:
                changed[key] = value
        return {"parent": parent, "moves": self.moves[place], "state": changed}


def write_script(file, name, value):
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    file.write_text(f"(globalThis.oversellRecorded ??= {{}})[{json.dumps(name)}] = {text};\n")


def short_row(row):
    """What the page tells of a search."""
    kept = {key: row[key] for key in ("strategy", "faults", "schedules", "oversold", "coverage", "complete", "verdict")}
    return {**kept, "witness": row["witness"] and {"replay": row["witness"]["replay"], "explanation": row["witness"]["explanation"]}}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--strategies", help="names, separated by commas; without it all that can be explored")
    parser.add_argument("--lessons", type=Path, help="the folder of the lessons' pages, whose schedules are recorded too")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    with Service() as service:
        table = [row for row in service.call("GET", "/strategies")["strategies"] if row["explorable"] and row["available"]]
        if options.strategies:
            table = [row for row in table if row["name"] in options.strategies.split(",")]
        names = [row["name"] for row in table]
        found = {faults: search(table, faults) for faults in FAULTS}
        saved = saved_schedules()
        lessons = lesson_schedules(options.lessons) if options.lessons else {}

        def record(name):
            recording = Recording(service, name)
            rows = {faults: found[faults][name] for faults in FAULTS if name in found[faults]}
            schedules, starts = lessons.get(name, ([], []))
            recording.record(rows, saved.get(name, []) + schedules, starts)
            states = [recording.stored(place) for place in range(len(recording.states))]
            searched = {faults: short_row(row) for faults, row in rows.items()}
            write_script(options.folder / f"{name}.js", name, {"states": states, "aliases": recording.aliases, "searches": searched})
            return len(states)

        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            counts = list(pool.map(record, names))
    kept = ("name", "title", "why", "use_for", "guarantee", "shown_by", "lock", "fence", "combined", "explorable", "available", "reason")
    rows = [{key: row[key] for key in kept} for row in table]
    overview = {name: {faults: short_row(found[faults][name]) for faults in FAULTS if name in found[faults]} for name in names}
    write_script(options.folder / "strategies.js", "", {"strategies": rows, "searches": overview})
    size = sum(file.stat().st_size for file in options.folder.glob("*.js"))
    print(f"{sum(counts)} states of {len(names)} strategies, {size / 1e6:.1f} MB, in {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
