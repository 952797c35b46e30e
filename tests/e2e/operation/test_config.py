"""Configuration: --help prints what there is; a mistake ends the start with exit 2 and says what is valid."""

import re
import socket

import pytest

from lab import run_service, wait_until
from promises import STRATEGIES

FLAG = re.compile(r"^\s+--([a-z-]+)\s+([A-Z_]+)\s", re.MULTILINE)


@pytest.fixture(scope="module")
def flags():
    """flag → environment variable, as --help tells."""
    status, out, err = run_service("--help")
    assert (status, err) == (0, "")
    return dict(FLAG.findall(out))


def test_help_tells_every_flag_and_variable(flags):
    wanted = {
        "listen": "LISTEN",
        "port-file": "PORT_FILE",
        "instance": "INSTANCE",
        "database-url": "DATABASE_URL",
        "lock-database-url": "LOCK_DATABASE_URL",
        "redis-url": "REDIS_URL",
        "redlock-urls": "REDLOCK_URLS",
        "zookeeper-connect": "ZOOKEEPER_CONNECT",
        "etcd-endpoints": "ETCD_ENDPOINTS",
        "lock-prefix": "LOCK_PREFIX",
        "strategy": "STRATEGY",
        "workers": "WORKERS",
        "queue": "QUEUE",
        "lock-ttl-ms": "LOCK_TTL_MS",
        "lock-wait-ms": "LOCK_WAIT_MS",
        "think-ms": "THINK_MS",
        "request-timeout-ms": "REQUEST_TIMEOUT_MS",
        "log-level": "LOG_LEVEL",
        "log-format": "LOG_FORMAT",
    }
    assert {flag: flags.get(flag) for flag in wanted} == wanted
    _, out, _ = run_service("--help")
    assert "ADMIN_TOKEN" in out
    for name in STRATEGIES:
        assert re.search(rf"\b{name}\b", out), f"--help does not name {name}"


def test_a_secret_cannot_be_given_where_all_can_see_it(flags):
    """Arguments stand in the list of processes."""
    assert not {"admin-token", "token"} & set(flags)


def test_every_flag_is_known_and_wants_a_value(flags):
    for flag in flags:
        asked = f"--{flag}=perhaps" if flag in ("classroom", "in-turn") else f"--{flag}"  # a switch needs none, and knows yes and no
        status, out, err = run_service(asked)
        assert status == 2, f"{asked}: exit {status}\n{out}{err}"
        assert flag in err, f"--{flag}: {err}"


@pytest.mark.parametrize(
    "arguments",
    [
        ["--nonsense", "1"],
        ["--listne", "127.0.0.1:0"],
        ["nonsense"],
        ["-x"],
        ["--"],
        ["--workers=2", "extra"],
        ["--WORKERS", "2"],
        ["--nonsense=1"],
        [""],
    ],
)
def test_an_unknown_argument_lists_the_valid_ones(flags, arguments):
    status, out, err = run_service(*arguments)
    assert (status, out) == (2, ""), f"exit {status}: {out}{err}"
    for flag in flags:
        assert f"--{flag}" in err, f"--{flag} is not listed: {err}"


BAD_VALUES = [
    ("workers", ["0", "-1", "x", "", "1.5", "1e2", "99999999999999999999", "2 ", "0x10", "100000"]),
    ("queue", ["0", "-1", "x", "1000000000"]),
    ("lock-ttl-ms", ["0", "-5", "10s", "x"]),
    ("lock-wait-ms", ["-1", "x"]),
    ("think-ms", ["-1", "x", "100000000"]),
    ("request-timeout-ms", ["0", "-1", "x"]),
    ("strategy", ["nobody", "MUTEX", ""]),
    ("log-level", ["loud", "INFO", ""]),
    ("log-format", ["xml", ""]),
    (
        "listen",
        [
            "nowhere",
            "127.0.0.1",
            "127.0.0.1:",
            "127.0.0.1:x",
            "127.0.0.1:70000",
            "127.0.0.1:-1",
            "300.0.0.1:80",
            "example.org:80",
            "::1:80",
            "[::1",
            "",
            "127.0.0.1:1:2",
        ],
    ),
]


@pytest.mark.parametrize("flag, value", [(flag, value) for flag, values in BAD_VALUES for value in values])
def test_a_bad_value_says_what_is_valid(flag, value):
    status, out, err = run_service(f"--{flag}", value)
    assert status == 2, f"exit {status}: {out}{err}"
    assert f"--{flag}" in err and "valid" in err, err
    if flag == "strategy":
        for name in STRATEGIES:
            assert name in err, f"{name} is not listed: {err}"


def test_a_bad_value_in_the_environment(flags):
    for flag, values in BAD_VALUES:
        status, out, err = run_service("--port-file", "/dev/null", env={flags[flag]: values[0]})
        assert status == 2, f"{flags[flag]}={values[0]}: exit {status}: {out}{err}"
        assert flags[flag] in err and "valid" in err, err


