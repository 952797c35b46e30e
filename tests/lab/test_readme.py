"""The README's commands, run as they are printed."""

import json
import os
import re
import signal
import subprocess
import urllib.request
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = os.environ.get("BUILD", "build")


def free_port():
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture(scope="module")
def port():
    """`make run`, on a free port and with a private stack; Ctrl-C must end it cleanly."""
    chosen = free_port()
    run = subprocess.Popen(
        ["make", "--no-print-directory", "run", f"BUILD={BUILD}", f"ARGS=--listen 127.0.0.1:{chosen}"],
        cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        start_new_session=True, env={**os.environ, "LOG_FORMAT": "text", "MAKEFLAGS": ""},
    )  # fmt: skip
    lines = []
    for line in run.stdout:
        lines.append(line)
        if "listening" in line:
            break
    else:
        pytest.fail("make run: " + "".join(lines))
    yield chosen
    os.killpg(run.pid, signal.SIGINT)
    rest, _ = run.communicate(timeout=300)
    assert "stopped" in rest, rest
    with pytest.raises(OSError):
        urllib.request.urlopen(f"http://127.0.0.1:{chosen}/healthz", timeout=60)


def test_the_table_recommends_what_the_program_recommends(port):
    """The table's figures are stored results, which keep the words of the day of their measurement."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/strategies", timeout=60) as answer:
        use_for = {row["name"]: row["use_for"] for row in json.load(answer)["strategies"]}
    table = re.search(r"^<!-- demo -->$(.*?)^<!-- /demo -->$", (ROOT / "README.md").read_text(), re.S | re.M)[1]
    rows = re.findall(r"^\| `([\w-]+)` \|.*\| (.+) \|$", table, re.M)
    assert len(rows) == 10 and rows == [(name, use_for[name]) for name, _ in rows], rows


def test_the_curl_calls_work_as_printed(port):
    text = (ROOT / "README.md").read_text()
    blocks = re.findall(r"^```sh\n(.*?)^```", text, re.S | re.M)
    assert len(blocks) >= 2
    outputs = []
    for block in blocks:
        script = block.replace("localhost:8080", f"127.0.0.1:{port}")
        ran = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script], capture_output=True, text=True, timeout=300, check=False
        )
        assert ran.returncode == 0, f"{block}\n{ran.stdout}{ran.stderr}"
        assert '"bad-request"' not in ran.stdout and "/problems/" not in ran.stdout.replace(
            "/problems/sold-out", ""
        ), ran.stdout
        outputs.append(ran.stdout)
    audit = json.loads(re.search(r'\{"product_id" : .*?"witness" : .*?\}(?=\{|$)', outputs[0], re.S).group())
    assert audit["oversold"] > 0 and audit["witness"]["orders"], audit
    assert '"acquired":true' in outputs[1] and '"strategy":"zookeeper"' in outputs[1], outputs[1]
    assert "201 Created" in outputs[2] and "Location: /orders/" in outputs[2], outputs[2]
