"""`loadtest explore shop.json` with commands to Redis: races, locks, waiting and faults, each with a service that is right and one that is
not."""

import json
import os
import shutil
import socket
import subprocess

import pytest
import redis

from basics import BUILD, START_S, die_with_parent, wait_until
from explored import described, explore, extended, result
from lab import PATIENCE
from length import short_only
from test_check import SAMPLES, sample_needs

# Loops of locks are found after few schedules; all of them take minutes.
ENOUGH = 150

# Further protections for the sample, in the place of its table.
SERVICES = '''
def own_lock(*words):
    """Waits for the lock over a connection that the process shares, or has alone."""
    redis = Redis()
    while redis.command("SET", "lock:1", "me", "NX", *words) is None:
        time.sleep(0.001)
    return redis


def without_expiry(product, quantity):
    redis = own_lock()
    sold = read_and_write(product, quantity)
    redis.command("DEL", "lock:1")
    return sold


def with_expiry(product, quantity):
    redis = own_lock("PX", 60000)
    sold = read_and_write(product, quantity)
    redis.command("DEL", "lock:1")
    return sold


shared = Redis() if PROTECTION == "shared" else None


def shared_connection(product, quantity):
    shared.command("INCR", "orders")
    return for_update(product, quantity)


def sell(product, quantity):
    with transaction() as cursor:
        cursor.execute("UPDATE product SET count = count - %s WHERE id = %s", (quantity, product))
        cursor.execute("INSERT INTO order_item (product_id, quantity) VALUES (%s, %s)", (product, quantity))
    return True


def counts_in_redis(product, quantity):
    """The race is in Redis: SQL decides nothing."""
    redis = Redis()
    redis.command("SET", "left", 1, "NX")
    redis.command("EXISTS", "left")
    if int(redis.command("EVAL", "return tonumber(redis.call('GET', KEYS[1]))", 1, "left")) < quantity:
        return False
    redis.command("SET", "left", 0)
    return sell(product, quantity)


def decrements_in_redis(product, quantity):
    redis = Redis()
    redis.command("SET", "left", 1, "NX")
    return int(redis.command("DECRBY", "left", quantity)) >= 0 and sell(product, quantity)


def pops(product, quantity):
    """A list with one element is the lock; BLPOP waits for it in Redis."""
    redis = Redis()
    if redis.command("SET", "made", 1, "NX"):
        redis.command("RPUSH", "lock", "free")
    redis.socket.sendall(b"*3\\r\\n$5\\r\\nBLPOP\\r\\n$4\\r\\nlock\\r\\n$1\\r\\n0\\r\\n")
    for _ in range(5):  # an array of two bulk strings
        redis.replies.readline()
    sold = read_and_write(product, quantity)
    redis.command("RPUSH", "lock", "free")
    return sold


def optimistic(product, quantity):
    """WATCH and MULTI: the second one's EXEC does nothing, and it refuses."""
    redis = Redis()
    redis.command("WATCH", "sold")
    if redis.command("EXISTS", "sold") == "1":
        return False
    redis.command("MULTI")
    redis.command("SET", "sold", 1)
    redis.socket.sendall(b"*1\\r\\n$4\\r\\nEXEC\\r\\n")
    done = redis.replies.readline() != b"*-1\\r\\n"
    return done and sell(product, quantity)


def watches_nothing(product, quantity):
    redis = Redis()
    if redis.command("EXISTS", "sold") == "1":
        return False
    redis.command("MULTI")
    redis.command("SET", "sold", 1)
    redis.socket.sendall(b"*1\\r\\n$4\\r\\nEXEC\\r\\n")
    redis.replies.readline()
    return sell(product, quantity)


pooled = []


def pooled_multi(product, quantity):
    """MULTI over a connection of a pool. An error of a command gives the connection back, as in most drivers."""
    redis = pooled.pop() if pooled else Redis()
    try:
        redis.command("EXISTS", "sold")
        redis.command("MULTI")
        redis.command("INCR", "orders")
        redis.command("EXEC")
        redis.replies.readline()
    except ConnectionError as error:
        if "has ended" not in str(error):
            pooled.append(redis)
        raise
    pooled.append(redis)
    return decrement(product, quantity)


def two_transactions(product, quantity):
    """A crash between the two loses a unit."""
    with transaction() as cursor:
        cursor.execute("UPDATE product SET count = count - %s WHERE id = %s AND count >= %s", (quantity, product, quantity))
        if cursor.rowcount == 0:
            return False
    with transaction() as cursor:
        cursor.execute("INSERT INTO order_item (product_id, quantity) VALUES (%s, %s)", (product, quantity))
    return True


def tries_again(product, quantity):
    """An order whose COMMIT has no answer is placed again."""
    try:
        return decrement(product, quantity)
    except psycopg2.Error:
        return decrement(product, quantity)


PROTECTIONS = {
    "without-expiry": without_expiry,
    "with-expiry": with_expiry,
    "shared": shared_connection,
    "counts": counts_in_redis,
    "decrements": decrements_in_redis,
    "pops": pops,
    "optimistic": optimistic,
    "watches-nothing": watches_nothing,
    "pooled-multi": pooled_multi,
    "two-transactions": two_transactions,
    "tries-again": tries_again,
'''


