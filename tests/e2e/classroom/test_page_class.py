"""A class in real browsers: what a learner sees, and what the teacher sees and does."""

import contextlib
import re

import pytest

from browser import Keys
from lab import holding, Proxy, request_bytes, wait_until
from pages import another, browser, classroom, downloads, enter, focused, join, learners, open_panel, page, pick, start_class


@pytest.mark.long
def test_a_learner_joins_and_has_a_product(browser, services, database):
    service = services.start(database, "--classroom", listen="127.0.0.1:0")
    code, service.token = (re.search(rf"{what} +(\S+)", service.log)[1] for what in ("class code", "teacher's token"))
    address = f"http://127.0.0.1:{service.port}/"
    browser.start(address)
    browser.wait(lambda: browser.find("join-dialog").is_displayed(), "the code is asked for")
    browser.find("join-code").send_keys(code, Keys.ENTER)
    browser.wait_text("shop-name", "my own")
    product = int(browser.text("shop-name").split()[1].strip(","))
    browser.wait_text("pulse", "live")
    pick(browser, "read-write")
    browser.click("buy-one")
    browser.wait(lambda: browser.figure("sold") == 1, "one is sold")
    assert service.get("/strategy").json["name"] == "atomic-decrement", "the others' strategy is as it was"
    assert service.audit(product)["sold"] == 1 and service.audit(1)["sold"] == 0
    assert not browser.find("class-open").is_displayed() and code not in browser.driver.page_source
    line = browser.text("curl-line")
    assert f'"product_id":{product}' in line
    assert "Authorization" not in line.split("<<<")[0], "another user could read a token among the arguments"
    browser.driver.refresh()
    browser.wait_text("shop-name", f"product {product}, my own")
    browser.wait(lambda: browser.figure("sold") == 1 and browser.text("strategy-row"), "it is as it was")
    browser.shot("learner")
    limits = {"think": "200", "wait": "5000", "load-connections": "32", "load-seconds": "2"}
    assert {name: browser.find(name).get_attribute("max") for name in limits} == limits, "no more is offered than is allowed"
    assert [option.text for option in browser.all("#load-instances option")] == ["1", "2"]
    browser.wait(lambda: browser.find("load-start").is_enabled(), "the choices are there")
    offered = {option.get_attribute("value"): option.get_attribute("disabled") is None for option in browser.all("#load-which option")}
    assert offered["this"] and offered["one-process"] and not offered["all"] and not offered["unsafe"], offered
    browser.enter("think", 200)
    browser.enter("load-seconds", "0.2")
    browser.click("load-start")
    browser.wait_text("log", "Its think time is 50 ms, the most that a load may have.")
    browser.wait(lambda: browser.all("#results-table tbody tr"), "what is offered is allowed", 60)
    browser.wait(lambda: browser.find("load-start").is_displayed(), "the run is over")
    assert browser.complaints() == [] and not browser.find("alert").is_displayed()

    browser.start(address)  # somebody else, who is the teacher
    browser.wait(lambda: browser.find("join-dialog").is_displayed(), "the code is asked for")
    browser.find("join-code").send_keys(service.token, Keys.ENTER)
    browser.wait(lambda: browser.find("class-open").is_displayed(), "the teacher is known")
    browser.wait_text("pulse", "live")
    browser.wait_text("log", "Ready")
    browser.click("class-open")
    browser.wait_text("class-code", code)
    browser.wait_text("class-count", "1 learner")
    (line,) = [line for line in [browser.text("curl-line")] if "$TOKEN" in line]
    assert "Authorization" not in line.split("<<<")[0], "another user could read a token among the arguments"
    assert service.token not in browser.driver.page_source + line, "a projector shows no token"
    assert browser.find("curl-token").get_attribute("hidden") is None
    assert browser.text("shop-name") == ""
    browser.shot("teacher")
    assert browser.complaints() == []


