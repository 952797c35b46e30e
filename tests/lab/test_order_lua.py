"""The counts of `loadtest compare` begin with the answers that order.lua reads in wrk: each answer counts, and as what it is."""

import json
import os
import signal
import subprocess
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from test_loadtest import ROOT

SCRIPT = ROOT / "loadtest/load/order.lua"
KINDS = {  # counter: status and problem
    "sold_out": (409, "sold-out"),
    "lock_busy": (409, "lock-busy"),
    "conflict": (409, "conflict"),
    "overloaded": (503, "overloaded"),
    "lock_lost": (503, "lock-lost"),
    "unavailable": (503, "backend-unavailable"),
    "unknown": (503, "outcome-unknown"),
    "other": (500, "internal"),
}


class Shop(BaseHTTPRequestHandler):
    """Gives the answers of its server's list, one after the other."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        request = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.requests.append((self.headers.get("Idempotency-Key"), json.loads(request)))
        status, problem = self.server.answers[len(self.server.requests) - 1]
        body = json.dumps({"type": f"http://x/problems/{problem}"} if problem else {"id": 7, "stock_seen": 3}).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture
def shop():
    with ThreadingHTTPServer(("127.0.0.1", 0), Shop) as server:
        server.requests = []
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def counts_of(shop, answers, **settings):
    """What wrk counts when one connection gets these answers."""
    shop.answers = answers
    port = shop.server_address[1]
    environment = os.environ | {
        "LOAD_TARGETS": f"127.0.0.1 {port}",
        "LOAD_THREADS": "1",
        "LOAD_CONNECTIONS": "1",
        "LOAD_REQUESTS": str(len(answers)),
        **settings,
    }
    command = ["wrk", "-t1", "-c1", "-d60s", "-s", SCRIPT, f"http://127.0.0.1:{port}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as wrk:
        for line in wrk.stdout:
            if line.startswith("oversell parked"):
                wrk.send_signal(signal.SIGINT)
            if line.startswith("oversell result "):
                return json.loads(line.removeprefix("oversell result "))
    raise AssertionError("wrk printed no result")


def test_each_answer_counts_as_what_it_is(shop):
    expected = {name: n for n, name in enumerate(KINDS, 1)}
    answers = [KINDS[name] for name, n in expected.items() for _ in range(n)]
    answers += [(201, None)] * 20 + [(202, None)] * 3
    counts = counts_of(shop, answers)
    assert {name: counts[name] for name in KINDS} == expected
    assert counts["created"] == 23
    assert counts["sent"] == counts["answered"] == len(answers)


def test_an_order_that_is_created_after_sold_out_is_late(shop):
    counts = counts_of(shop, [(201, None), KINDS["sold_out"], (201, None), (202, None)])
    assert Counter(created=counts["created"], late=counts["created_late"]) == Counter(created=3, late=2)


def test_an_order_that_may_succeed_later_is_sent_again(shop):
    busy = [KINDS[name] for name in ("lock_busy", "conflict", "overloaded", "lock_lost")]
    counts = counts_of(shop, [*busy, (201, None), (201, None), (201, None)], LOAD_REQUESTS="3", LOAD_STUCK_MS="30000")
    assert counts["created"] == 3
    assert counts["sent"] == 7
