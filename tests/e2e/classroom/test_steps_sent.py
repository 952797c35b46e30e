"""What POST /steps tells of the requests that each order really sends, of the product's row, and of the lock."""

import json
import re

import pytest

from servers import holding, password
from test_steps import order, steps

READ = (
    "SELECT count, price, version, stock_kind, clock_timestamp(), pg_current_snapshot(), stock_epoch FROM product WHERE id = $1"
)


def requests(state, actor, step):
    """What ACTOR sent for the last of its events named STEP."""
    return [event for event in state["told"] if (event["actor"], event["step"]) == (actor, step)][-1]["sent"]


def brief(state, actor, step):
    """The same: the first two words, and the answer."""
    return [(" ".join(one["text"].split()[:2]), one["answer"]) for one in requests(state, actor, step)]


# ── PostgreSQL ──────────────────────────────────────────────────────────────────────────────────────────────


def test_the_statements_of_a_lost_update(shop):
    state = steps(shop, "read-write s=1 q=1,1 A>read B>end A>end")
    product = str(state["row"]["id"])
    begin, read = requests(state, "A", "read")
    assert begin == {"to": "postgresql", "text": "BEGIN ISOLATION LEVEL READ COMMITTED", "values": [], "answer": "BEGIN"}
    assert read == {"to": "postgresql", "text": READ, "values": [product], "answer": "1 row: stock 1, version 0"}
    (write,) = requests(state, "A", "write")
    assert write["text"].startswith("UPDATE product SET count = $2, version = version + 1, ")
    assert write["values"][:3] == [product, "0", "explore"] and write["answer"] == "UPDATE 1: stock 0"
    (insert,) = requests(state, "A", "insert")
    assert "INSERT INTO order_item" in insert["text"] and insert["values"][:2] == [product, "1"]
    assert insert["values"][3] is None and insert["answer"] == "1 row: amount 1.00"
    assert requests(state, "A", "commit") == [{"to": "postgresql", "text": "COMMIT", "values": [], "answer": "COMMIT"}]
    assert requests(state, "A", "end") == []
    assert state["row"] == {"id": int(product), "stock": 0, "version": 2, "token": None, "uncommitted": []}


def test_a_statement_that_waits_has_no_answer_yet(shop):
    state = steps(shop, "select-for-update s=1 q=1,1 A>write B>read~")
    waits = state["told"][-1]
    assert (waits["actor"], waits["step"], waits["waits_for"]) == ("B", "waits", ["A"])
    begin, read = waits["sent"]
    assert begin["text"].startswith("BEGIN") and begin["answer"] is None, "PostgreSQL answers both together"
    assert read["text"].endswith("WHERE id = $1 FOR UPDATE") and read["answer"] is None
    assert state["row"]["uncommitted"] == [{"order": "A", "stock": 0}]
    assert (state["row"]["stock"], state["row"]["version"]) == (1, 0), "what others see"
    assert all("waits_for" not in event for event in state["told"][:-1])

    over = steps(shop, state["schedule"], "A>end")
    (answered,) = requests(over, "B", "read")
    assert (answered["text"], answered["answer"]) == (read["text"], "1 row: stock 0, version 1") and answered["sent_before"]
    assert brief(over, "B", "end") == [("ROLLBACK", "ROLLBACK")]


def test_a_version_that_has_changed(shop):
    state = steps(shop, "optimistic s=2 q=1,1 A>read B>end A>retry")
    conflict, rollback = requests(state, "A", "retry")
    assert "WHERE id = $1 AND version = $4" in conflict["text"] and conflict["values"][3] == "0"
    assert (conflict["answer"], rollback["text"]) == ("UPDATE 0", "ROLLBACK")
    state = steps(shop, state["schedule"], "A>end")
    assert brief(state, "A", "read")[1] == ("SELECT count,", "1 row: stock 1, version 1")
    assert requests(state, "A", "write")[0]["values"][3] == "1" and state["row"]["version"] == 2