def test_the_teacher_knows_learners_by_name_and_ends_an_address(browser, classroom):
    for name in ("Ada", "Bob"):
        assert classroom.call("POST", "/sandboxes", {"name": name}, {"Authorization": f"Bearer {classroom.code}"}).status == 201
    open_panel(browser, classroom)
    browser.wait(lambda: [line.split("\n")[0].split(" product")[0] for line in learners(browser)] == ["Ada (place 1)", "Bob (place 2)"], "they have names")
    limit = browser.find("class-limit")
    limit.clear()
    limit.send_keys("60", Keys.TAB)
    browser.wait(lambda: classroom.get("/sandboxes").json["places"]["per_address"] == 60, "an address may have more")
    browser.click("#class-addresses button")
    browser.wait(lambda: browser.find("evict-dialog").is_displayed(), "it is asked first")
    assert browser.text("evict-title") == "End all places of 127.0.0.1?" and "Ada (place 1) and Bob (place 2) lose" in browser.text("evict-text")
    browser.click("evict-ok")
    browser.wait_text("log", "2 places of 127.0.0.1 ended.")
    browser.wait(lambda: learners(browser) == [] and browser.all("#class-addresses button") == [], "nobody is left")
    assert browser.complaints() == []


@pytest.mark.long
def test_the_teacher_sees_two_learners_and_evicts_one(browser, another, classroom):
    evicted = join(another, classroom)
    another.click("buy-one")
    another.wait(lambda: another.figure("sold") == 1, "the learner buys one")
    other = classroom.call("POST", "/sandboxes", {}, {"Authorization": f"Bearer {classroom.code}"}).json
    open_panel(browser, classroom)
    browser.wait(lambda: len(learners(browser)) == 2, "both are there")
    assert browser.text("class-places").startswith("2 of 96")
    line, second = learners(browser)
    assert f"product {evicted}" in line and "127.0.0.1" in line and "1 order" in line and "seen just now" in line, line
    assert f"product {other['product_id']}" in second and "0 orders" in second, second
    browser.shot("class-panel")
    browser.click("#learners button")
    browser.wait(lambda: browser.find("evict-dialog").is_displayed(), "it is asked first")
    assert browser.text("evict-title") == "Evict Learner 1 (place 1)?" and f"loses product {evicted} at once" in browser.text("evict-text")
    browser.shot("class-evict", 720)
    browser.click("evict-keep")
    browser.wait(lambda: not browser.find("evict-dialog").is_displayed(), "the learner is kept")
    assert len(classroom.get("/sandboxes").json["sandboxes"]) == 2
    browser.click("#learners button")
    browser.wait(lambda: browser.find("evict-dialog").is_displayed(), "it is asked again")
    browser.click("evict-ok")
    browser.wait_text("log", f"Learner 1 (place 1) with product {evicted} was evicted; the place is free.")
    browser.wait(lambda: len(learners(browser)) == 1 and browser.text("class-places").startswith("1 of 96"), "the place is free")
    assert focused(browser).get_attribute("aria-label") == "Evict Learner 2 (place 2)", "the focus is on the next line"
    assert [entry["product_id"] for entry in classroom.get("/sandboxes").json["sandboxes"]] == [other["product_id"]]

    another.wait_text("join-why", "The teacher ended your place in the class")  # the page notices it by itself
    assert another.find("join-dialog").is_displayed()
    assert "Enter the class code to join again" in another.text("join-why")
    another.shot("class-evicted", 720)
    another.find("join-code").send_keys(classroom.code, Keys.ENTER)
    another.wait_text("shop-name", "my own")
    another.wait_text("log", "Ready")
    assert int(another.text("shop-name").split()[1].strip(",")) != other["product_id"]
    another.wait(lambda: another.figure("sold") == 0, "the product is as if it were new")
    browser.wait(lambda: len(learners(browser)) == 2, "the panel updates by itself")
    assert browser.complaints() == []
    assert all("401" in line for line in another.complaints())


