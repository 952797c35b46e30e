"""The class board over HTTP: names, solved lessons, votes, what the teacher sends to all, and who may see what."""

import os
import re
import subprocess
import time

import pytest

from lab import DOCUMENT, ROOT
from learner import Learner, bearer

QUESTION = {"text": "What will B read?", "answers": ["0", "1", "it waits"]}
ANON = {"Authorization": None}


@pytest.fixture(scope="module")
def classroom(stack, file_services):
    """A service with --classroom, whose .call brings the teacher's token."""
    service = file_services.start(stack.database(), "--classroom", listen="127.0.0.1:0")
    service.code, service.token = (
        re.search(rf"{what} +(\S+)", service.log)[1] for what in ("class code", "teacher's token")
    )
    return service


def join(classroom, name):
    """A learner with a name, as POST /sandboxes makes it."""
    reply = classroom.call("POST", "/sandboxes", {"name": name}, bearer(classroom.code))
    assert reply.status == 201, str(reply)
    return Member(classroom, reply.json)


class Member:
    def __init__(self, service, given):
        self.service, self.token, self.product = service, given["token"], given["product_id"]

    def call(self, method, target, body=None):
        return self.service.call(method, target, body, bearer(self.token))

    def news(self, version=0):
        reply = self.call("GET", f"/class/news?version={version}")
        assert reply.status == 200, str(reply)
        return reply.json

    def vote(self, question, answer):
        return self.call("PUT", "/class/vote", {"question": question, "answer": answer})


def board(classroom):
    reply = classroom.get("/class/board")
    assert reply.status == 200, str(reply)
    return reply.json


def on_board(classroom, learner):
    return next((one for one in board(classroom)["learners"] if one["product_id"] == learner.product), None)


def leave(classroom, *learners):
    for learner in learners:
        assert classroom.call("DELETE", f"/sandboxes/{learner.product}").status == 200


def test_names(classroom):
    named = join(classroom, "  Zoë 李 ")
    assert on_board(classroom, named) == {"product_id": named.product, "name": "Zoë 李", "solved": [], "voted": False, "away": False}
    unnamed = Learner(classroom, classroom.code)
    assert re.fullmatch(r"Learner \d+", on_board(classroom, unnamed)["name"])
    blank = join(classroom, "   ")
    assert on_board(classroom, blank)["name"].startswith("Learner ")
    before = len(board(classroom)["learners"])
    for name in ("a\nb", "\x1b[31m", "a\u202eb", "é" * 21, "x" * 41):
        reply = classroom.call("POST", "/sandboxes", {"name": name}, bearer(classroom.code))
        assert reply.problem == "invalid-order", f"{name!r}: {reply}"
    assert classroom.call("POST", "/sandboxes", {"name": 7}, bearer(classroom.code)).problem == "bad-request"
    assert len(board(classroom)["learners"]) == before, "a refused name takes no place"
    leave(classroom, named, unnamed, blank)
    assert on_board(classroom, named) is None


def test_the_teacher_s_own_product_is_not_on_the_board(classroom):
    reply = classroom.post("/sandboxes", {"name": "Teacher"})
    assert reply.status == 201 and board(classroom)["learners"] == []
    assert classroom.call("DELETE", f"/sandboxes/{reply.json['product_id']}").status == 200


def exercise(learner, stock):
    """A schedule that the learner runs to its end."""
    reply = learner.call("POST", "/steps", {"schedule": f"read-write s={stock} q=1,1 A>end B>end"})
    assert reply.status == 200 and reply.json["over"], str(reply)


