"""A class on one service: the teacher may everything, a learner has one product, and nobody blocks a neighbour."""

import re

import pytest

from lab import Background, holding, holding_row, request_bytes, stays, wait_until, waiting_backends
from learner import Learner, bearer

ANON = {"Authorization": None}


@pytest.fixture(scope="module")
def classroom(stack, file_services):
    """A service with --classroom, and .code, the class code that it told at its start."""
    service = file_services.start(stack.database(), "--classroom", listen="127.0.0.1:0")
    service.code, service.token = (
        re.search(rf"{what} +(\S+)", service.log)[1] for what in ("class code", "teacher's token")
    )
    return service


@pytest.fixture
def learner(classroom):
    return Learner(classroom, classroom.code)


def test_the_code_is_for_the_teacher_to_tell(classroom):
    told = classroom.get("/classroom").json
    assert (told["classroom"], told["teacher"], told["code"]) == (True, True, classroom.code)
    for headers in (ANON, bearer(classroom.code), bearer("wrong")):
        told = classroom.call("GET", "/classroom", None, headers).json
        assert (told["teacher"], told["code"]) == (False, None), told
    owner = Learner(classroom, classroom.code)
    for token, owned in ((owner.token, owner.product), ("wrong", None)):
        assert classroom.call("GET", "/classroom", None, {"X-Sandbox": token}).json["owns"] == owned
    assert re.fullmatch("[a-z2-9]{4}-[a-z2-9]{4}", classroom.code)


def test_each_learner_has_a_product(classroom):
    one, other = Learner(classroom, classroom.code), Learner(classroom, classroom.code)
    assert one.product != other.product and one.token != other.token
    before = classroom.get("/classroom").json["learners"]
    assert before >= 2
    assert one.order().status == 201
    assert (classroom.audit(one.product)["sold"], classroom.audit(other.product)["sold"]) == (1, 0)
    reply = one.call("PUT", f"/strategy?product_id={one.product}", {"name": "read-write", "think_ms": 20})
    assert reply.status == 200, str(reply)
    assert classroom.get(f"/strategy?product_id={other.product}").json["name"] != "read-write"
    assert one.call("POST", f"/products/{one.product}/reset", {"stock": 7}).json["stock"] == 7


def test_what_is_another_s_is_left_alone(classroom, learner):
    other = Learner(classroom, classroom.code)
    order = {"product_id": other.product, "quantity": 1}
    for method, target, body in (
        ("POST", "/orders", order),
        ("POST", "/orders", {"product_id": 1, "quantity": 1}),
        ("POST", f"/products/{other.product}/reset", {"stock": 1}),
        ("PUT", f"/strategy?product_id={other.product}", {"name": "mutex"}),
        ("PUT", "/strategy", {"name": "mutex"}),
        ("POST", "/runs", {"strategies": ["mutex"], "product_id": other.product}),
        ("POST", "/runs", {"strategies": ["mutex"]}),
        ("DELETE", "/runs/999", None),
    ):
        assert learner.call(method, target, body).problem == "not-yours", f"{method} {target}"
    for method, target, body in (
        ("PUT", f"/products/{learner.product}", {"name": "x", "price": "1.00", "stock": 1}),
        ("POST", "/locks/door/hold", {"lock": "mutex", "hold_ms": 0}),
        ("POST", "/sandboxes", {}),
    ):
        assert learner.call(method, target, body).problem == "unauthorized", f"{method} {target}"
    assert classroom.audit(other.product)["orders"] == 0


def test_who_knows_no_secret_may_only_look(classroom, learner):
    own = {"product_id": learner.product, "quantity": 1}
    for headers in (ANON, bearer("wrong"), bearer(""), bearer(learner.token[:-1])):
        assert classroom.call("POST", "/orders", own, headers).problem == "unauthorized"
        assert classroom.call("POST", "/sandboxes", {}, headers).problem == "unauthorized"
    assert classroom.call("POST", "/orders", own, bearer(classroom.code)).problem == "unauthorized"
    assert classroom.call("GET", f"/live?product_id={learner.product}", None, ANON).status == 200