@pytest.mark.long
def test_the_teacher_makes_a_new_class_code(browser, another, classroom):
    join(another, classroom)
    open_panel(browser, classroom)
    browser.wait(lambda: len(learners(browser)) == 1, "the learner is there")
    browser.click("class-new-code")
    browser.wait(lambda: browser.find("class-dialog").is_displayed(), "the dialog shows the code")
    browser.wait(lambda: re.fullmatch("[a-z2-9]{4}-[a-z2-9]{4}", browser.text("class-code")) and browser.text("class-code") != classroom.code, "it is new")
    new = browser.text("class-code")
    assert classroom.get("/classroom").json["code"] == new
    browser.wait_text("class-count", "1 learner so far")
    browser.shot("class-new-code")
    browser.click("class-learners")
    browser.wait(lambda: not browser.find("class-dialog").is_displayed(), "the dialog is closed")
    assert new not in browser.text("log") and new not in classroom.log
    another.click("buy-one")
    another.wait(lambda: another.figure("sold") == 1, "the learner is still in")
    browser.click("#learners button")
    browser.wait(lambda: browser.find("evict-dialog").is_displayed(), "it is asked first")
    browser.click("evict-ok")
    another.wait_text("join-why", "The teacher ended your place in the class")
    another.find("join-code").send_keys(classroom.code, Keys.ENTER)
    another.wait_text("join-why", "That is neither the class code nor the teacher's token.")
    another.wait(lambda: another.find("join-dialog").is_displayed(), "it is asked for again")
    another.find("join-code").send_keys(new, Keys.ENTER)
    another.wait_text("shop-name", "my own")
    another.wait_text("log", "Ready")
    assert browser.complaints() == []
    assert all("401" in line for line in another.complaints())


def test_the_class_by_keyboard(browser, another, classroom):
    evicted = join(another, classroom)
    enter(browser, classroom.address, classroom.token)
    browser.wait(lambda: browser.find("class-panel").is_displayed(), "the teacher sees the panel")
    browser.driver.execute_script("document.querySelector('#class-details > summary').focus()")
    browser.press(Keys.ENTER)
    browser.wait(lambda: len(learners(browser)) == 1, "the learner is there")
    browser.press(Keys.TAB)
    browser.wait(lambda: focused(browser).get_attribute("aria-label") == "Evict Learner 1 (place 1)", "Tab reaches the button")
    browser.press(Keys.ENTER)
    browser.wait(lambda: focused(browser).get_attribute("id") == "evict-keep", "Enter alone ends nothing")
    browser.press(Keys.ESCAPE)
    browser.wait(lambda: not browser.find("evict-dialog").is_displayed(), "Escape closes it")
    assert focused(browser).get_attribute("aria-label") == "Evict Learner 1 (place 1)"
    assert len(classroom.get("/sandboxes").json["sandboxes"]) == 1
    browser.press(Keys.ENTER)
    browser.wait(lambda: focused(browser).get_attribute("id") == "evict-keep", "it is asked again")
    browser.press(Keys.TAB)
    browser.press(Keys.ENTER)
    browser.wait_text("log", f"product {evicted} was evicted")
    browser.wait(lambda: learners(browser) == [] and browser.find("class-empty").is_displayed(), "nobody is there")
    browser.wait(lambda: focused(browser).tag_name == "summary", "the focus is not lost")
    another.wait_text("join-why", "The teacher ended your place in the class")
    assert browser.complaints() == []
    another.complaints()