@pytest.mark.long
def test_the_environment_counts(services, database):
    service = services.start(database, env={"STRATEGY": "optimistic", "THINK_MS": "3", "LOCK_WAIT_MS": "777"})
    now = service.get("/strategy").json
    assert (now["name"], now["think_ms"], now["lock_wait_ms"]) == ("optimistic", 3, 777)


def test_a_flag_wins_over_the_environment(services, database):
    service = services.start(
        database,
        "--strategy",
        "mutex",
        "--think-ms=4",
        env={"STRATEGY": "optimistic", "THINK_MS": "3", "LOCK_WAIT_MS": "777"},
    )
    now = service.get("/strategy").json
    assert (now["name"], now["think_ms"], now["lock_wait_ms"]) == ("mutex", 4, 777)


def test_an_empty_variable_is_none(services, database):
    service = services.start(database, env={"STRATEGY": "", "THINK_MS": "", "ADMIN_TOKEN": ""})
    assert service.get("/strategy").json["name"] == "atomic-decrement"


def test_the_last_of_two_flags_wins(services, database):
    service = services.start(database, "--strategy", "mutex", "--strategy", "table-lock")
    assert service.get("/strategy").json["name"] == "table-lock"


def test_the_listen_variable(services, database):
    """As the flag; the flag wins."""
    service = services.start(database, env={"LISTEN": "203.0.113.1:1"})
    assert service.get("/healthz").status == 200


def test_an_address_that_is_not_ours(database):
    status, out, err = run_service(
        "--listen", "203.0.113.1:8080", env={"DATABASE_URL": database, "ADMIN_TOKEN": "x" * 20}
    )
    assert status not in (0, None) and status > 0, f"exit {status}"
    assert "203.0.113.1" in out + err, out + err


def test_ipv6_loopback_needs_no_token(services, database):
    service = services.start(database, listen="[::1]:0", ready=None)
    port = int(wait_until(service._port, "it listens"))
    with socket.create_connection(("::1", port), timeout=5) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: [::1]\r\n\r\n")
        assert connection.recv(100).startswith(b"HTTP/1.1 200")


def test_a_token_from_a_file(services, database, tmp_path):
    token = tmp_path / "token"
    token.write_text("from-a-file\n")
    service = services.start(database, "--admin-token-file", str(token))
    assert service.put("/strategy", {"name": "mutex"}).problem == "unauthorized"
    assert service.put("/strategy", {"name": "mutex"}, {"Authorization": "Bearer from-a-file"}).status == 200


@pytest.mark.parametrize("content", [None, "", "\n", "\nsecond line\n"])
def test_a_token_file_without_a_token(tmp_path, content):
    token = tmp_path / "token"
    if content is not None:
        token.write_text(content)
    status, out, err = run_service("--admin-token-file", str(token))
    assert status == 2 and str(token) in err, f"exit {status}: {out}{err}"


def test_a_long_token_is_not_cut(services, database, tmp_path):
    """Cut, it would be a shorter secret than its owner thinks."""
    token = tmp_path / "token"
    token.write_text("x" * 200 + "y" * 200)
    try:
        service = services.start(database, "--admin-token-file", str(token), ready=None)
        service.listening()
    except AssertionError:
        assert service.process.wait(timeout=10) == 2, "refused, then, as every bad value"
        services.running.remove(service)
        return
    reply = service.put("/strategy", {"name": "mutex"}, {"Authorization": "Bearer " + "x" * 200 + "y" * 200})
    assert reply.status == 200, str(reply)


def test_the_instance_stands_in_the_orders(services, database):
    service = services.start(database, "--instance", "till 7")
    order = service.order(1).json
    assert service.get(f"/orders/{order['id']}").json["items"][0]["instance"] == "till 7"


def test_the_port_file_is_whole(services, database):
    service = services.start(database)
    assert service.port_file.read_text().strip() == str(service.port)


def test_a_port_file_that_cannot_be_written(database):
    status, out, err = run_service(
        "--listen", "127.0.0.1:0", "--port-file", "/nonexistent/folder/port", env={"DATABASE_URL": database}
    )
    assert status > 0 and "/nonexistent/folder/port" in out + err, f"exit {status}: {out}{err}"


def test_an_address_that_is_in_use(database):
    with socket.create_server(("127.0.0.1", 0)) as other:
        address = f"127.0.0.1:{other.getsockname()[1]}"
        status, out, err = run_service("--listen", address, env={"DATABASE_URL": database})
    words = f"cannot listen on {address}: Address already in use. Choose another address with --listen"
    assert status > 0 and (out + err).rstrip().endswith(words), f"exit {status}: {out}{err}"


@pytest.mark.parametrize("url", ["nonsense", "mysql://127.0.0.1/shop", "postgresql://[::1/shop"])
def test_a_database_url_that_is_none(url):
    """Known to be wrong before anything is started."""
    status, out, err = run_service("--listen", "127.0.0.1:0", env={"DATABASE_URL": url}, seconds=3)
    assert status == 2 and "DATABASE_URL" in err, f"exit {status}: {out}{err}"