def test_an_error_has_its_sqlstate(shop):
    state = steps(shop, "serializable s=2 q=1,1 A>read B>end A>retry")
    assert requests(state, "A", "read")[0]["text"] == "BEGIN ISOLATION LEVEL SERIALIZABLE"
    assert brief(state, "A", "retry") == [
        ("UPDATE product", "ERROR 40001: could not serialize access due to concurrent update"),
        ("ROLLBACK", "ROLLBACK"),
    ]


def test_one_statement_is_the_whole_order(shop):
    state = steps(shop, "atomic-statement s=1 q=1,1 A>end B>end")
    (bought,), (refused,) = requests(state, "A", "commit"), requests(state, "B", "end")
    assert bought["text"] == refused["text"] and bought["text"].startswith("WITH taken AS ( UPDATE product SET count = count - $2")
    assert bought["text"].endswith("WHERE p.id = $1::bigint"), "it is whole"
    assert bought["answer"].startswith("1 row: amount 1.00") and refused["answer"] == "1 row: amount null, stock 0"
    assert order(state, "B")["outcome"] == "sold-out"


# ── the servers of locks ────────────────────────────────────────────────────────────────────────────────────


def lock_name(state):
    return f"product:{state['row']['id']}"


def owner(state):
    return {name: state["lock"][name] for name in ("owner", "key", "value")}


def test_redis_commands_and_scripts(shop):
    state = steps(shop, "redis-lock s=1 q=1,1 A>read B>lock~")
    (taken,) = requests(state, "A", "lock")
    command, key, token, *rest = taken["text"].split()
    assert (taken["to"], command, rest, taken["answer"]) == ("redis", "SET", ["NX", "PX", "36000000"], "OK")
    assert key.endswith(":lock:" + lock_name(state)) and len(token) == 32 and taken["values"] == []
    assert owner(state) == {"owner": "A", "key": lock_name(state), "value": token}
    assert 0 < state["lock"]["ttl_ms"] <= 36_000_000
    waits = state["told"][-1]
    assert (waits["step"], waits["waits_for"]) == ("waits", ["A"]) and waits["sent"][0]["answer"] == "nil"

    over = steps(shop, "redis-lock s=1 q=1,1 A>read A!expire B>end A>end")
    (ours,), (others) = requests(over, "B", "unlock"), requests(over, "A", "unlock")
    assert ours["text"].startswith("EVALSHA if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1])")
    assert re.fullmatch(r"KEYS\[1\] = .*:lock:product:\d+", ours["values"][0]) and len(ours["values"]) == 2
    assert ours["values"][1].startswith("ARGV[1] = ")
    assert (ours["answer"], [one["answer"] for one in others]) == ("1", ["0"]), "A's lock has ended"
    assert over["lock"]["owner"] is None and over["lock"]["ttl_ms"] is None


def test_a_lease_that_has_ended_and_a_key_without_an_end(shop):
    ended = steps(shop, "redis-lock s=1 q=1,1 A>read A!expire")
    assert owner(ended) == {"owner": None, "key": None, "value": None}
    for schedule in ("redis-setnx-forever s=1 q=1,1 A>lock A!crash", "redis-setnx s=1 q=1,1 A>setnx"):
        state = steps(shop, schedule)
        assert state["lock"]["owner"] == "A" and state["lock"]["value"] and state["lock"]["ttl_ms"] is None, schedule
    assert steps(shop, "redis-setnx s=1 q=1,1 A>expire")["lock"]["ttl_ms"] > 0