def test_a_learner_s_bounds_are_closer(classroom, learner):
    target = f"/strategy?product_id={learner.product}"
    assert learner.call("PUT", target, {"name": "mutex", "think_ms": 201}).problem == "invalid-order"
    assert learner.call("PUT", target, {"name": "mutex", "lock_wait_ms": 5001}).problem == "invalid-order"
    for change in (
        {"duration_ms": 2001},
        {"connections": 33},
        {"instances": 3},
        {"stock": 1001},
        {"think_ms": 51},
        {"requests": 4001},
        {"strategies": ["mutex"] * 5},
    ):
        run = {"strategies": ["mutex"], "product_id": learner.product, **change}
        assert learner.call("POST", "/runs", run).problem == "invalid-order", f"{change}"
    assert classroom.put(target, {"name": "mutex", "think_ms": 201}).status == 200, "the teacher's are wider"


def test_a_learner_s_run_changes_nothing_for_others(classroom, learner):
    before = classroom.get("/strategy").json
    mine = learner.call("PUT", f"/strategy?product_id={learner.product}", {"name": "select-for-update"}).json
    run = {"strategies": ["read-write"], "product_id": learner.product, "duration_ms": 300, "stock": 50}
    reply = learner.call("POST", "/runs", run)
    assert reply.status == 202, str(reply)
    target = reply.header("Location")
    seen = set()

    def ended():
        seen.add(classroom.get("/strategy").json["name"])
        return classroom.get(target).json["state"] != "running"

    wait_until(ended, "the run ends", 60)
    assert classroom.get(target).json["rows"][0]["oversold"] > 0
    assert seen == {before["name"]}, "the others' strategy was switched as well"
    assert classroom.get(f"/strategy?product_id={learner.product}").json == mine
    other = Learner(classroom, classroom.code)
    assert other.call("DELETE", target).problem == "not-yours"
    assert learner.call("DELETE", target).json["state"] == "done"


def test_an_order_that_waits_holds_up_no_neighbour(classroom, learner):
    other = Learner(classroom, classroom.code)
    learner.call("PUT", f"/strategy?product_id={learner.product}", {"name": "select-for-update"})
    with holding_row(classroom.database_url, learner.product):
        waiting = Background(learner.order)
        wait_until(lambda: waiting_backends(classroom.database_url) == 1, "an order waits for the row")
        assert other.order().status == 201
        assert other.call("PUT", f"/strategy?product_id={other.product}", {"name": "mutex"}).status == 200
        assert other.call("POST", f"/products/{other.product}/reset", {"stock": 5}).status == 200
        assert classroom.put("/strategy", {"name": "mutex"}).status == 200
    assert waiting.result().status == 201


def test_there_is_a_bound_to_sandboxes(services, database):
    service = services.start(database)
    told = service.get("/classroom").json
    assert told.pop("limits")["run"]["instances"] == 4
    assert told == {
        "classroom": False,
        "teacher": True,
        "code": None,
        "owns": None,
        "evicted": False,
        "learners": 0,
        "addresses": [],
        "container": False,
    }
    products = set()
    for _ in range(100):
        reply = service.post("/sandboxes", {})
        assert reply.status == 201, str(reply)
        products.add(reply.json["product_id"])
    assert len(products) == 100
    assert len({product % 256 for product in products}) == 100, "no two share a beginning of a sale"
    refused = service.post("/sandboxes", {})
    assert refused.problem == "overloaded" and "all 100 sandboxes are in use" in refused.json["detail"], str(refused)
    assert service.get("/classroom").json["learners"] == 100
    assert service.order(1).status == 201, "without a class nobody needs a token"


