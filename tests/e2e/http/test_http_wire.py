"""HTTP itself, byte by byte: broken requests are refused or closed, odd but right ones are served."""

import random
import signal

import pytest

from contract import PROBLEMS
from lab import Closed, DOCUMENT, SOON_S, as_body, chunked, request_bytes, wait_until

KIB = 1024
MIB = 1024 * KIB


@pytest.fixture(scope="module")
def product(shop):
    return shop.product(stock=1000000)


@pytest.fixture(scope="module")
def hasty(stack, file_services):
    """A service that ends what is not over within a second."""
    return file_services.start(stack.database(), "--request-timeout-ms", "1000")


@pytest.fixture(autouse=True)
def still_alive(shop):
    yield
    assert shop.process.poll() is None, shop.log[-3000:]
    assert shop.get("/healthz").status == 200


def answer(shop, data):
    """The reply to DATA and whether the connection is then closed; (None, True) if closed without a reply."""
    with shop.wire() as wire:
        try:
            wire.send(data)
            reply = wire.reply(seconds=SOON_S)
        except Closed as closed:
            assert b"HTTP/1.1 2" not in closed.partial, f"{closed}"
            return None, True
        try:
            wire.send(request_bytes("GET", "/healthz"))
            wire.reply(seconds=SOON_S)
            return reply, False
        except Closed:
            return reply, True