def test_the_row_refuses_an_old_token(shop):
    state = steps(shop, "redis-fenced s=1 q=1,1 A>read A!expire B>end A>end")
    (granted,), (registered,) = requests(state, "B", "lock"), requests(state, "B", "fence")
    assert granted["text"].startswith("EVALSHA if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end redis.call('INCR', KEYS[2])")
    token = granted["answer"].strip('"')
    assert registered["text"] == "UPDATE product SET fence_redis = $2 WHERE id = $1 AND fence_redis < $2 RETURNING id"
    assert (registered["values"][1], registered["answer"]) == (token, "UPDATE 1")
    refused, asked = requests(state, "A", "refuse")
    old = next(event["value"] for event in state["told"] if (event["actor"], event["step"]) == ("A", "fence"))
    assert refused["text"].endswith("AND fence_redis = $4 RETURNING pg_current_xact_id(), count")
    assert (refused["values"][3], refused["answer"]) == (str(old), "UPDATE 0") and old < int(token)
    assert asked["answer"] == f"1 row: fence_redis {token}" and state["row"]["token"] == int(token)
    assert state["row"]["version"] == 1, "A's write is not among them"


def test_a_vote_of_several_redis_servers(shop):
    state = steps(shop, "redlock s=1 q=1,1 A>read B>lock~")
    (taken,) = requests(state, "A", "lock")
    assert taken["text"].startswith("SET ") and taken["answer"] == "OK from a majority of 5 servers"
    tried, given_back = state["told"][-1]["sent"]
    assert tried["answer"] == "nil from a majority of 5 servers"
    assert given_back["text"].startswith("EVAL if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end")
    assert given_back["answer"] == "0 from a majority of 5 servers"
    alone = steps(shop, "redlock s=1 q=1,1 A!cut A!cut A!cut A>end")
    assert requests(alone, "A", "end")[0]["answer"] == "no majority of 5 servers: 2 agree, 0 do not, 0 refuse, 3 are silent"


def test_zookeeper_operations(shop):
    state = steps(shop, "zookeeper s=1 q=1,1 A>read B>lock~")
    created, listed = requests(state, "A", "lock")
    path = created["answer"]
    assert created["to"] == "zookeeper"
    assert created["text"] == f"create {path[:-10]}, ephemeral and sequential" and path[-10:].isdigit()
    assert listed["text"] == f"getChildren {path.rpartition('/')[0]}" and listed["answer"] == f"1 child: {path.rpartition('/')[2]}"
    assert state["told"][-1]["waits_for"] == ["A"]
    assert brief(state, "B", "waits") == [(f"getData {path},", "OK")]
    assert state["lock"]["value"].endswith("/" + path.rpartition("/")[2]) and state["lock"]["ttl_ms"] is None
    late = steps(shop, "zookeeper s=1 q=1,1 A>read A!expire B>read A>end")
    assert requests(late, "A", "unlock")[-1]["answer"] == "NoNode"


def test_etcd_transactions_and_leases(shop):
    state = steps(shop, "etcd-cas s=1 q=1,1 A>read B>lock~")
    lease, put = requests(state, "A", "lock")
    number = lease["answer"].split()[1].strip(",")
    assert (lease["to"], lease["text"], lease["answer"]) == ("etcd", "lease grant, TTL 36000 s", f"lease {number}, TTL 36000 s")
    shape = r"txn if create_revision\((\S+)\) = 0 then put\((\S+), (\w{32}), lease (\w+)\) else get\((\S+)\)"
    key, same, token, by, again = re.fullmatch(shape, put["text"]).groups()
    assert key == same == again and key.endswith("/locks/" + lock_name(state)) and by == number
    assert put["answer"].startswith("then: put; revision ")
    assert owner(state) == {"owner": "A", "key": lock_name(state), "value": f"{number}/{token}"}
    assert requests(state, "B", "waits")[1]["answer"].startswith(f"else: {key} = {token} ")
    over = steps(shop, state["schedule"], "A>end")
    assert requests(over, "A", "unlock")[0]["text"].startswith("txn if value(")
    assert [answer.split(";")[0] for _, answer in brief(over, "A", "unlock")] == ["then: deleted 1", "OK"]


def test_an_answer_that_etcd_sends_later(shop):
    state = steps(shop, "etcd s=1 q=1,1 A>read B>lock~")
    (watch,) = state["told"][-1]["sent"]
    assert watch["text"].startswith("watch(") and watch["answer"] is None and state["told"][-1]["waits_for"] == ["A"]
    over = steps(shop, state["schedule"] + " A>end B>lock")
    deleted = requests(over, "B", "lock")[0]
    assert deleted["sent_before"] and deleted["answer"] == "deleted"