def test_when_settings_of_their_own_are_all_given_away(services, database):
    """They are for 256 products, and no call gives one back: a call for another is refused, also for a sandbox."""
    service = services.start(database)
    assert service.put("/strategy?product_id=987654321", {"name": "mutex"}).problem == "no-such-product"
    products = [service.product() for _ in range(257)]
    for product in products[:256]:
        reply = service.put(f"/strategy?product_id={product}", {"name": "mutex"})
        assert reply.status == 200, str(reply)
    before = service.get("/products").json
    for reply in (service.put(f"/strategy?product_id={products[256]}", {"name": "mutex"}), service.post("/sandboxes", {})):
        assert reply.problem == "overloaded" and "256 products have separate settings" in reply.json["detail"], str(reply)
    assert service.get("/products").json == before, "a sandbox that was refused leaves no product"
    assert service.put(f"/strategy?product_id={products[255]}", {"name": "optimistic"}).json["name"] == "optimistic"


def test_a_given_token_stays_the_teacher_s(services, database):
    service = services.start(database, "--classroom=yes", token="a-token-of-some-length")
    assert "teacher's token" not in service.log and "a-token-of" not in service.log
    assert service.get("/classroom").json["teacher"] is True


def test_the_teacher_sees_who_is_there_and_evicts(classroom):
    one, other = Learner(classroom, classroom.code), Learner(classroom, classroom.code)
    told = {entry["product_id"]: entry for entry in classroom.get("/sandboxes").json["sandboxes"]}
    assert {one.product, other.product} <= told.keys()
    assert told[one.product]["address"] == "127.0.0.1" and told[one.product]["idle_ms"] >= 0
    assert not told[one.product]["expired"] and not told[one.product]["teacher"]
    assert told[one.product]["number"] != told[other.product]["number"]
    assert classroom.get(f"/products/{one.product}").json["name"] == f"Sandbox {told[one.product]['number']}"
    for headers in (ANON, bearer(classroom.code), bearer(one.token)):
        assert classroom.call("GET", "/sandboxes", None, headers).status == 401
        assert classroom.call("DELETE", f"/sandboxes/{one.product}", None, headers).status == 401
    page = {"Origin": "http://evil.example"}
    assert classroom.call("DELETE", f"/sandboxes/{one.product}", None, page).problem == "forbidden-origin"
    ended = classroom.call("DELETE", f"/sandboxes/{one.product}")
    assert (ended.status, ended.json) == (200, {"product_id": one.product}), str(ended)
    assert one.order().status == 401, "the learner's token is not valid any more"
    assert other.order().status == 201
    refused = one.order()
    assert "The teacher ended this sandbox" in refused.json["detail"], str(refused)
    told = {token: classroom.call("GET", "/classroom", None, {"X-Sandbox": token}).json for token in (one.token, other.token, "wrong")}
    assert [(told[t]["owns"], told[t]["evicted"]) for t in told] == [(None, True), (other.product, False), (None, False)]
    assert classroom.call("DELETE", f"/sandboxes/{one.product}").problem == "not-found"
    assert f"the teacher at 127.0.0.1 ended the sandbox with product {one.product}" in classroom.log
    assert one.token not in classroom.log and other.token not in classroom.log


