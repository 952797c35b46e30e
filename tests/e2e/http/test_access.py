"""Who may call: the admin token, addresses beyond loopback, other sites' pages; and the request id."""

import contextlib
import re
import socket
import subprocess
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from basics import REPLY_S
from contract import strict_json
from lab import as_body, password, psql, request_bytes, run_service, terminate_sessions, wait_until, with_database

TOKEN = "correct-horse-battery-staple"
CONTROL = [
    ("PUT", "/strategy", {"name": "mutex"}),
    ("PUT", "/products/1", {"name": "x", "price": "1.00", "stock": 1}),
    ("PUT", "/products/77", {"name": "x", "price": "1.00", "stock": 1}),
    ("POST", "/products/1/reset", {"stock": 1}),
    ("POST", "/locks/door/hold", {"lock": "mutex", "hold_ms": 0}),
]


@pytest.fixture(scope="module")
def guarded(stack, file_services):
    """A service with an admin token."""
    return file_services.start(stack.database(), token=TOKEN)


def state(service):
    return (service.get("/strategy").json, service.get("/products").json)


@pytest.mark.parametrize("method, target, body", CONTROL)
@pytest.mark.parametrize(
    "given",
    [
        None,
        "",
        "Bearer",
        "Bearer ",
        f"Basic {TOKEN}",
        TOKEN,
        "Bearer wrong",
        f"Bearer {TOKEN}x",
        f"Bearer {TOKEN[:-1]}",
        f"Bearer {TOKEN.upper()}",
        f"Bearer {TOKEN} {TOKEN}",
        f"Token {TOKEN}",
        f'Bearer "{TOKEN}"',
        "Bearer " + "x" * 4000,
    ],
)
def test_without_the_token(guarded, method, target, body, given):
    before = state(guarded)
    reply = guarded.call(method, target, body, {"Authorization": given})
    assert reply.problem == "unauthorized", str(reply)
    assert re.match("Bearer", reply.header("WWW-Authenticate")), f"{reply.headers}"
    assert TOKEN not in reply.text
    assert state(guarded) == before, "a refused call changed something"


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
def test_with_the_token(guarded, scheme):
    """The scheme's name is not case-sensitive (RFC 9110)."""
    for method, target, body in CONTROL:
        reply = guarded.call(method, target, body, {"Authorization": f"{scheme} {TOKEN}"})
        assert reply.status in (200, 201), f"{method} {target}: {reply}"


def test_two_authorizations_are_not_two_chances(guarded):
    with guarded.wire() as wire:
        wire.send(
            request_bytes(
                "PUT",
                "/strategy",
                b'{"name":"optimistic"}',
                [("Authorization", "Bearer wrong"), ("Authorization", f"Bearer {TOKEN}")],
            )
        )
        reply = wire.reply()
    assert reply.status in (400, 401), str(reply)
    assert guarded.get("/strategy").json["name"] != "optimistic"


def test_the_token_is_asked_for_before_the_body_is_judged(guarded):
    for body in (b"not json", b"{}"):
        assert guarded.call("PUT", "/strategy", body, {"Authorization": None}).problem == "unauthorized"


def test_everything_else_needs_no_token(guarded):
    product = guarded.product()
    reply = guarded.call("POST", "/orders", {"product_id": product, "quantity": 1}, {"Authorization": None})
    assert reply.status == 201, str(reply)
    for target in (
        "/products",
        "/products/1",
        "/orders",
        "/strategies",
        "/strategy",
        "/audit?product_id=1",
        "/metrics",
        "/healthz",
        "/readyz",
        "/traces",
        "/openapi.yaml",
    ):
        assert guarded.call("GET", target, None, {"Authorization": None}).status == 200, target


def test_without_a_configured_token_control_is_free_on_loopback(shop):
    assert shop.call("PUT", "/strategy", {"name": "atomic-decrement"}, {"Authorization": None}).status == 200