def test_a_solved_lesson_needs_an_exercise(classroom):
    learner = join(classroom, "Ada")
    every = {"lessons": [f"{lesson:02}-x" for lesson in range(1, 24)]}
    refused = learner.call("PUT", "/class/solved", every)
    assert refused.problem == "exercise-missing" and "run the lesson's exercise" in refused.json["detail"], str(refused)
    assert learner.call("POST", "/steps", {"schedule": "read-write s=1 q=1,1 A>read"}).status == 200
    assert learner.call("PUT", "/class/solved", {"lessons": ["01-x"]}).problem == "exercise-missing", "it has not ended"
    for _ in range(2):
        exercise(learner, 1)
    assert learner.call("PUT", "/class/solved", {"lessons": ["01-x"]}).status == 200
    assert learner.call("PUT", "/class/solved", {"lessons": ["01-x", "02-x"]}).problem == "exercise-missing", "the same one counts once"
    assert learner.call("POST", "/steps/search", {"schedule": "read-write s=1 q=1,1"}).status == 200
    assert learner.call("PUT", "/class/solved", {"lessons": ["02-x"]}).status == 200, "a search is an exercise"
    assert learner.call("PUT", "/class/solved", every).problem == "exercise-missing"
    assert on_board(classroom, learner)["solved"] == [1, 2]
    other = join(classroom, "Bob")
    assert other.call("PUT", "/class/solved", {"lessons": ["01-x"]}).problem == "exercise-missing", "each learner has own ones"
    leave(classroom, learner, other)


def test_a_schedule_in_which_an_order_waits_forever_is_an_exercise(classroom):
    """The goal of lesson 12 is one: nobody can make a step, though the end of a session would help."""
    learner = join(classroom, "Ada")
    state = learner.call("POST", "/steps", {"schedule": "lock-table s=1 q=1,1 A>lock A!crash B>lock~"}).json
    assert not state["over"] and not any(order["can"]["step"] for order in state["orders"]), state
    assert learner.call("PUT", "/class/solved", {"lessons": ["12-x"]}).status == 200
    leave(classroom, learner)


def test_solved_lessons(classroom):
    learner = join(classroom, "Ada")
    for stock in range(3):
        exercise(learner, stock)
    reply = learner.call("PUT", "/class/solved", {"lessons": ["02-mutex", "01-lost-update"]})
    assert reply.json == {"lessons": [1, 2]}
    assert learner.call("PUT", "/class/solved", {"lessons": ["63-last"]}).status == 200
    assert on_board(classroom, learner)["solved"] == [1, 2, 63]
    for lesson in ("0-none", "64-none", "none", "", "1x", "-1", "99999999999999999999-big"):
        assert learner.call("PUT", "/class/solved", {"lessons": [lesson]}).problem == "invalid-order", lesson
    for body, problem in (
        ({"lessons": "01-x"}, "bad-request"),
        ({"lessons": [1]}, "bad-request"),
        ({}, "bad-request"),
        ({"lessons": ["01-x"] * 64}, "invalid-order"),
    ):
        assert learner.call("PUT", "/class/solved", body).problem == problem, f"{body}"
    assert on_board(classroom, learner)["solved"] == [1, 2, 63]
    leave(classroom, learner)


def test_a_vote_is_the_learner_s_own(classroom):
    ada, bob = join(classroom, "Ada"), join(classroom, "Bob")
    asked = classroom.post("/class/question", QUESTION)
    assert asked.status == 201, str(asked)
    question = asked.json["id"]
    assert ada.vote(question, 1).json == {"question": question, "answer": 1}
    assert ada.vote(question, 0).status == 200 and bob.vote(question, 0).status == 200
    assert ada.vote(question, 1).status == 200, "a vote can be changed"
    told = board(classroom)
    assert told["votes"] == [1, 1, 0] and all(one["voted"] for one in told["learners"])
    news = bob.news()
    assert news["vote"] == 0 and "votes" not in news and "learners" not in news
    assert news["question"] == {"id": question, **QUESTION, "open": True, "right": None}
    for answer, problem in ((3, "invalid-order"), (6, "invalid-order"), (-1, "invalid-order"), ("0", "bad-request")):
        assert bob.vote(question, answer).problem == problem, answer
    assert bob.vote(question + 1, 0).problem == "not-found"
    assert classroom.put("/class/vote", {"question": question, "answer": 0}).problem == "not-yours"
    assert classroom.post("/class/question/close", {"right": 3}).problem == "invalid-order"
    assert classroom.post("/class/question/close", {"right": 1}).json == {"right": 1}
    late = bob.vote(question, 1)
    assert late.problem == "question-closed" and "wait for the next one" in late.json["detail"]
    assert (bob.news()["question"]["open"], bob.news()["question"]["right"]) == (False, 1)
    leave(classroom, ada)
    assert board(classroom)["votes"] == [1, 0, 0], "the votes of a learner leave with the learner"
    assert classroom.post("/class/question", QUESTION).json["id"] > question
    assert board(classroom)["votes"] == [0, 0, 0] and bob.news()["vote"] is None
    leave(classroom, bob)