def test_a_lock_in_a_table_has_its_own_connection(shop):
    state = steps(shop, "shedlock s=1 q=1,1 A>read A!expire B>end A>end")
    (taken,), (released,) = requests(state, "A", "lock"), requests(state, "A", "unlock")
    assert taken["connection"] == released["connection"] == "lock"
    assert taken["text"].startswith("INSERT INTO shedlock ") and taken["answer"] == "INSERT 0 1"
    assert taken["values"][0] == lock_name(state) and released["answer"] == "UPDATE 0"
    assert all("connection" not in sent for sent in requests(state, "A", "read"))


def test_a_mutex_sends_nothing(shop):
    state = steps(shop, "mutex s=1 q=1,1 A>read B>lock~")
    assert requests(state, "A", "lock") == [] == state["told"][-1]["sent"] and state["told"][-1]["waits_for"] == ["A"]
    assert owner(state) == {"owner": "A", "key": lock_name(state), "value": None}


def test_no_password_is_told(services, database, stack):
    """Not even by the orders that open the connections: these explorers are new."""
    service = services.start(database)
    secrets = {word for url in stack.environment.values() for word in re.findall(r"://[^/@]*:([^/@]+)@", url)}
    assert password(database) in secrets and len(secrets) > 1, "Redis has one too"
    for schedule in ("redis-lock s=1 q=1,1 A>end B>end", "redlock s=1 q=1,1 A>end B>end", "shedlock s=1 q=1,1 A>end B>end"):
        told = json.dumps(steps(service, schedule)["told"])
        assert "lock:" in told or "shedlock" in told
        assert not [secret for secret in secrets if secret in told] and "AUTH" not in told, schedule


# ── every run ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "schedule",
    [
        "read-write s=1 q=1,1 A>read B>end A>end",
        "select-for-update s=1 q=1,1 A>read B>read~ A>end",
        "optimistic s=2 q=1,1 A>read B>end A>end",
        "advisory-lock s=1 q=1,1 A>read B>lock~ A>end B>end",
        "redis-lock s=1 q=1,1 A>read B>lock~ A!expire B>end A>end",
        "redlock s=1 q=1,1 A>read B>lock~ A>end B>end",
        "zookeeper s=1 q=1,1 A>read B>lock~ A>end B>end",
        "etcd-cas s=1 q=1,1 A>read B>lock~ A>end B>end",
    ],
)
def test_the_same_schedule_sends_the_same(shop, schedule):
    """In every run, and in every shorter schedule; apart from times, tokens, and numbers that a server gives. A snapshot, which the
    insert stores, also names the transactions of others that were in progress, such as autovacuum's."""

    def same(text):
        text = text and re.sub(r"^\d+:\d+:[\d,]*…?$", "snapshot", text)
        return text and re.sub(r"(_c_)?[0-9a-f]{8}(-[0-9a-f]+){4}|\b(?=\w*\d)(\w{3,}|[\w.:-]{8,})\b|(?<=revision )\d+", "…", text)

    def told(state):
        for event in state["told"]:
            event["value"] = None if event["step"] in ("lock", "fence") else event["value"]
            for sent in event["sent"]:
                sent["values"] = [same(value) for value in sent["values"]]
                if sent["to"] != "postgresql":
                    sent["text"], sent["answer"] = same(sent["text"]), same(sent["answer"])
        return state["told"]

    full = steps(shop, schedule)
    whole = told(full)
    with holding(shop.database_url, "SELECT pg_current_xact_id()"):
        assert whole == told(steps(shop, schedule)) and any(event["sent"] for event in whole)
    for shorter in full["history"]:
        part = told(steps(shop, shorter))
        # The stock is that after the move, and a later move may answer.
        assert part == whole[: len(part)]