@pytest.mark.long
def test_the_teacher_ends_a_learner_s_run(browser, classroom):
    learner = classroom.call("POST", "/sandboxes", {}, {"Authorization": f"Bearer {classroom.code}"}).json
    product = learner["product_id"]
    open_panel(browser, classroom)
    assert not browser.find("class-run").is_displayed()
    # Begun by the teacher, since a learner's would end too soon on a slow machine.
    run = classroom.post("/runs", {"strategies": ["mutex"] * 8, "product_id": product, "duration_ms": 30000}).json["id"]
    browser.wait_text("class-run-text", f"Load run {run} of Learner 1 (place 1), product {product}, is in progress")
    browser.wait(lambda: f"load run {run}" in learners(browser)[0], "the learner's line says so as well")
    browser.shot("class-run")
    browser.size(390, phone=True)
    assert browser.overflows() <= 0 and browser.too_small() == []
    assert browser.low_contrast() == [] and browser.unnamed() == []
    browser.shot_of("class-panel-390", "class-panel")
    browser.size(1280)
    browser.click("class-run-end")
    browser.wait_text("log", f"Load run {run} was ended.")
    assert classroom.get(f"/runs/{run}").json["state"] == "cancelled"
    browser.wait(lambda: not browser.find("class-run").is_displayed() and "load run" not in learners(browser)[0], "it is not shown any more")
    assert browser.complaints() == []


def test_a_learner_and_a_visitor_never_see_the_class(browser, classroom):
    browser.driver.get("about:blank")
    browser.start(classroom.address)
    browser.wait(lambda: browser.find("join-dialog").is_displayed(), "the code is asked for")
    assert not browser.find("class-panel").is_displayed() and not browser.find("class-open").is_displayed()
    browser.find("join-code").send_keys("not-the-teacher-s-token", Keys.ENTER)
    browser.wait_text("join-why", "That is neither the class code nor the teacher's token.")
    browser.wait(lambda: browser.find("join-dialog").is_displayed(), "it is asked for again")
    assert not browser.find("class-panel").is_displayed()
    browser.find("join-code").send_keys(classroom.code, Keys.ENTER)
    browser.wait_text("log", "Ready")
    assert not browser.find("class-panel").is_displayed() and browser.all("#learners li") == []
    assert "not-the-teacher" not in classroom.log
    assert all("401" in line for line in browser.complaints())


@pytest.mark.long
def test_what_the_class_panel_says_when_something_fails(browser, classroom):
    learner = classroom.call("POST", "/sandboxes", {}, {"Authorization": f"Bearer {classroom.code}"}).json
    open_panel(browser, classroom)
    browser.wait(lambda: len(learners(browser)) == 1, "the learner is there")
    browser.click("#learners button")
    browser.wait(lambda: browser.find("evict-dialog").is_displayed(), "it is asked first")
    assert classroom.call("DELETE", f"/sandboxes/{learner['product_id']}").status == 200, "somebody else is faster"
    browser.click("evict-ok")
    browser.wait_text("class-error", "Learner 1 (place 1) was not evicted, because no learner has product")
    browser.wait(lambda: learners(browser) == [], "the line is gone")
    browser.driver.execute_script("sessionStorage.setItem('oversell.token', 'wrong')")
    browser.wait_text("class-error", "The service does not accept this page's token any more. Reload the page")
    assert not browser.find("token-dialog").is_displayed(), "a list that updates by itself opens no dialog"
    browser.shot("class-wrong-token")
    browser.driver.refresh()
    browser.wait(lambda: browser.find("join-dialog").is_displayed(), "the token is asked for")
    browser.find("join-code").send_keys(classroom.token, Keys.ENTER)
    browser.wait(lambda: browser.find("class-panel").is_displayed(), "with the right one the panel is there")
    browser.wait_text("log", "Ready")
    browser.click("#class-details > summary")
    browser.wait_text("class-places", "0 of 96")
    browser.complaints()
    classroom.stop()
    browser.wait_text("class-error", "The service does not answer. Check that it runs")
    browser.complaints()


