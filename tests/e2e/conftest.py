"""Fixtures: one private stack a job, services that must end cleanly, and what each job records for the judge of the whole run."""

import contextlib
import json
import os
import sys
from pathlib import Path

import pytest

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
pytest.register_assert_rewrite("basics", "browser", "contract", "firefox", "crowd", "lab", "learner", "load", "proxy", "servers", "service", "wire")

import lab  # noqa: E402  after its assertions are set to be explained
from length import pytest_collection_modifyitems  # noqa: E402,F401  a hook of pytest


def pytest_sessionfinish():
    """A run of all tests has several jobs. Each records the documented answers that it has seen, for whole_run.py."""
    if record := os.environ.get("ANSWERS_SEEN"):
        Path(record).write_text(json.dumps(sorted(lab.DOCUMENT.seen, key=str)), encoding="utf-8")


def pytest_make_parametrize_id(val):
    """Long and unprintable values make short names."""
    return (
        repr(val)[:40]
        if isinstance(val, (str, bytes)) and (len(val) > 40 or not str(val).isprintable())
        else None
    )


@pytest.fixture(scope="session")
def stack():
    """The private servers; their output is in its folder."""
    servers = lab.Stack()
    try:
        servers.up()
        lab.Service.lock_servers = {
            name: address for name, address in servers.environment.items() if name != "DATABASE_URL"
        }
        yield servers
    finally:
        servers.down()


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("services")


@pytest.fixture
def services(folder):
    """Starts services for one test: services.start(database_url, flags…)."""
    started = lab.Services(folder)
    yield started
    started.end()


@pytest.fixture(scope="module")
def file_services(folder):
    """Starts services for all tests of a file."""
    started = lab.Services(folder)
    yield started
    started.end()


@pytest.fixture(scope="module")
def shop(stack, file_services):
    """One service with plain settings and its own database."""
    return file_services.start(stack.database(), "--workers", "16")


@pytest.fixture(scope="module")
def start_browser(request, tmp_path_factory):
    """Starts a browser for all tests of a file: Chromium, or what the file names as BROWSER."""
    from browser import Browser  # here, since most files need no browser

    with contextlib.ExitStack() as started:

        def start():
            browser = getattr(request.module, "BROWSER", Browser)(tmp_path_factory.mktemp("downloads"))
            started.callback(browser.quit)
            return browser

        yield start


@pytest.fixture(scope="module")
def browser(start_browser):
    return start_browser()


@pytest.fixture(scope="module")
def browsers(browser, start_browser):
    """A teacher's browser and those of two learners."""
    return [browser, start_browser(), start_browser()]


@pytest.fixture(scope="module")
def pair(stack, file_services):
    """Two service processes on one database."""
    database = stack.database()
    return [file_services.start(database, "--workers", "8") for _ in range(2)]


@pytest.fixture
def database(stack):
    """A new, empty database."""
    return stack.database()