def test_questions_have_bounds(classroom):
    for change in (
        {"answers": ["one"]},
        {"answers": ["x"] * 7},
        {"answers": ["x", ""]},
        {"answers": ["x", "y" * 61]},
        {"answers": ["x", "\x1b"]},
        {"answers": ["x", "y", " x "]},
        {"text": ""},
        {"text": "x" * 161},
        {"text": "a\nb"},
    ):
        assert classroom.post("/class/question", {**QUESTION, **change}).problem == "invalid-order", f"{change}"
    assert classroom.post("/class/question", {"text": "x"}).problem == "bad-request"
    assert classroom.post("/class/question", {"text": "é" * 80, "answers": [f"{n}" + "y" * 59 for n in range(6)]}).status == 201


def test_a_question_is_removed(classroom):
    ada = join(classroom, "Ada")
    classroom.call("DELETE", "/class/question")  # of another test, if it is there
    assert classroom.call("DELETE", "/class/question").problem == "not-found"
    for close in (False, True):
        question = classroom.post("/class/question", QUESTION).json["id"]
        assert ada.vote(question, 1).status == 200
        if close:
            assert classroom.post("/class/question/close", {"right": 1}).status == 200
        reply = classroom.call("DELETE", "/class/question")
        assert (reply.status, reply.json) == (200, {"question": None})
        assert board(classroom)["question"] is None and board(classroom)["votes"] == []
        assert ada.news()["question"] is None and ada.news()["vote"] is None
        assert ada.vote(question, 1).problem == "not-found"
        assert classroom.post("/class/question/close", {}).problem == "not-found"
    assert classroom.post("/class/question", QUESTION).json["id"] > question
    leave(classroom, ada)


def test_what_the_teacher_sends(classroom):
    learner = join(classroom, "Ada")
    schedule = "read-write s=1 q=1,1 A>read"
    first = classroom.post("/class/push", {"schedule": schedule}).json["id"]
    assert learner.news()["push"] == {"id": first, "kind": "schedule", "text": schedule}
    assert classroom.post("/class/push", {"strategy": "mutex"}).json["id"] > first
    assert learner.news()["push"]["kind"] == "strategy"
    for body, problem in (
        ({"strategy": "mutex", "schedule": schedule}, "bad-request"),
        ({"schedule": "x" * 1001}, "invalid-order"),
        ({"schedule": "a\nb"}, "invalid-order"),
        ({"schedule": "rubbish s=1 q=1,1"}, "invalid-order"),
        ({"schedule": "batched s=1 q=1,1"}, "invalid-order"),
        ({"other": "x"}, "bad-request"),
    ):
        assert classroom.post("/class/push", body).problem == problem, f"{body}"
    assert classroom.post("/class/push", {"strategy": "no-such"}).status >= 400
    assert learner.news()["push"]["text"] == "mutex", "a refused one replaces nothing"
    assert classroom.post("/class/push", {}).status == 200 and learner.news()["push"] is None
    leave(classroom, learner)


def test_unchanged_news_are_short(classroom):
    ada, bob = join(classroom, "Ada"), join(classroom, "Bob")
    question = classroom.post("/class/question", QUESTION).json["id"]
    version = ada.news()["version"]
    assert ada.news(version) == {"version": version}
    bob.vote(question, 0)
    exercise(bob, 1)
    assert bob.call("PUT", "/class/solved", {"lessons": ["01-x"]}).status == 200
    assert ada.news(version) == {"version": version}, "what others do is no news"
    classroom.post("/class/question/close", {})
    assert ada.news(version)["question"]["open"] is False
    assert ada.call("GET", "/class/news?version=-1").problem == "bad-request"
    leave(classroom, ada, bob)
    assert ada.call("GET", "/class/news").problem == "unauthorized"