@pytest.mark.long
def test_what_the_class_panel_says_while_the_service_has_no_room(browser, services, database):
    """Reads wait for a table, and as many others as may wait. Then the service refuses the list and each button."""
    classroom = start_class(services, database, "--order-timeout-ms", "120000")
    learner = classroom.call("POST", "/sandboxes", {}, {"Authorization": f"Bearer {classroom.code}"}).json
    classroom.strategy("atomic-decrement", lock_wait_ms=60000)
    open_panel(browser, classroom)
    browser.wait(lambda: len(learners(browser)) == 1, "the learner is there")
    sentence = "The service is too busy to answer. Try again in a moment."
    request = request_bytes("GET", "/orders", b"", {"Authorization": f"Bearer {classroom.token}"})
    with contextlib.ExitStack() as stack:
        table = stack.enter_context(holding(classroom.database_url, "LOCK TABLE order_item IN ACCESS EXCLUSIVE MODE"))
        wires = [stack.enter_context(classroom.wire()) for _ in range(340)]
        for wire in wires:
            wire.send(request)
        wait_until(lambda: sum(wire.reply_has_begun() for wire in wires) >= 10, "some are refused, since the queue is full")
        browser.wait_text("class-error", sentence)
        assert len(learners(browser)) == 1, "the list stays as it was"
        browser.click("#learners button")
        browser.wait(lambda: browser.find("evict-dialog").is_displayed(), "it is asked first")
        browser.click("evict-ok")
        browser.wait(lambda: not browser.find("evict-dialog").is_displayed() and browser.text("class-error") == sentence, "the button says so as well")
        browser.shot("class-busy")
        table.run("ROLLBACK")
    wait_until(lambda: classroom.get("/sandboxes").status == 200, "there is room again")
    assert [entry["product_id"] for entry in classroom.get("/sandboxes").json["sandboxes"]] == [learner["product_id"]]
    browser.wait(lambda: len(learners(browser)) == 1 and browser.text("class-error") == "", "later the list is there again")
    browser.complaints()


@pytest.mark.long
def test_what_the_class_panel_says_behind_a_proxy_that_changes_host(browser, classroom):
    learner = classroom.call("POST", "/sandboxes", {}, {"Authorization": f"Bearer {classroom.code}"}).json
    with contextlib.closing(Proxy(f"http://127.0.0.1:{classroom.port}/")) as proxy:
        proxy.rewrite = (b"Host: 127.0.0.1:%d" % proxy.port, b"Host: 127.0.0.1:%d" % classroom.port)  # nginx's default
        enter(browser, proxy.url, classroom.token)
        browser.wait(lambda: browser.find("class-panel").is_displayed(), "the teacher sees the panel")
        browser.click("#class-details > summary")
        browser.wait(lambda: len(learners(browser)) == 1, "what changes nothing works")
        browser.click("#learners button")
        browser.wait(lambda: browser.find("evict-dialog").is_displayed(), "it is asked first")
        browser.click("evict-ok")
        browser.wait_text("class-error", "The service refuses calls from a page at this address. Open the page at an address that the service printed at its start.")
        browser.shot("class-refused")
        assert [entry["product_id"] for entry in classroom.get("/sandboxes").json["sandboxes"]] == [learner["product_id"]]
        browser.driver.get("about:blank")
    assert all("403" in line for line in browser.complaints())


@pytest.mark.long
def test_the_class_panel_asks_only_while_it_is_open(browser, classroom):
    enter(browser, classroom.address, classroom.token)
    browser.wait(lambda: browser.find("class-panel").is_displayed(), "the teacher sees the panel")

    def calls(name, since=0):
        script = "return performance.getEntriesByType('resource').filter((e) => e.name.includes(arguments[0]) && e.startTime > arguments[1]).length"
        return browser.driver.execute_script(script, name, since)

    assert calls("/sandboxes") == 0, "it is closed"
    browser.click("#class-details > summary")
    browser.wait(lambda: calls("/sandboxes") >= 2, "it asks again and again")
    browser.click("#class-details > summary")
    browser.wait(lambda: not browser.find("learners").is_displayed(), "it is closed again")
    closed = browser.driver.execute_script("return performance.now()")
    # An open panel would ask twice within 7 s, and a closed one asks at most once more, in whatever time.
    browser.wait(lambda: calls("/live?", closed + 7000) > 0, "the rest of the page goes on", 30)
    assert calls("/sandboxes", closed) <= 1