@pytest.mark.parametrize("address", ["0.0.0.0:0", "[::]:0", ":0"])
def test_no_other_address_without_a_token(stack, address):
    status, out, err = run_service("--listen", address, env={"DATABASE_URL": stack.url})
    assert status == 2, f"exit {status}\n{out}{err}"
    if address != ":0":
        assert "token" in (out + err).lower(), f"the reason is not given: {out}{err}"


def test_an_empty_token_is_no_token(stack):
    status, out, err = run_service(
        "--listen", "0.0.0.0:0", env={"DATABASE_URL": stack.url, "ADMIN_TOKEN": ""}
    )
    assert status == 2, f"exit {status}\n{out}{err}"


def test_any_address_with_a_token(services, database):
    service = services.start(database, token=TOKEN, listen="0.0.0.0:0")
    assert (
        service.call("PUT", "/strategy", {"name": "mutex"}, {"Authorization": None}).problem == "unauthorized"
    )
    assert service.put("/strategy", {"name": "mutex"}).status == 200


# ── pages of other sites ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "origin",
    [
        "http://evil.example",
        "https://evil.example:8080",
        "null",
        "http://127.0.0.1:1",
        "http://localhost.evil.example",
        "http://127.0.0.1.evil.example",
        "x",
    ],
)
@pytest.mark.parametrize(
    "method, target, body", [("POST", "/orders", {"product_id": 1, "quantity": 1}), *CONTROL]
)
def test_another_sites_page_is_refused(shop, method, target, body, origin):
    shop.strategy("atomic-decrement")
    before = (state(shop), shop.audit(1))
    reply = shop.call(method, target, body, {"Origin": origin})
    assert reply.problem == "forbidden-origin", str(reply)
    assert (state(shop), shop.audit(1)) == before, "a refused call changed something"


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_our_own_page_is_served(shop, host):
    authority = f"{host}:{shop.port}"
    reply = shop.put(
        "/strategy", {"name": "atomic-decrement"}, {"Host": authority, "Origin": f"http://{authority}"}
    )
    assert reply.status == 200, str(reply)


@pytest.mark.parametrize("flags", [(), ("--classroom",)], ids=["open", "classroom"])
def test_a_name_that_was_bound_to_loopback_is_not_our_own_page(services, database, flags):
    """DNS rebinding: the page's own host resolves to 127.0.0.1, so that Origin and Host agree. A token does not help, since
    reading needs none, and the page's visitor may have one."""
    token = "a token of the teacher's"
    service = services.start(
        database, *flags, "--allowed-hosts", "shop.example,service-1", env={"ADMIN_TOKEN": token}, token=token
    )
    product = service.product()
    for host in ("evil.example", f"evil.example:{service.port}", "shop.example.evil.example", "localhost.evil.example"):
        page = {"Host": host, "Origin": f"http://{host}"}
        reply = service.post("/orders", {"product_id": product, "quantity": 1}, page)
        assert reply.problem == "forbidden-origin" and "--allowed-hosts" in reply.json["detail"], str(reply)
        assert service.get("/orders", page).problem == "forbidden-origin", "nor does it read the books"
        for method, target in (("GET", "/nothing"), ("BREW", "/orders"), ("OPTIONS", "/")):
            reply = service.call(method, target, None, page, check=False)
            assert reply.problem == "forbidden-origin", f"nor does it learn what there is: {method} {target}: {reply}"
    for host in ("127.0.0.1", f"localhost:{service.port}", "192.168.7.7:8080", "[fd00::7]", "shop.example", "Service-1:80"):
        page = {"Host": host, "Origin": f"http://{host}"}
        reply = service.post("/orders", {"product_id": product, "quantity": 1}, page)
        assert reply.status == 201, f"{host}: {reply}"
    assert service.audit(product)["orders"] == 6