def test_a_new_class_code_replaces_the_old_one(services, database):
    service = services.start(database, "--classroom", listen="127.0.0.1:0")
    code, service.token = (re.search(rf"{what} +(\S+)", service.log)[1] for what in ("class code", "teacher's token"))
    printed = service.log
    target = "/classroom/code"
    kept, evicted = Learner(service, code), Learner(service, code)
    for headers in (ANON, bearer(code), bearer(kept.token)):
        assert service.call("POST", target, {}, headers).problem == "unauthorized"
    assert service.post(target, {}, {"Origin": "http://evil.example"}).problem == "forbidden-origin"
    assert service.post(target, {}, {"Content-Type": "text/plain"}).problem == "unsupported-media-type"
    for body in (b"", b"[]", {"code": "abcd-2345"}):
        assert service.post(target, body).problem == "bad-request", f"{body}"
    assert service.post(target, b"{" + b" " * 70000).problem == "payload-too-large"
    assert service.get("/classroom").json["code"] == code, "a refused call changes nothing"

    assert service.call("DELETE", f"/sandboxes/{evicted.product}").status == 200
    reply = service.post(target, {})
    assert reply.status == 200 and reply.header("Cache-Control") == "no-store", str(reply)
    new = reply.json["code"]
    assert re.fullmatch("[a-z2-9]{4}-[a-z2-9]{4}", new) and new != code
    assert service.get("/classroom").json["code"] == new
    assert service.call("GET", "/classroom", None, bearer(new)).json["code"] is None, "only the teacher sees it"
    for token in (code, evicted.token):
        assert service.call("POST", "/sandboxes", {}, bearer(token)).problem == "unauthorized"
    assert kept.order().status == 201, "learners who are in stay in"
    assert Learner(service, new).order().status == 201
    wait_until(lambda: "the teacher at 127.0.0.1 replaced the class code" in service.log, "the log says so")
    assert new not in service.log and code not in service.log.removeprefix(printed)


def test_a_login_that_waits_needs_the_new_class_code(services, database):
    """Four resets wait for rows, and keep all workers of changes busy. A login with the old code waits behind them."""
    service = services.start(database, "--classroom", "--order-timeout-ms", "60000", listen="127.0.0.1:0")
    code, service.token = (re.search(rf"{what} +(\S+)", service.log)[1] for what in ("class code", "teacher's token"))
    service.strategy("atomic-decrement", lock_wait_ms=60000)
    products = [service.product() for _ in range(4)]
    rows = f"SELECT count FROM product WHERE id IN ({', '.join(map(str, products))}) FOR UPDATE"
    with holding(service.database_url, rows) as held, service.wire() as wire:
        resets = [Background(lambda product=product: service.reset(product, 5)) for product in products]
        wait_until(lambda: waiting_backends(service.database_url) == 4, "all workers wait for rows")
        wire.send(request_bytes("POST", "/sandboxes", b"{}", bearer(code)))
        stays(lambda: not wire.reply_has_begun(), "the login waits")
        assert service.post("/classroom/code", {}).status == 200
        held.run("ROLLBACK")
        assert wire.reply().problem == "unauthorized"
    for reset in resets:
        reset.result()


def test_without_a_class_there_is_no_class_code(shop):
    reply = shop.post("/classroom/code", {})
    assert reply.problem == "not-found" and "--classroom" in reply.json["detail"], str(reply)


def test_the_teacher_sees_places_orders_and_the_load_run(services, database):
    service = services.start(database, "--classroom", listen="127.0.0.1:0")
    code, service.token = (
        re.search(rf"{what} +(\S+)", service.log)[1] for what in ("class code", "teacher's token")
    )
    told = service.get("/sandboxes").json
    assert told == {"sandboxes": [], "places": {"learners": 96, "teacher": 4, "taken": 0, "per_address": 50}, "run": None}
    one, other = Learner(service, code), Learner(service, code)
    own = service.post("/sandboxes", {}).json["product_id"]
    assert [one.order().status for _ in range(3)] == [201, 201, 201]
    assert service.order(one.product).status == 201, "the teacher's order is not the learner's"
    assert other.order(one.product).problem == "not-yours"
    told = service.get("/sandboxes").json
    seen = {entry["product_id"]: (entry["orders"], entry["teacher"]) for entry in told["sandboxes"]}
    assert seen == {one.product: (3, False), other.product: (0, False), own: (0, True)}
    assert told["places"]["taken"] == 3
    run = {"strategies": ["mutex"] * 4, "product_id": one.product, "duration_ms": 30000}
    started = service.post("/runs", run)  # as the teacher, whose run is long enough to be ended on any machine
    assert started.status == 202, str(started)
    told = service.get("/sandboxes").json["run"]
    assert (told["id"], told["product_id"]) == (started.json["id"], one.product)
    assert service.call("DELETE", f"/sandboxes/{one.product}").status == 200
    wait_until(lambda: service.get("/sandboxes").json["run"]["state"] == "cancelled", "the learner's run ends as well")
    told = service.get("/sandboxes").json
    assert told["places"]["taken"] == 2 and one.product not in [entry["product_id"] for entry in told["sandboxes"]]
    again = Learner(service, code)
    assert {entry["product_id"]: entry["orders"] for entry in service.get("/sandboxes").json["sandboxes"]}[again.product] == 0