@pytest.fixture(scope="module")
def services(tmp_path_factory):
    """The Python sample with more protections."""
    return extended(tmp_path_factory.mktemp("services"), SERVICES)


def counterexample(found, verdict):
    shown = found["counterexample"]
    assert found["verdict"] == verdict and shown["reproduced"] == shown["replays"] >= 3, found
    return shown


def is_clean(found):
    assert found["verdict"] == "clean" and found["counterexample"] is None and found["complete"] and found["coverage"] == 1, found
    warnings_without_polls(found)
    return True


def warnings_without_polls(found):
    """The warnings of a search, without the one that names a command which was repeated and held; the member polls_on says the same."""
    others = [text for text in found["warnings"] if not text.startswith("A request repeats the command")]
    assert found["polls_on"] == (len(others) < len(found["warnings"])), found
    return others


def sample(language):
    sample_needs(language)
    return SAMPLES / language / "shop.json"


# ---- locks ------------------------------------------------------------------------------------------

LANGUAGES = short_only(["python"], ["python", "node", "java"])


@pytest.mark.long
@pytest.mark.parametrize("protection", ["redis-setnx", "redis-fenced"])
@pytest.mark.parametrize("language", LANGUAGES)
def test_a_lock_in_redis(language, protection):
    """The second request tries in vain once between two commands of the first that change Redis, so the search is small and complete."""
    found = result(sample(language), protection)
    assert is_clean(found) and found["polls_on"] and 10 <= found["schedules"] <= 20, found


@pytest.mark.long
@pytest.mark.parametrize("protection", short_only(["redis-setnx"], ["redis-setnx", "redis-lock"]))
@pytest.mark.parametrize("language", LANGUAGES)
def test_a_lock_that_expires(language, protection):
    shown = counterexample(result(sample(language), protection, "--faults", "expire", "--max-schedules", ENOUGH), "oversold")
    steps = [(step["actor"], step["text"].split()[0], step["answer"]) for step in shown["steps"]]
    assert ("A", "SET", "OK") in steps and ("B", "SET", "OK") in steps, shown
    assert "A!expire" in shown["schedule"] and "expired" in shown["cause"], shown
    fault = next(step for step in shown["steps"] if "fault" in step["text"])
    assert fault["text"] == "(fault: the key expires) lock:1" and fault["answer"] == "", fault


@pytest.mark.long
@pytest.mark.parametrize("language", LANGUAGES)
def test_the_row_refuses_an_order_whose_lock_has_ended(language):
    found = result(sample(language), "redis-fenced", "--faults", "expire", "--max-schedules", ENOUGH)
    assert found["verdict"] == "clean" and found["schedules"] == ENOUGH and warnings_without_polls(found) == [], found


@pytest.mark.long
def test_the_row_refuses_each_such_order():
    assert is_clean(result(sample("python"), "redis-fenced", "--faults", "expire"))


