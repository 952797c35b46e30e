"""Fixtures: one private stack a run, services that must end cleanly, and the last word on the whole run."""

import sys
from pathlib import Path

import pytest

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
pytest.register_assert_rewrite("basics", "browser", "contract", "crowd", "lab", "learner", "load", "proxy", "servers", "service", "wire")

import lab  # noqa: E402  after its assertions are set to be explained


def pytest_collection_modifyitems(config, items):
    """The test of the whole run goes last, and only where the whole run is there to be judged."""
    last = [item for item in items if item.path.name == "test_zz_whole_run.py"]
    rest = [item for item in items if item not in last]
    files = {path.name for path in Path(__file__).parent.rglob("test_*.py")}
    option = config.option
    whole = (
        files == {item.path.name for item in items}
        and not option.keyword
        and option.markexpr in ("", "not long")
        and not any("::" in argument for argument in config.args)
    )
    if not whole and last:
        config.hook.pytest_deselected(items=last)
        last = []
    items[:] = rest + last


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
def pair(stack, file_services):
    """Two service processes on one database."""
    database = stack.database()
    return [file_services.start(database, "--workers", "8") for _ in range(2)]


@pytest.fixture
def database(stack):
    """A new, empty database."""
    return stack.database()