def test_a_sandbox_that_nobody_uses_counts_as_free(services, database):
    service = services.start(database, "--classroom", "--sandbox-idle-ms", "100", listen="127.0.0.1:0")
    code, service.token = (
        re.search(rf"{what} +(\S+)", service.log)[1] for what in ("class code", "teacher's token")
    )
    learner = Learner(service, code)

    def expired():
        told = service.get("/sandboxes").json
        return told["places"]["taken"] == 0 and [entry["expired"] for entry in told["sandboxes"]] == [True]

    wait_until(expired, "the learner was away for 100 ms")
    assert learner.order().status == 201, "the learner who comes back before anybody else has the place again"


def test_a_page_learns_from_live_whose_it_is(classroom, learner):
    target = f"/live?product_id={learner.product}"
    assert learner.call("GET", target).json["owns"] == learner.product
    assert classroom.get(target).json["owns"] is None, "the teacher owns no product"
    assert classroom.call("GET", target, None, ANON).json["owns"] is None
    assert classroom.call("DELETE", f"/sandboxes/{learner.product}").status == 200
    assert learner.call("GET", target).json["owns"] is None


def test_an_address_has_a_limit_of_sandboxes(services, database):
    service = services.start(database, "--classroom", "--sandboxes-per-address", "2", listen="127.0.0.1:0")
    code, service.token = (
        re.search(rf"{what} +(\S+)", service.log)[1] for what in ("class code", "teacher's token")
    )
    learners = [Learner(service, code) for _ in range(2)]
    refused = service.call("POST", "/sandboxes", {}, bearer(code))
    assert refused.problem == "overloaded" and "--sandboxes-per-address" in refused.json["detail"], str(refused)
    assert service.post("/sandboxes", {}).status == 201, "the teacher has no such limit"
    assert service.call("DELETE", f"/sandboxes/{learners[0].product}").status == 200
    assert Learner(service, code).order().status == 201, "there is room again"


def test_the_teacher_raises_the_limit_and_ends_an_address(services, database):
    service = services.start(database, "--classroom", "--sandboxes-per-address", "1", listen="127.0.0.1:0")
    code, service.token = (re.search(rf"{what} +(\S+)", service.log)[1] for what in ("class code", "teacher's token"))
    learner = Learner(service, code)
    refused = service.call("POST", "/sandboxes", {}, bearer(code))
    assert refused.problem == "overloaded" and refused.json["limit"] == 1 and refused.json["address"] == "127.0.0.1", str(refused)
    assert learner.call("PUT", "/classroom/limit", {"per_address": 3}).problem == "unauthorized"
    assert service.put("/classroom/limit", {"per_address": 97}).problem == "invalid-order"
    assert service.put("/classroom/limit", {"per_address": 3}).json == {"per_address": 3}
    ada = service.call("POST", "/sandboxes", {"name": "Ada"}, bearer(code)).json["product_id"]
    own = service.post("/sandboxes", {}).json["product_id"]
    told = service.get("/sandboxes").json
    assert told["places"]["per_address"] == 3
    assert {one["product_id"]: one["name"] for one in told["sandboxes"]} == {learner.product: "Learner 1", ada: "Ada", own: None}
    assert learner.call("DELETE", "/sandboxes?address=127.0.0.1").problem == "unauthorized"
    assert service.call("DELETE", "/sandboxes").problem == "bad-request"
    assert service.call("DELETE", "/sandboxes?address=10.1.2.3").json == {"product_ids": []}
    assert service.call("DELETE", "/sandboxes?address=127.0.0.1").json == {"product_ids": [learner.product, ada]}
    assert [one["product_id"] for one in service.get("/sandboxes").json["sandboxes"]] == [own], "the teacher's own stays"
    assert learner.order().problem == "unauthorized" and service.get("/class/board").json["learners"] == []


