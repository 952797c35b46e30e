"""The services in samples/, which `make peers` measures."""

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = os.path.relpath(os.environ.get("BUILD", "build"), ROOT)


def run(*command):
    return subprocess.run(command, cwd=ROOT, env={**os.environ, "MAKEFLAGS": "", "BUILD": BUILD}, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=600, check=False)  # fmt: skip


def node_loads_pg():
    modules = f"{ROOT / BUILD}/peers/modules/usr/share/nodejs:/usr/share/nodejs"
    return run("env", f"NODE_PATH={modules}", "node", "-e", "require('pg')").returncode == 0


def test_each_sample_sells_the_stock_and_no_more():
    """The check that `make peers` makes before it measures. It also fails if a service does not stop on SIGTERM."""
    if not all(Path(path).exists() for path in ("/usr/bin/javac", "/usr/share/java/jetty9-server.jar", "/usr/share/java/HikariCP.jar")) or not node_loads_pg():
        pytest.skip("the libraries of the samples are not installed: make deps-peers")
    made = run("make", f"BUILD={BUILD}", f"{BUILD}/peers/shop.jar")
    assert made.returncode == 0, made.stdout
    ran = run("samples/peers", "--check")
    assert ran.returncode == 0, ran.stdout
    sold = re.findall(r"^peers: (\w+), ([\w-]+): 300 orders bought 100 of 100 units$", ran.stdout, re.M)
    assert sorted(sold) == [("java", "for-update"), ("java", "statement"), ("node", "for-update"), ("node", "statement")], ran.stdout
    assert len(re.findall(r"^peers: loop, (?:statement|for-update): [1-9][\d,]* orders in a second$", ran.stdout, re.M)) == 2, ran.stdout