def test_forty_learners(classroom):
    learners = [join(classroom, f"Learner with a long name {index:02}") for index in range(40)]
    question = classroom.post("/class/question", QUESTION).json["id"]
    for index, learner in enumerate(learners):
        assert learner.vote(question, index % 3).status == 200
        exercise(learner, 1)
        assert learner.call("PUT", "/class/solved", {"lessons": [f"{index % 15 + 1:02}-x"]}).status == 200
    told = board(classroom)
    assert len(told["learners"]) == 40 and told["votes"] == [14, 13, 13]
    assert [one["solved"] for one in told["learners"]] == [[index % 15 + 1] for index in range(40)]
    leave(classroom, *learners)
    assert board(classroom)["learners"] == []


TEACHERS = (
    ("GET", "/class/board", None),
    ("GET", "/class/address.svg", None),
    ("POST", "/class/question", QUESTION),
    ("POST", "/class/question/close", {}),
    ("DELETE", "/class/question", None),
    ("POST", "/class/push", {}),
)


def test_who_may_what(classroom):
    learner = join(classroom, "Ada")
    for method, target, body in TEACHERS:
        assert learner.call(method, target, body).problem == "unauthorized", target
        for headers in (ANON, bearer(classroom.code), bearer("wrong")):
            assert classroom.call(method, target, body, headers).problem == "unauthorized", target
    for method, target, body in (
        ("GET", "/class/news", None),
        ("PUT", "/class/vote", {"question": 1, "answer": 0}),
        ("PUT", "/class/solved", {"lessons": []}),
    ):
        for headers in (ANON, bearer(classroom.code), bearer("wrong")):
            assert classroom.call(method, target, body, headers).problem == "unauthorized", target
    assert classroom.put("/class/solved", {"lessons": []}).problem == "not-yours", "the teacher is no learner"
    leave(classroom, learner)


def test_no_answer_has_a_token(classroom):
    """Everything that a learner can fetch, and what the teacher's page shows on the projector."""
    ada, bob = join(classroom, "Ada"), join(classroom, "Bob")
    classroom.post("/class/question", QUESTION)
    classroom.post("/class/push", {"strategy": "mutex"})
    targets = [target for target in DOCUMENT.tree["paths"] if "{" not in target and "get" in DOCUMENT.tree["paths"][target]]
    assert "/class/news" in targets and len(targets) > 15
    for target in [*targets, f"/products/{bob.product}", f"/live?product_id={bob.product}", "/page/class/board.js"]:
        reply = ada.call("GET", target)
        for secret in (classroom.token, bob.token, classroom.code):
            assert secret not in reply.text and secret not in str(reply.headers), f"GET {target} tells a learner a secret"
    for target, shows in (("/class", "Class board"), ("/class/board", classroom.code), ("/class/address.svg", "")):
        reply = classroom.get(target)
        assert shows in reply.text, target
        for secret in (classroom.token, ada.token, bob.token):
            assert secret not in reply.text, f"GET {target} shows a token"
    leave(classroom, ada, bob)


def test_without_a_class_there_is_no_board(services, database):
    service = services.start(database)
    for method, target, body in (*TEACHERS, ("GET", "/class/news", None), ("PUT", "/class/solved", {"lessons": []})):
        assert service.call(method, target, body).problem == "not-found", target


def test_a_service_on_loopback_says_how_others_can_reach_it(classroom):
    assert board(classroom)["address"] is None
    reply = classroom.get("/class/address.svg")
    assert reply.problem == "not-found" and "--listen 0.0.0.0:" in str(reply.json["detail"])