def test_a_strategy_that_locks_everybody_s_products_is_the_teacher_s(classroom, learner):
    for method, target, body in (
        ("PUT", f"/strategy?product_id={learner.product}", {"name": "table-lock"}),
        ("POST", "/orders?strategy=table-lock", {"product_id": learner.product, "quantity": 1}),
        ("POST", "/runs", {"product_id": learner.product, "strategies": ["mutex", "table-lock"]}),
    ):
        refused = learner.call(method, target, body)
        assert refused.problem == "not-yours" and "only the teacher" in refused.json["detail"], str(refused)
    assert classroom.order(1, strategy="table-lock").status == 201


def test_learners_do_not_share_the_mutex(classroom):
    """One mutex for the whole shop is a learner's own: each has a shop."""
    one, other = Learner(classroom, classroom.code), Learner(classroom, classroom.code)
    for learner in (one, other):
        settings = {"name": "mutex", "lock_wait_ms": 5000}
        assert learner.call("PUT", f"/strategy?product_id={learner.product}", settings).status == 200

    def order_while_the_other_waits():
        with holding_row(classroom.database_url, one.product) as row:
            waiting = Background(one.order)
            wait_until(lambda: waiting_backends(classroom.database_url) == 1 or not waiting.running, "an order holds the mutex and waits for the row")
            assert other.order().status == 201
            row.run("ROLLBACK")
        return waiting.result().status == 201

    # A learner's order waits for 5 s at most, which can pass on a busy machine.
    wait_until(order_while_the_other_waits, "an order of the other learner while the first one holds the mutex")


def test_the_keys_of_one_learner_are_no_other_s(classroom):
    """The same Idempotency-Key of two learners is two orders; of one learner it is one."""
    one, other = Learner(classroom, classroom.code), Learner(classroom, classroom.code)

    def order(learner, key):
        body = {"product_id": learner.product, "quantity": 1}
        return classroom.call("POST", "/orders", body, {**bearer(learner.token), "Idempotency-Key": key})

    first, second = order(one, "basket-8"), order(other, "basket-8")
    assert (first.status, second.status) == (201, 201), f"{first} {second}"
    again = order(one, "basket-8")
    assert (again.status, again.json["id"]) == (201, first.json["id"]), str(again)
    assert classroom.order(one.product, key="basket-8").json["id"] not in (first.json["id"], second.json["id"])
    assert order(one, "x" * 235).status == 201
    refused = order(one, "x" * 236)
    assert refused.problem == "bad-request" and "1 to 235" in refused.json["detail"], str(refused)


def wrong_tokens(service):
    """How many wrong tokens the log tells of: one in each line, and those that a line says were left out."""
    lines = re.findall(r"brought a token that is not valid for [A-Z]+ /[^\n;]*(?:; (\d+) more such calls were not logged)?", service.log)
    return len(lines) + sum(int(more or 0) for more in lines)