ORDER_HEAD = b"POST /orders HTTP/1.1\r\nHost: x\r\n"
CHUNKED_HEAD = ORDER_HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
BROKEN = {
    "no words": b"GARBAGE\r\n\r\n",
    "one word": b"GET\r\n\r\n",
    "no version": b"GET /healthz\r\n\r\n",
    "another protocol": b"GET /healthz FTP/1.1\r\nHost: x\r\n\r\n",
    "another version": b"GET /healthz HTTP/9.9\r\nHost: x\r\n\r\n",
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(range(64)) + b"\r\n\r\n",
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "NULs": b"\0" * 200 + b"\r\n\r\n",
    "NUL in the method": b"G\0ET /healthz HTTP/1.1\r\nHost: x\r\n\r\n",
    "no Host": b"GET /nothing HTTP/1.1\r\n\r\n",
    "header without a colon": b"GET /nothing HTTP/1.1\r\nHost: x\r\nnonsense\r\n\r\n",
    "space before the colon": ORDER_HEAD + b"Content-Length : 5\r\n\r\nhello",
    "a huge header": b"GET /nothing HTTP/1.1\r\nHost: x\r\nX-Big: " + b"x" * 200000 + b"\r\n\r\n",
    "10,000 headers": b"GET /nothing HTTP/1.1\r\nHost: x\r\n" + b"X-Many: y\r\n" * 10000 + b"\r\n",
    "a huge method": b"G" * 100000 + b" / HTTP/1.1\r\nHost: x\r\n\r\n",
    "a length that is no number": ORDER_HEAD + b"Content-Length: five\r\n\r\nhello",
    "a negative length": ORDER_HEAD + b"Content-Length: -5\r\n\r\nhello",
    "a length with a sign": ORDER_HEAD + b"Content-Length: +5\r\n\r\nhello",
    "a length beyond 64 bits": ORDER_HEAD + b"Content-Length: 99999999999999999999999\r\n\r\nhello",
    "a list of lengths": ORDER_HEAD + b"Content-Length: 5, 5\r\n\r\nhello",
    "a chunk size that is no number": CHUNKED_HEAD + b"zz\r\nhello\r\n0\r\n\r\n",
    "a negative chunk size": CHUNKED_HEAD + b"-5\r\nhello\r\n0\r\n\r\n",
    "a chunk size beyond 64 bits": CHUNKED_HEAD + b"fffffffffffffffffffff\r\nhello\r\n0\r\n\r\n",
    "a chunk longer than it says": CHUNKED_HEAD + b"2\r\nhello\r\n0\r\n\r\n",
    "another transfer coding": b"POST /orders HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    b"Transfer-Encoding: gzip\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_requests(hasty, name):
    """Refused, or closed, or cut by the deadline because the rest might still come; never served."""
    reply, _ = answer(hasty, BROKEN[name])
    assert reply is None or 400 <= reply.status < 600 and reply.status != 500, str(reply)
    assert hasty.get("/healthz").status == 200


@pytest.mark.parametrize("version", [b"HTTP/1.1", b"HTTP/1.0"])
@pytest.mark.parametrize("method", [b"POST", b"GET"])
@pytest.mark.parametrize("more", [b"", b"hello", b"hello" + request_bytes("GET", "/healthz")], ids=["no body", "a body", "more"])
@pytest.mark.parametrize(
    "length", [b"-5", b"+5", b"five", b"0x5", b"5;", b"5.0", b"5, 5", b"", b"99999999999999999999999", b"18446744073709551616"]
)
def test_a_bad_length_gets_one_answer_and_the_end(shop, length, more, method, version):
    """Two blocks of headers could be taken for the answers of two requests, and what follows for a request."""
    with shop.wire() as wire:
        wire.send(method + b" /orders " + version + b"\r\nHost: 127.0.0.1\r\nContent-Length: " + length + b"\r\n\r\n" + more)
        reply = wire.reply()
        assert wire.ends() == b"", "more than one answer"
    too_large = len(length) > 15
    assert reply.problem == ("payload-too-large" if too_large else "bad-request"), str(reply)
    assert ("65536 bytes" if too_large else "Content-Length must be") in reply.json["detail"], str(reply)


@pytest.mark.parametrize(
    "lines",
    [
        b"Content-Length : 39",
        b"Content-Length\t: 39",
        b"Transfer-Encoding : chunked",
        b"X-Any : 1",
        b"X Any: 1",
        b" Content-Length: 39\r\nX-Any: 1",
        b"X-Any: 1\r\n Content-Length: 39",
        b"X-Any: 1\r\n\tTransfer-Encoding: chunked",
        b"X-Any:\r\n folded",
        b"X-Any: one\r\n two\r\n three\r\nX-Other: 1",
        b"Content-Length: 3\r\n 9",
    ],
)
@pytest.mark.parametrize("method, target", [(b"POST", b"/orders"), (b"GET", b"/orders")])
@pytest.mark.parametrize("before", [0, 7])
def test_a_header_that_others_may_read_in_another_way(shop, lines, method, target, before):
    """White space before the colon, and values that go on in the next line (RFC 9112, 5.1 and 5.2): somebody before us may
    have found a length there, and then what we take for a request was a body. BEFORE moves it within the library's memory."""
    smuggled = request_bytes("GET", "/healthz")
    with shop.wire() as wire:
        wire.send(method + b" " + target + b" HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + b"x" * before + b"\r\n" + lines + b"\r\n\r\n" + smuggled)
        reply = wire.reply()
        DOCUMENT.check(method.decode(), target.decode(), reply)
        assert wire.ends() == b"", "more than one answer"
    assert reply.problem == "bad-request" and "on one line" in reply.json["detail"], str(reply)


@pytest.mark.parametrize("lines", [b"X-Any:  a\r\n b", b"Content-Length:  3\r\n 9", b"X-Any:   1\n\tb", b"X-Any: a\0b"])
def test_a_folded_header_at_the_end_of_the_librarys_buffer(shop, lines):
    """There the library joins the lines in their place, so their addresses do not give them away. The buffer first has half
    of the 14 KiB of a connection; requests of all sizes around that are sent."""
    start, end = b"GET /orders HTTP/1.1\r\nHost: 127.0.0.1\r\nX: ", b"\r\n" + lines + b"\r\n\r\n"
    for size in range(7 * KIB - 24, 7 * KIB + 24):
        with shop.wire() as wire:
            wire.send(start + b"x" * (size - len(start + end)) + end)
            reply = wire.reply()
            assert reply.problem == "bad-request" and "on one line" in reply.json["detail"], f"{size}: {reply}"


def test_large_headers_that_are_whole_are_right(shop):
    for line_end in (b"\r\n", b"\n"):
        for size in range(7 * KIB - 8, 7 * KIB + 8):
            start, end = line_end.join([b"GET /healthz HTTP/1.1", b"Host: 127.0.0.1", b"X: "]), line_end + b"X-Any:  a" + line_end * 2
            reply, closed = answer(shop, start + b"x" * (size - len(start + end)) + end)
            assert (reply.status, closed) == (200, False), f"{size}: {reply}"


def test_white_space_around_a_value_is_right(shop):
    for value in (b"x", b" x", b"  \t x", b"x  \t", b"", b"   "):
        reply, closed = answer(shop, b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Any:" + value + b"\r\nX-Next: 1\r\n\r\n")
        assert (reply.status, closed) == (200, False), f"{value}: {reply}"
    cookie = b'Cookie: a=1; b="2 3";c=\r\nAccept: */*\r\ncookie: d\r\n'  # the library takes them apart
    reply, closed = answer(shop, b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n" + cookie + b"\r\n")
    assert (reply.status, closed) == (200, False), str(reply)


@pytest.mark.parametrize("hosts, says", [(0, "needs a Host"), (2, "more than once"), (3, "more than once")])
def test_a_request_has_one_host(shop, hosts, says):
    """No more, since a proxy may have checked the other one, and no less, except in HTTP/1.0."""
    with shop.wire() as wire:
        wire.send(b"GET /orders HTTP/1.1\r\n" + b"Host: 127.0.0.1\r\n" * hosts + b"\r\n" + request_bytes("GET", "/healthz"))
        reply = wire.reply()
        DOCUMENT.check("GET", "/orders", reply)
        assert wire.ends() == b"", "more than one answer"
    assert reply.problem == "bad-request" and says in reply.json["detail"], str(reply)


@pytest.mark.parametrize("version", ["HTTP/1.1", "HTTP/1.0"])
def test_too_many_cookies_get_one_answer(shop, version):
    """A browser sends those of all services at this host, whatever their port."""
    host = {"Host": "127.0.0.1"} if version == "HTTP/1.1" else {"Host": None}
    with shop.wire() as wire:
        wire.send(request_bytes("GET", "/healthz", b"", {**host, "Cookie": "x=y;" * 1500}, version))
        reply = wire.reply()
        assert wire.ends() == b"", "more than one answer"
    assert reply.problem == "bad-request" and "too large" in reply.json["detail"], str(reply)


def test_refused_requests_among_others(shop):
    """The one that is refused is found among those whose headers are not all in, or are too large."""
    slow = [shop.wire() for _ in range(20)]
    try:
        for index, wire in enumerate(slow):
            wire.send(b"GET /healthz HTTP/1.1\r\n" + (b"X: " + b"x" * 20000 if index % 4 == 0 else b""))
        for wire in slow[1::4]:
            wire.send(b"Content-Length: x\r\nHost: 127.0.0.1\r\n\r\n")
            assert wire.reply().problem == "bad-request"
        for wire in slow[2::4] + slow[3::4]:
            wire.send(b"Host: 127.0.0.1\r\n\r\n")
            assert wire.reply().status == 200
    finally:
        for wire in slow:
            wire.close()


def test_random_bytes(hasty):
    chance = random.Random(1)
    for _ in range(50):
        data = chance.randbytes(chance.randrange(1, 3000)).replace(b"\n", b"") + b"\r\n\r\n"
        reply, _ = answer(hasty, data)
        assert reply is None or 400 <= reply.status < 500 or reply.status in (501, 505), f"{data!r}: {reply}"


@pytest.mark.parametrize(
    "method, template", sorted((method, template) for method, template, _ in DOCUMENT.operations())
)
@pytest.mark.parametrize("second", ["another length", "the same length", "chunks"])
def test_two_ways_of_saying_where_the_body_ends(shop, method, template, second):
    """Somebody before us may read it the other way, and take our next request for the rest of this body."""
    target = template.replace("{id}", "1").replace("{name}", "mutex")
    extra = {
        "another length": ("Content-Length", "3"),
        "the same length": ("Content-Length", "5"),
        "chunks": ("Transfer-Encoding", "chunked"),
    }[second]
    data = request_bytes(
        method, target, b"", [("Content-Length", None), ("Content-Type", "application/json")]
    )[:-2]
    data += b"Content-Length: 5\r\n" + f"{extra[0]}: {extra[1]}\r\n\r\n".encode() + b"0\r\n\r\n"
    data += request_bytes("GET", "/products/1")  # smuggled
    with shop.wire() as wire:
        wire.send(data)
        reply = wire.reply()
        DOCUMENT.check(method, target, reply)
        assert reply.problem == "bad-request", str(reply)
        rest = wire.ends(seconds=SOON_S)
    assert rest == b"", f"answered a smuggled request: {rest!r}"


def order(product):
    return as_body({"product_id": product, "quantity": 1})


CHUNKED = {"Content-Length": None, "Transfer-Encoding": "chunked"}


def test_a_chunked_body(shop, product):
    body = order(product)
    for parts in ([body], [body[:1], body[1:9], body[9:]], [bytes([byte]) for byte in body]):
        reply, closed = answer(shop, request_bytes("POST", "/orders", b"", {**CHUNKED}) + chunked(*parts))
        assert (reply.status, closed) == (201, False), str(reply)


def test_chunk_extensions_and_trailers(shop, product):
    body = order(product)
    data = b'%x;name="value"\r\n%s\r\n0\r\nX-Trailer: 1\r\n\r\n' % (len(body), body)
    reply, _ = answer(shop, request_bytes("POST", "/orders", b"", {**CHUNKED}) + data)
    assert reply.status in (201, 400), str(reply)


def test_a_body_in_single_bytes(shop, product):
    data = request_bytes("POST", "/orders", order(product))
    with shop.wire() as wire:
        for byte in data:
            wire.send(bytes([byte]))
        assert wire.reply().status == 201


@pytest.mark.parametrize(
    "method, target",
    [
        ("POST", "/orders"),
        ("PUT", "/products/1"),
        ("POST", "/products/1/reset"),
        ("PUT", "/strategy"),
        ("POST", "/locks/door/hold"),
        ("POST", "/runs"),
        ("POST", "/sandboxes"),
        ("PUT", "/classroom/limit"),
    ],
)
@pytest.mark.parametrize("size", [64 * KIB + 1, 70 * KIB, 500 * KIB])
def test_a_body_that_is_too_large(shop, method, target, size):
    body = b"{" + b" " * (size - 1)
    for framed in (
        request_bytes(method, target, body),
        request_bytes(method, target, b"", {**CHUNKED})
        + chunked(*[body[at : at + 16 * KIB] for at in range(0, size, 16 * KIB)]),
    ):
        with shop.wire() as wire:
            wire.send(framed)
            reply = wire.reply()
            DOCUMENT.check(method, target, reply)
            assert reply.problem == "payload-too-large", str(reply)


def test_a_length_that_is_too_large_is_refused_before_the_body_comes(shop):
    for size in (MIB + 1, 2 * MIB, 1 << 40, (1 << 63) - 1):
        with shop.wire() as wire:
            wire.send(request_bytes("POST", "/orders", b"", {"Content-Length": str(size)}))
            reply = wire.reply(seconds=SOON_S)
            assert reply.problem == "payload-too-large", f"{size}: {reply}"


def test_an_expectation_is_answered(shop, product):
    """curl asks first when a body is large."""
    body = order(product)
    with shop.wire() as wire:
        wire.send(
            request_bytes(
                "POST", "/orders", b"", {"Content-Length": str(len(body)), "Expect": "100-continue"}
            )
        )
        wire.fill()
        assert wire.buffer.startswith(b"HTTP/1.1 100"), f"{wire.buffer!r}"
        wire.send(body)
        assert wire.reply().status == 201


def endless(wire, piece, most):
    """Sends PIECE until the service has had enough; returns how many bytes it took."""
    sent = 0
    while sent < most:
        try:
            wire.send(piece)
        except Closed:
            break
        sent += len(piece)
    return sent


def test_a_body_over_a_mebibyte_ends_the_connection(shop):
    before = shop.resident_bytes
    with shop.wire() as wire:
        wire.send(request_bytes("POST", "/orders", b"", {**CHUNKED}))
        taken = endless(wire, b"4000\r\n" + b" " * 0x4000 + b"\r\n", 64 * MIB)
    assert taken < 32 * MIB, f"it took {taken} bytes"
    assert shop.resident_bytes - before < 16 * MIB, "it kept them"


def test_endless_headers_and_trailers(shop):
    for start in (
        b"GET /healthz HTTP/1.1\r\nHost: x\r\n",
        b"GET /healthz HTTP/1.1\r\nX: ",
        b"GET /",
        request_bytes("POST", "/orders", b"", {**CHUNKED}) + b"0\r\n",
    ):
        with shop.wire() as wire:
            wire.send(start)
            piece = b"X-More: " + b"y" * 1000 + (b"\r\n" if start.endswith(b"\n") else b"")
            taken = endless(wire, piece, 64 * MIB)
        assert taken < 32 * MIB, f"it took {taken} bytes after {start[:40]!r}"


# ── pipelining and versions ─────────────────────────────────────────────────────────────────────────────────


def test_sixteen_pipelined_requests_are_answered_in_order(shop, product):
    """Orders and reads, fast and slow, right and wrong, in one write."""
    requests = []
    for index in range(16):
        headers = {"X-Request-Id": f"pipelined-{index}"}
        requests.append(
            [
                ("POST", "/orders", order(product), headers, 201),
                ("GET", "/healthz", b"", headers, 200),
                ("POST", "/orders", b"not json", headers, 400),
                ("GET", f"/products/{product}", b"", headers, 200),
                ("POST", "/orders?strategy=mutex", order(product), headers, 201),
                ("GET", "/nothing", b"", headers, 404),
            ][index % 6]
        )
    with shop.wire() as wire:
        wire.send(
            b"".join(
                request_bytes(method, target, body, headers) for method, target, body, headers, _ in requests
            )
        )
        got = []
        for method, target, _, _, _ in requests:
            reply = wire.reply()
            DOCUMENT.check(method, target, reply)
            got.append((reply.header("X-Request-Id"), reply.status))
    assert got == [(headers["X-Request-Id"], status) for _, _, _, headers, status in requests]


def test_pipelined_orders_that_arrive_in_pieces(shop, product):
    before = shop.audit(product)["orders"]
    data = request_bytes("POST", "/orders", order(product)) * 16
    with shop.wire() as wire:
        for at in range(0, len(data), 97):
            wire.send(data[at : at + 97])
        ids = [wire.reply().json["id"] for _ in range(16)]
    assert ids == sorted(ids) and len(set(ids)) == 16
    assert shop.audit(product)["orders"] == before + 16


def test_a_client_that_does_not_wait_for_its_answers(shop, product):
    """Its orders are placed or not, but stock and orders balance and nobody else notices."""
    for _ in range(20):
        with shop.wire() as wire:
            wire.send(request_bytes("POST", "/orders", order(product)) * 4)
    assert shop.order(product, 1).status == 201
    wait_until(lambda: shop.audit(product)["in_flight"] == 0, "those orders have ended")
    assert shop.audit(product)["balanced"]


def test_keep_alive(shop, product):
    with shop.wire() as wire:
        for _ in range(50):
            wire.send(request_bytes("POST", "/orders", order(product)))
            assert wire.reply().status == 201
            wire.send(request_bytes("POST", "/orders", b"{"))
            assert wire.reply().status == 400


def test_http_1_0(shop, product):
    with shop.wire() as wire:
        wire.send(request_bytes("POST", "/orders", order(product), version="HTTP/1.0"))
        assert wire.reply().status == 201
        assert wire.ends(seconds=SOON_S) == b""
    with shop.wire() as wire:
        wire.send(b"GET /healthz HTTP/1.0\r\n\r\n")
        assert wire.reply().status == 200


def test_connection_close(shop):
    with shop.wire() as wire:
        wire.send(request_bytes("GET", "/healthz", b"", {"Connection": "close"}))
        assert wire.reply().header("Connection").lower() == "close"
        assert wire.ends(seconds=SOON_S) == b""


@pytest.mark.parametrize("target", ["/healthz", "/orders", "/products/1", "/nothing", "/strategy"])
def test_head(shop, target):
    """As GET without the body, or not supported; never a body."""
    with shop.wire() as wire:
        wire.send(
            request_bytes("HEAD", target)
            + request_bytes("GET", "/healthz", b"", {"X-Request-Id": "the-next"})
        )
        reply = wire.reply(head=True)
        assert reply.status in ((404,) if target == "/nothing" else (200, 405)), str(reply)
        if reply.status == 405:
            assert "GET" in reply.header("Allow")
        following = wire.reply()
        assert (following.status, following.header("X-Request-Id")) == (200, "the-next"), str(following)


@pytest.mark.parametrize("target", ["/healthz", "/orders", "/products/1", "/strategy"])
def test_options(shop, target):
    reply = shop.call("OPTIONS", target, check=False)
    assert reply.status in (200, 204, 405), str(reply)
    allowed = {method.strip() for method in reply.header("Allow").split(",")}
    assert DOCUMENT.methods(DOCUMENT.template_of(target)) <= allowed, f"{allowed}"


@pytest.mark.parametrize("method", ["TRACE", "CONNECT", "BREW", "get", "PROPFIND", "X" * 500])
def test_other_methods(shop, method):
    reply = shop.call(method, "/orders", check=False)
    assert reply.status in (400, 405, 501), str(reply)
    if reply.status == 405:
        assert reply.problem == "method-not-allowed"
        assert reply.header("Allow")
    assert b"Host" not in reply.body, "it echoes the request"


def test_a_body_on_a_get_is_no_failure(shop):
    reply, _ = answer(shop, request_bytes("GET", "/products/1", b'{"x":1}'))
    assert reply.status in (200, 400), str(reply)


def test_replies_carry_no_more_than_they_say(shop, product):
    """Length, type and nothing to sniff; no reply is cached."""
    for reply in (shop.get("/products/1"), shop.get("/nothing"), shop.order(product)):
        assert int(reply.header("Content-Length")) == len(reply.body)
        assert reply.header("Transfer-Encoding") is None


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("crowd", [127, 128, 256])
def test_a_crowd_is_heard_in_the_same_moment(services, database, crowd, threads):
    """As many requests at once as libmicrohttpd takes from the kernel at once: nobody waits for one more to come."""
    service = services.start(database, "--http-threads", threads)
    wires = [service.wire() for _ in range(crowd)]
    request = as_body({"product_id": 1, "quantity": 1})
    try:
        for wire in wires:  # so that the service knows the connections
            wire.send(request_bytes("GET", "/healthz"))
            assert wire.reply().status == 200
        service.process.send_signal(signal.SIGSTOP)
        for wire in wires:
            wire.send(request_bytes("POST", "/echo", request))
        service.process.send_signal(signal.SIGCONT)
        assert {wire.reply().status for wire in wires} == {200}
    finally:
        service.process.send_signal(signal.SIGCONT)
        for wire in wires:
            wire.close()


def test_problems_have_the_types_of_the_table(shop):
    """The table of this suite and the one of the service, one of each that is cheap."""
    seen = {
        shop.call(method, target, body).problem
        for method, target, body in (
            ("POST", "/orders", b"{"),
            ("POST", "/orders", b'{"product_id":1,"quantity":0}'),
            ("GET", "/nothing", None),
            ("GET", "/orders/999999999", None),
            ("GET", "/products/999999999", None),
            ("DELETE", "/orders", None),
        )
    }
    assert seen == {
        "bad-request",
        "invalid-order",
        "not-found",
        "no-such-order",
        "no-such-product",
        "method-not-allowed",
    }
    assert seen < set(PROBLEMS)