@pytest.mark.long
def test_a_learner_who_is_evicted_at_the_steps_is_told(another, classroom):
    product = join(another, classroom)
    another.driver.get(f"{classroom.address}steps#read-write+s=1+q=1,1")
    another.wait(lambda: another.all(".lane"), "there is something to step through")
    assert classroom.call("DELETE", f"/sandboxes/{product}").status == 200
    another.click("step-A")
    another.wait_text("join-why", "The teacher ended your place in the class")
    assert another.find("join-dialog").is_displayed(), "the learner can join again"
    another.complaints()


def test_the_class_is_told_an_address_that_others_reach(browser, services, database):
    service = services.start(database, "--classroom", listen="0.0.0.0:0")
    code, service.token = (re.search(rf"{what} +(\S+)", service.log)[1] for what in ("class code", "teacher's token"))
    told = service.get("/classroom").json
    addresses = told["addresses"]
    assert all(re.fullmatch(rf"http://[0-9.]+:{service.port}", address) and "//127." not in address for address in addresses)
    anybody = service.call("GET", "/classroom", None, {"Authorization": None}).json
    assert anybody["addresses"] == [] and anybody["container"] is False, "for the teacher only"
    browser.start(f"http://localhost:{service.port}/")
    browser.wait(lambda: browser.find("join-dialog").is_displayed(), "the code is asked for")
    browser.find("join-code").send_keys(service.token, Keys.ENTER)
    browser.wait(lambda: browser.find("class-open").is_displayed(), "the teacher is known")
    browser.click("class-open")
    browser.wait_text("class-code", code)
    assert "localhost" not in browser.text("class-address") and "127.0.0.1" not in browser.text("class-address")
    if addresses and told["container"]:
        assert browser.text("class-address") == "Not known."
        assert f"such as http://192.168.1.20:{service.port}/." in browser.text("class-address-note")
    elif addresses:
        assert browser.text("class-address") == addresses[0]
        assert f"port {service.port}" in browser.text("class-address-note")
    else:
        assert "No other computer" in browser.text("class-address")
    assert browser.complaints() == []
    told = service.call("GET", "/class/board", None, {"Host": f"localhost:{service.port}"}).json
    found = (None, "container") if addresses and told["address_of"] == "container" else (addresses[0], "interface") if addresses else (None, "loopback")
    assert (told["address"], told["address_of"]) == found
    service.stop()
    inside = services.start(database, "--classroom", listen="0.0.0.0:0", env={"container": "oci"})
    inside.token = re.search(r"teacher's token +(\S+)", inside.log)[1]
    if addresses:
        assert inside.get("/classroom").json["container"] is True and "of this container" in inside.log and "http://" not in inside.log
        board = inside.call("GET", "/class/board", None, {"Host": f"localhost:{inside.port}"}).json
        assert (board["address"], board["address_of"]) == (None, "container")
        drawn = inside.call("GET", "/class/address.svg", None, {"Host": f"localhost:{inside.port}"})
        assert drawn.problem == "not-found" and "open the class board at an address that learners can open" in drawn.json["detail"]
    alone = services.start(database, "--classroom", listen="127.0.0.1:0")
    alone.token = re.search(r"teacher's token +(\S+)", alone.log)[1]
    assert alone.get("/classroom").json["addresses"] == [] and "reachable only from this machine" in alone.log


@pytest.mark.long
def test_a_product_of_ones_own_without_a_class(page, shop):
    page.click("own-product")
    page.wait_text("shop-name", "my own")
    page.wait_text("pulse", "live")
    pick(page, "optimistic")
    assert shop.get("/strategy").json["name"] == "atomic-decrement"
    page.click("shared-product")
    page.wait(lambda: page.text("shop-name") == "" and page.text("pulse") == "live", "the shared one again")