def curl(*arguments):
    """What curl itself sends; returns the status and the body."""
    ran = subprocess.run(
        ["curl", "--silent", "--show-error", "--noproxy", "*", "--max-time", str(REPLY_S), "--write-out", "\n%{http_code}", *arguments],
        capture_output=True, text=True, check=False, timeout=2 * REPLY_S,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    body, status = ran.stdout.rsplit("\n", 1)
    return int(status), body


def addresses_of_this_machine():
    """Numeric addresses, of the network where there is one."""
    found = subprocess.run(["hostname", "-I"], capture_output=True, text=True, check=False, timeout=60).stdout.split()
    return ["127.0.0.1", *(address for address in found if ":" not in address)]


def orders_by_page_and_curl(service, product, authority, *more):
    """Opens the page at that address, and orders as the page does and as a person with curl does."""
    order = ["--json", as_body({"product_id": product, "quantity": 1}).decode(), f"http://{authority}/orders"]
    status, body = curl(*more, f"http://{authority}/")
    assert status == 200 and "<html" in body, f"{authority}: {status} {body[:200]}"
    for headers in ((), ("--header", f"Origin: http://{authority}")):
        status, body = curl(*more, *headers, *order)
        assert status == 201, f"{authority} {headers}: {status} {body}"


def test_the_page_at_each_address_of_this_machine(services, database):
    """http://LAN-IP:PORT, localhost, and the machine's own name."""
    service = services.start(database, token=TOKEN, listen="0.0.0.0:0")
    product, own = service.product(), socket.gethostname()
    for address in addresses_of_this_machine():
        orders_by_page_and_curl(service, product, f"{address}:{service.port}")
    orders_by_page_and_curl(service, product, f"localhost:{service.port}", "--ipv4")
    for name in (own, own.upper()):
        orders_by_page_and_curl(service, product, f"{name}:{service.port}", "--resolve", f"{name}:{service.port}:127.0.0.1")


def test_the_page_at_an_address_of_ipv6(services, database):
    known = Path("/proc/net/if_inet6")
    if not known.exists() or f"{1:032x}" not in known.read_text():
        pytest.skip("this machine has no IPv6 address")
    service = services.start(database, token=TOKEN, listen="[::1]:0", ready=None)
    service.port = int(wait_until(service._port, "it listens"))
    ready = f"http://[::1]:{service.port}/readyz"
    wait_until(lambda: curl(ready)[0] == 200, "it takes orders", seconds=30)
    orders_by_page_and_curl(service, 1, f"[::1]:{service.port}")


@pytest.mark.parametrize("host", [(), ("--header", "Host:")], ids=["with Host", "without Host"])
def test_curl_with_http_1_0(shop, host):
    product = shop.product()
    body = as_body({"product_id": product, "quantity": 1}).decode()
    assert curl("--http1.0", *host, f"http://127.0.0.1:{shop.port}/products/{product}")[0] == 200
    assert curl("--http1.0", *host, "--json", body, f"http://127.0.0.1:{shop.port}/orders")[0] == 201


def test_a_form_cannot_order(shop):
    """A form can send these three without asking first."""
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"):
        for method, target in (("POST", "/orders"), ("POST", "/runs"), ("POST", "/sandboxes"), ("PUT", "/classroom/limit")):
            reply = shop.call(method, target, b'{"product_id":1,"quantity":1}', {"Content-Type": kind})
            assert reply.problem == "unsupported-media-type", f"{target}: {reply}"


@pytest.mark.parametrize(
    "method, target, body", [("POST", "/sandboxes", {}), ("PUT", "/classroom/limit", {"per_address": 1}), ("DELETE", "/sandboxes?address=127.0.0.1", None)]
)
def test_another_page_cannot_make_limit_or_end_sandboxes(shop, method, target, body):
    assert shop.call(method, target, body, {"Origin": "http://evil.example"}).problem == "forbidden-origin"


# ── request ids ─────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("given", ["a", "0123-abcd", "7b1f4d3e-55a8-4e7a-9d55-a1d1c2f3b4a5", "A_b.c:d-1"])
def test_a_sane_request_id_is_kept(shop, given):
    for target in ("/healthz", "/products/1", "/nothing"):
        assert shop.get(target, {"X-Request-Id": given}).header("X-Request-Id") == given


@pytest.mark.parametrize(
    "given", ["", "x" * 2000, "two words", "ümlaut", "a\x01b", "a\tb", "<script>" + "x" * 500, "\x7f"]
)
def test_another_request_id_is_replaced(shop, given):
    reply = shop.get("/healthz", {"X-Request-Id": given})
    assert reply.status == 200, str(reply)
    new = reply.header("X-Request-Id")
    assert new != given and re.fullmatch("[!-~]{4,128}", new), f"{new!r}"


def test_a_request_id_cannot_forge_a_log_line(services, database):
    service = services.start(database, "--log-format", "json", "--log-level", "debug")
    with service.wire() as wire:
        wire.send(b'GET /nothing HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: a","forged":"yes\r\n\r\n')
        assert wire.reply().status == 404
    service.stop()
    for line in service.log.splitlines():
        assert '"forged":"yes"' not in line, line


# ── secrets ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_secrets_are_told_to_nobody(services, database, log_format):
    """Not in the log at its finest, not in any answer, also while the database refuses."""
    secret = password(database)
    assert len(secret) > 8, "the private server's password is worth looking for"
    service = services.start(database, "--log-level", "debug", "--log-format", log_format, token=TOKEN)
    texts = [
        service.get(target).text for target in ("/readyz", "/strategy", "/metrics", "/traces", "/nothing")
    ]
    service.order(1, 1, receiver_name="Ada", key="some-key")
    service.call("PUT", "/strategy", {"name": "mutex"}, {"Authorization": "Bearer wrong-but-secret-too"})
    texts.append(service.put("/strategy", {"name": "mutex"}).text)
    name, elsewhere = database.rsplit("/", 1)[1], with_database(database, "postgres")
    psql(elsewhere, f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
    terminate_sessions(elsewhere, database=name)
    for _ in range(3):
        reply = service.order(1, 1)
        assert reply.problem == "backend-unavailable", str(reply)
        texts.append(reply.text)
    service.stop()
    texts.append(service.log)
    for text in texts:
        for word in (secret, TOKEN, "wrong-but-secret-too"):
            assert word not in text, f"{word} in {text[:2000]}"
    assert service.log.strip(), "nothing was logged at all"


def command_lines():
    """What any user of the machine may read of all processes."""
    found = b""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            found += path.read_bytes() + b"\n"
    return found


def test_a_password_on_the_command_line_is_hidden(services, database):
    """Used, and then not to be seen: in a URL, in libpq's words, behind '=' and as a separate argument."""
    secret, parts = password(database), urlsplit(database)
    words = f"host={parts.hostname} port={parts.port} user={parts.username} dbname={parts.path[1:]} password={secret}"
    service = services.start(
        database, "--database-url", database, f"--lock-database-url={words}", "--redis-url", "redis://:hunter22@127.0.0.1:1"
    )
    assert service.order(1, 1).status == 201
    line = Path(f"/proc/{service.process.pid}/cmdline").read_bytes()
    assert b"--lock-database-url=host=" in line and b"redis://***" in line, line
    assert secret.encode() not in line and b"hunter22" not in line, line


def test_no_process_of_a_run_has_a_secret_in_its_command_line(services, database):
    secret = password(database)
    service = services.start(database, token=TOKEN)
    run = service.post("/runs", {"strategies": ["mutex"], "instances": 2, "duration_ms": 1000})
    assert run.status == 202, str(run)
    seen = set()
    while (state := service.get(run.header("Location")).json["state"]) == "running":
        lines = command_lines()
        seen |= {name for name in (b"loadtest", b"wrk") if name in lines}
        for word in (secret, TOKEN):
            assert word.encode() not in lines, [line for line in lines.split(b"\n") if word.encode() in line]
    assert state == "done" and seen == {b"loadtest", b"wrk"}, (state, seen)


def test_secrets_are_not_kept_by_browsers(services, database):
    service = services.start(database, "--classroom", listen="127.0.0.1:0", token=TOKEN)
    code = service.get("/classroom")
    sandbox = service.post("/sandboxes", {}, {"Authorization": f"Bearer {code.json['code']}"})
    assert sandbox.status == 201, str(sandbox)
    assert [reply.header("Cache-Control") for reply in (code, sandbox)] == ["no-store", "no-store"]


def test_every_reply_says_that_its_type_is_meant(shop):
    """So that no browser takes a client's text in it for a page."""
    for target in ("/", "/page/shared/dom.js", "/products", "/strategy", "/metrics", "/openapi.yaml", "/<script>", "/orders/x"):
        reply = shop.get(target)
        assert reply.header("X-Content-Type-Options") == "nosniff", target
        assert reply.header("Access-Control-Allow-Origin") is None, target
        assert reply.media_type == "text/html" if target == "/" else reply.media_type != "text/html", target


def test_sql_in_every_text_is_text(shop, database):
    """Names, keys and paths that would end a literal: stored as they are, or refused; nothing is executed."""
    evil = "'; DROP TABLE orders; --"
    product = shop.product()
    reply = shop.order(product, 1, receiver_name=evil, receiver_mobile=evil, key="';DROP/**/TABLE/**/orders;--")
    assert reply.status == 201, str(reply)
    assert shop.get(f"/orders/{reply.json['id']}").json["receiver_name"] == evil
    assert shop.put(f"/products/{product}", {"name": evil, "price": "1.00", "stock": 1}).status == 200
    assert shop.put(f"/products/{product}", {"name": "x", "price": "1'--", "stock": 1}).status in (400, 422)
    for target in ("/orders?product_id=1%27--", "/orders/1%27--", "/audit?product_id=1%20OR%201=1", "/strategies/%27"):
        assert shop.get(target).status in (400, 404), target
    assert shop.post("/orders?strategy=%27%3BDROP", {"product_id": product, "quantity": 1}).status == 422
    assert shop.get("/products").status == shop.get("/orders").status == 200


def test_logs_in_json_are_json(services, database):
    service = services.start(database, "--log-format", "json", "--log-level", "debug")
    service.order(1, 1, receiver_name='"\\ \n\t é 🦊')
    service.get("/nothing")
    service.stop()
    lines = service.log.splitlines()
    assert lines
    for line in lines:
        assert isinstance(strict_json(line), dict), line


def test_receivers_are_shown_to_the_teacher_and_the_owner_alone(services, database):
    """Names and mobile numbers of people: another learner, or anybody in the network, sees null."""
    service = services.start(database, "--classroom", listen="127.0.0.1:0")
    code, service.token = (
        re.search(rf"{what} +(\S+)", service.log)[1] for what in ("class code", "teacher's token")
    )
    tokens = [service.call("POST", "/sandboxes", {}, {"Authorization": f"Bearer {code}"}).json for _ in range(2)]
    receiver = {"receiver_name": "Ada", "receiver_mobile": "+49 30 901820"}
    for strategy in ("atomic-decrement", "redis-stock"):
        product = tokens[0]["product_id"]
        service.reset(product, 10, kind=service.kind(strategy))
        order = service.order(product, strategy=strategy, **receiver).json["id"]
        callers = {"teacher": service.token, "owner": tokens[0]["token"], "other": tokens[1]["token"], "anybody": None}
        for who, token in callers.items():
            headers = {"Authorization": f"Bearer {token}" if token else None}
            shown = dict.fromkeys(receiver) if who in ("other", "anybody") else receiver
            told = service.call("GET", f"/orders/{order}", None, headers).json
            assert {name: told[name] for name in receiver} == shown, f"{who}: {told}"
            for told in service.call("GET", "/orders?limit=1000", None, headers).json["orders"]:
                assert {name: told[name] for name in receiver} == shown, f"{who}: {told}"