@pytest.mark.long
def test_a_key_without_expiry_is_named(services):
    found = result(services, "without-expiry", "--faults", "expire")
    assert is_clean(found) and "--expire-key" in found["warnings"][0], found
    options = ("--faults", "expire", "--max-schedules", ENOUGH, "--expire-key")
    found = result(services, "without-expiry", *options, "other:*")
    assert is_clean(found) and "--expire-key" in found["warnings"][0], found
    found = result(services, "without-expiry", *options, "lock:*")
    assert counterexample(found, "oversold") and warnings_without_polls(found) == [], found


@pytest.mark.long
def test_a_schedule_with_a_fault_is_replayed(tmp_path):
    options = ("--faults", "expire", "--max-schedules", ENOUGH, "--save", tmp_path)
    found = explore(sample("python"), "redis-setnx", *options)
    assert found.returncode == 1 and "A!expire" in found.stdout, found.stderr
    saved = tmp_path / "oversold.json"
    again = subprocess.run([BUILD / "loadtest", "explore", sample("python"), "--replay", saved], capture_output=True, text=True,
                           timeout=240 * PATIENCE, check=False)  # fmt: skip
    assert again.returncode == 1 and "(fault: the key expires) lock:1" in again.stdout, again.stderr
    other = explore(sample("python"), "redis-fenced", "--replay", json.loads(saved.read_text())["schedule"])
    assert other.returncode == 0 and "(fault: the key expires) lock:1" in other.stdout, other.stderr
    assert "No fault happened" not in other.stdout, other.stdout
    without = explore(sample("python"), "for-update", "--replay", saved)
    assert without.returncode == 0 and "No fault happened" in without.stdout, without.stdout + without.stderr


# ---- races and waiting ------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize(("wrong", "right"), [("counts", "decrements"), ("watches-nothing", "optimistic")])
def test_a_race_in_redis(services, wrong, right):
    shown = counterexample(result(services, wrong), "oversold")
    assert shown["sold"] == 2 and any(step["text"].startswith(("EVAL", "EXISTS")) for step in shown["steps"]), shown
    if wrong == "watches-nothing":
        assert [step["answer"] for step in shown["steps"] if step["text"] == "MULTI; SET sold 1; EXEC"] == ["[OK]", "[OK]"], shown
    assert is_clean(result(services, right))


@pytest.mark.long
def test_a_command_that_waits_in_redis(services):
    assert is_clean(result(services, "pops"))
    ran = explore(services, "pops", "--replay", "A>4 B>end A>end", "--format", "json")
    steps = json.loads(ran.stdout)["counterexample"]["steps"]
    waiting = [step for step in steps if step["waits"]]
    assert [(step["actor"], step["text"], step["waits_for"]) for step in waiting] == [("B", "BLPOP lock 0", ["a command"])], steps
    assert waiting[0]["answer"] == "[lock, free]", waiting


@pytest.mark.long
def test_requests_that_share_a_connection(services):
    ran = explore(services, "shared")
    assert ran.returncode == 3 and "requests A and B share a connection to Redis" in ran.stderr, ran.stderr
    assert is_clean(result(services, "shared", "--instances", 2))


# ---- crashes and lost answers -----------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("fault", ["crash", "cut"])
@pytest.mark.parametrize("protection", short_only(["for-update"], ["for-update", "statement", "redis-fenced"]))
@pytest.mark.parametrize("language", LANGUAGES)
def test_what_survives_crashes_and_lost_answers(language, protection, fault):
    found = result(sample(language), protection, "--faults", fault)
    assert is_clean(found), found
    # A single statement in autocommit leaves no place for a crash, which comes between two statements.
    no_place = (language, protection, fault) == ("node", "statement", "crash")
    assert [warning.split(":")[0] for warning in warnings_without_polls(found)] == (["No fault happened"] if no_place else []), found


@pytest.mark.long
def test_a_crash_between_two_transactions(services):
    assert is_clean(result(services, "two-transactions"))
    shown = counterexample(result(services, "two-transactions", "--faults", "crash"), "drift")
    assert "!crash" in shown["schedule"] and (shown["sold"], shown["left"]) == (0, 0), shown
    assert "crashed" in shown["cause"] and 503 in shown["answers"], shown