def test_the_address_of_the_page_is_shown_to_learners(classroom):
    address = {"Host": "192.0.2.7:8080"}
    assert classroom.call("GET", "/class/board", None, address).json["address"] == "http://192.0.2.7:8080"
    reply = classroom.call("GET", "/class/address.svg", None, address)
    assert reply.status == 200 and reply.header("Content-Type") == "image/svg+xml" and "<path" in reply.text


def test_the_page_knows_its_address_better_than_a_proxy_tells(classroom):
    """A proxy may send another Host header, and none that tells of TLS."""
    target = "/class/board?origin=https%3A%2F%2Fshop.example%3A8443"
    told = classroom.get(target).json
    assert (told["address"], told["address_of"]) == ("https://shop.example:8443", "page")
    reply = classroom.get("/class/address.svg?origin=https://shop.example")
    assert reply.status == 200 and "<path" in reply.text
    told = classroom.call("GET", "/class/board?origin=http://localhost:8080", None, {"Host": "192.0.2.7"}).json
    assert (told["address"], told["address_of"]) == (None, "loopback"), "the page is on this machine, whatever the Host header says"
    for scheme, first in (("https", "https"), ("https, http", "https"), ("HTTPS,http", "https"), ("http, https", "http"), ("httpsx", "http"), ("", "http")):
        address = classroom.call("GET", "/class/board", None, {"Host": "192.0.2.7", "X-Forwarded-Proto": scheme}).json["address"]
        assert address == f"{first}://192.0.2.7", scheme
    for origin in ("", "shop.example", "ftp://shop.example", "https://", "https://a/b", "https://a%20b", "https://a%22", "https://a:b", "http://a,b", f"https://{'a' * 300}"):
        for name in ("board", "address.svg"):
            reply = classroom.get(f"/class/{name}?origin={origin}")
            assert reply.problem == "bad-request" and "https://shop.example:8080" in reply.json["detail"], origin


CHANGES = (("POST", "question"), ("POST", "question/close"), ("POST", "push"), ("PUT", "vote"), ("PUT", "solved"))


@pytest.mark.parametrize("method, name", CHANGES)
def test_a_change_is_refused_from_another_page_as_a_form_and_if_it_is_too_long(classroom, method, name):
    for body, headers, problem in (
        ({}, {"Origin": "http://evil.example"}, "forbidden-origin"),
        (b"text=x", {"Content-Type": "application/x-www-form-urlencoded"}, "unsupported-media-type"),
        ({"text": "x" * 100_000}, {}, "payload-too-large"),
    ):
        reply = classroom.call(method, f"/class/{name}", body, headers)
        assert reply.problem == problem, str(reply)


def test_a_question_is_not_removed_from_another_page(classroom):
    assert classroom.call("DELETE", "/class/question", None, {"Origin": "http://evil.example"}).problem == "forbidden-origin"


@pytest.mark.long
def test_the_bench_plays_the_pages_of_a_class(classroom):
    """bench measures what open pages cost. Each of its pages is a learner's that asks and is answered, or the board."""
    learners = [join(classroom, f"L{number}") for number in range(8)]
    env = {**os.environ, "PAGES_LEARNERS": ",".join(learner.token for learner in learners), "ADMIN_TOKEN": classroom.token}
    begun = time.monotonic()
    ran = subprocess.run(
        ["wrk", "-t1", f"-c{len(learners) + 1}", "-d6s", "-s", ROOT / "bench/pages.lua", f"http://127.0.0.1:{classroom.port}"],
        env=env, capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    assert "Non-2xx" not in ran.stdout and "Socket errors" not in ran.stdout, ran.stdout
    assert 8 < int(re.search(r"(\d+) requests in", ran.stdout)[1]) < 40, "each asks about every 2.5 s"
    own = {learner.product for learner in learners}
    seen = [one for one in classroom.get("/sandboxes").json["sandboxes"] if one["product_id"] in own]
    assert len(seen) == 8 and all(one["idle_ms"] < (time.monotonic() - begun) * 1000 - 100 for one in seen), "each has asked"
    leave(classroom, *learners)
