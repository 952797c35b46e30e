"""What POST /steps tells of the requests that each order really sends, of the product's row, and of the lock."""

import re

import pytest

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


@pytest.mark.parametrize(
    "schedule",
    [
        "read-write s=1 q=1,1 A>read B>end A>end",
        "select-for-update s=1 q=1,1 A>read B>read~ A>end",
        "optimistic s=2 q=1,1 A>read B>end A>end",
        "advisory-lock s=1 q=1,1 A>read B>lock~ A>end B>end",
    ],
)
def test_the_same_schedule_sends_the_same(shop, schedule):
    """In every run, and in every shorter schedule; apart from times, and numbers that PostgreSQL gives."""

    def told(state):
        product = str(state["row"]["id"])
        for event in state["told"]:
            for sent in event["sent"]:
                sent["values"] = [
                    "product" if value == product else "a number or time" if value and re.match(r"\d{3}", value) else value
                    for value in sent["values"]
                ]
        return state["told"]

    full = steps(shop, schedule)
    whole = told(full)
    assert whole == told(steps(shop, schedule)) and any(event["sent"] for event in whole)
    for shorter in full["history"]:
        part = told(steps(shop, shorter))
        # The stock is that after the move, and a later move may answer.
        assert part == whole[: len(part)]