@pytest.mark.long
def test_a_transaction_of_redis_ends_with_a_crash(services):
    """What a crash leaves in a connection of a pool would be the next request's."""
    found = result(services, "pooled-multi", "--faults", "crash")
    assert is_clean(found) and found["warnings"] == [], found


@pytest.mark.long
def test_a_holder_that_crashes(services):
    """Without an expiry nobody gets the lock any more. With one, time passes when nothing else can happen."""
    assert counterexample(result(services, "without-expiry", "--faults", "crash"), "stuck")
    assert is_clean(result(services, "with-expiry", "--faults", "crash"))


@pytest.mark.long
def test_an_order_that_is_tried_again_after_a_lost_answer(services):
    assert is_clean(result(services, "tries-again"))
    shown = counterexample(result(services, "tries-again", "--faults", "cut"), "answers-lost")
    cut = next(step for step in shown["steps"] if "fault" in step["answer"])
    assert cut["text"] == "COMMIT" and shown["answers"] == [409, 409] and shown["sold"] == 1, shown


# ---- servers ----------------------------------------------------------------------------------------


@pytest.fixture
def server(tmp_path):
    """Starts a Redis of the user with further options, and returns its address."""
    started = []

    def start(*options):
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        command = [shutil.which("redis-server"), "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", tmp_path, *options]
        started.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, preexec_fn=die_with_parent))
        wait_until(lambda: answers(port), "redis-server answers", START_S)
        return f"redis://127.0.0.1:{port}"

    def answers(port):
        try:
            return redis.Redis(port=port).ping()
        except redis.RedisError:
            return False

    yield start
    for process in started:
        process.kill()
        process.wait(timeout=START_S)


@pytest.mark.long
def test_the_keys_of_a_real_redis_stay(server, services, tmp_path):
    """Nothing resets what the first schedule has left in it, so the service finds it sold out."""
    url = server()
    shutil.copy(services.parent / "shop.py", tmp_path)
    client = redis.Redis.from_url(url)
    client.set("mine", "1")
    ran = explore(described(tmp_path, redis=url), "decrements")
    assert client.get("mine") == b"1" and client.exists("left"), ran.stdout
    assert ran.returncode == 3 and "placed no order" in ran.stderr, ran.stderr
    assert is_clean(result(described(tmp_path, redis=url), "redis-setnx")) and client.get("mine") == b"1"


@pytest.mark.long
def test_a_redis_that_cannot_be_held(server, services, tmp_path):
    shutil.copy(services.parent / "shop.py", tmp_path)
    for url, words in [
        (server("--cluster-enabled", "yes"), "it is a cluster"),
        ("redis://127.0.0.1:1", '"redis" needs a Redis that explore can use'),
    ]:
        ran = explore(described(tmp_path, redis=url), "redis-setnx")
        assert ran.returncode == 3 and words in ran.stderr and ran.stderr.count("\n") == 1, ran.stderr
    ran = explore(described(tmp_path, redis="rediss://127.0.0.1:1"), "redis-setnx")
    assert ran.returncode == 2 and "TLS" in ran.stderr, ran.stderr


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--expire-key", "lock:*"), "--expire-key needs --faults expire"),
        (("--faults", "restart"), "expire"),
        (("--replay", "A>1 A!expire B!crash"), "at most one fault"),
        (("--replay", "A>1 A!restart"), "expire, crash or cut"),
    ],
    ids=str,
)
def test_options_that_do_not_fit(options, words):
    ran = explore(sample("python"), "naive", *options)
    assert ran.returncode == 2 and words in ran.stderr, ran.stderr


def test_expiry_needs_redis(services, tmp_path):
    shutil.copy(services.parent / "shop.py", tmp_path)
    env = {"PORT": "{port}", "DATABASE_URL": "{postgres}"}
    ran = explore(described(tmp_path, env=env), "naive", "--faults", "expire")
    assert ran.returncode == 2 and "{redis}" in ran.stderr, ran.stderr