def test_every_wrong_token_is_logged_and_none_is_shown(services, database):
    service = services.start(database, "--classroom", listen="127.0.0.1:0")
    code, service.token = (
        re.search(rf"{what} +(\S+)", service.log)[1] for what in ("class code", "teacher's token")
    )
    printed = service.log
    learner, evicted = Learner(service, code), Learner(service, code)
    order = {"product_id": learner.product, "quantity": 1}
    assert learner.order().status == 201
    for token in (service.token, code, learner.token):
        assert service.call("GET", "/classroom", None, bearer(token)).status == 200
    assert service.call("GET", "/classroom", None, ANON).status == 200
    assert service.call("POST", "/orders", order, ANON).status == 401, "no token is no wrong token"
    assert service.call("DELETE", f"/sandboxes/{evicted.product}").status == 200
    assert "brought a token" not in service.log

    wrong = (
        ("POST", "/sandboxes", {}, "abcd-2345"),
        ("GET", "/classroom", None, "guessed-teacher-token"),
        ("GET", "/sandboxes", None, "guessed-teacher-token"),
        ("GET", "/sandboxes", None, learner.token),
        ("DELETE", f"/sandboxes/{learner.product}", None, learner.token),
        ("POST", "/orders", order, code),
        ("POST", "/orders", order, evicted.token),
        ("GET", "/orders", None, "guessed-teacher-token"),
    )
    for count, (method, target, body, token) in enumerate(wrong, 1):
        assert service.call(method, target, body, bearer(token)).status in (200, 401)
        path = re.sub(r"\d+", ":", target)
        line = f"a call from 127.0.0.1 brought a token that is not valid for {method} {path}"
        wait_until(lambda line=line, count=count: wrong_tokens(service) == count and line in service.log, line)
    elsewhere = (
        ("GET", "/sandboxes", {"Authorization": "Basic Z3Vlc3NlZA=="}),
        ("GET", "/orders", {"Authorization": "Basic Z3Vlc3NlZA=="}),
        ("GET", "/sandboxes", {"Authorization": "guessed-and-bare"}),
        ("GET", "/sandboxes", {"Authorization": service.token}),
        ("GET", "/classroom", {"Authorization": None, "X-Sandbox": "guessed-sandbox"}),
        ("GET", "/classroom", {"Authorization": None, "X-Sandbox": learner.token[:-1]}),
    )
    for count, (method, target, headers) in enumerate(elsewhere, len(wrong) + 1):
        assert service.call(method, target, None, headers).status in (200, 401)
        wait_until(lambda count=count: wrong_tokens(service) == count, f"{method} {target} {headers}")
    assert service.call("GET", "/classroom", None, {"X-Sandbox": learner.token}).json["owns"] == learner.product
    assert wrong_tokens(service) == len(wrong) + len(elsewhere)
    new = service.log.removeprefix(printed)
    for secret in ("Z3Vlc3NlZA", learner.token[:-1], service.token, code, learner.token, evicted.token, "guessed", "abcd-2345"):
        assert secret not in new, "the log shows a secret"


def test_a_flood_of_wrong_tokens_is_counted_in_a_few_lines(services, database):
    service = services.start(database, "--classroom", listen="127.0.0.1:0")
    calls = 0

    def guess(times=1):
        nonlocal calls
        for _ in range(times):
            assert service.call("GET", "/sandboxes", None, bearer(f"guess-{calls}")).status == 401
            calls += 1

    guess(60)
    # The calls that were left out are counted by the next line, which there is room for within a second.
    wait_until(lambda: guess() or wrong_tokens(service) == calls, "every call is in a line, or in a line's count", every=0.3)
    assert "guess" not in service.log


def test_a_flood_of_wrong_tokens_hides_no_other_address(services, database):
    service = services.start(database, "--classroom", listen="127.0.0.1:0")

    def guess(source):
        with service.wire(source=source) as wire:
            wire.send(request_bytes("GET", "/sandboxes", b"", bearer("guess")))
            assert wire.reply().status == 401

    with service.wire(source="127.0.0.7") as wire:
        for _ in range(500):
            wire.send(request_bytes("GET", "/sandboxes", b"", bearer("guess")))
            assert wire.reply().status == 401
    guess("127.0.0.8")
    wait_until(lambda: "a call from 127.0.0.8 brought a token that is not valid" in service.log, "the other's line")
