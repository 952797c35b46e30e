"""The service's role in PostgreSQL: it owns the shop's tables and nothing else, and is no superuser."""

import os
import re
import subprocess
from pathlib import Path

import pytest
from lab import ROOT, Stack, number, psql, wait_until, with_database

SHOP_SQL = ROOT / "stack" / "shop.sql"
ATTRIBUTES = "rolcanlogin, rolsuper, rolcreatedb, rolcreaterole, rolreplication, rolbypassrls"
NOT_OURS = (
    "SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace"
    " WHERE nspname = 'public' AND relowner <> 'shop'::regrole"
)
# Objects of this database that are neither in the shop's schema nor in one that the role has made, and shared ones.
OWNED_ELSEWHERE = (
    "SELECT count(*) FROM pg_shdepend WHERE refobjid = 'shop'::regrole AND deptype = 'o'"
    " AND dbid <> (SELECT oid FROM pg_database WHERE datname = current_database())"
)


def expect_plain_role(admin_url):
    assert psql(admin_url, f"SELECT {ATTRIBUTES} FROM pg_roles WHERE rolname = 'shop'") == [["t"] + ["f"] * 5]
    assert number(admin_url, OWNED_ELSEWHERE) == 0
    assert number(admin_url, NOT_OURS) == 0, "every table and view in the shop's schema"
    assert number(admin_url, "SELECT count(*) FROM pg_database WHERE datdba = 'shop'::regrole") == 0
    memberships = "SELECT roleid::regrole FROM pg_auth_members WHERE member = 'shop'::regrole"
    assert psql(admin_url, memberships) in ([], [["pg_checkpoint"]])


def expect_orders(service):
    product = service.product(stock=3)
    assert [service.order(product).status for _ in range(4)] == [201, 201, 201, 409]
    assert service.audit(product)["balanced"] is True


def refused(url, sql):
    with pytest.raises(AssertionError, match="permission denied|must be|only roles"):
        psql(url, sql)


@pytest.fixture
def own(tmp_path):
    """A PostgreSQL of this test, not yet up."""
    own = Stack()
    yield own
    own.down()


@pytest.mark.long
def test_the_services_role_owns_the_shops_tables_and_nothing_else(own, services):
    own.up("postgres")
    service = services.start(own.url, "--workers", "4")
    expect_orders(service)
    for lock in ("lock-row", "lock-table", "shedlock"):
        assert service.order(service.product(stock=1), strategy=lock).status == 201
    expect_plain_role(own.admin_url)
    for sql in (
        "CREATE ROLE other",
        "CREATE DATABASE other",
        "ALTER ROLE shop SUPERUSER",
        "ALTER SYSTEM SET max_connections = 3",
        "COPY product TO PROGRAM 'cat'",
        "COPY product TO '/tmp/never-written'",
        "SELECT pg_read_file('postgresql.conf')",
        "SELECT rolpassword FROM pg_authid",
        "DROP DATABASE postgres",
        "CREATE EXTENSION file_fdw",
    ):
        refused(own.url, sql)
    service.stop()


def older_shop(superuser_url):
    """Version 1 of the tables, made by whoever URL names, with one order."""
    schema = (ROOT / "db/schema/001.sql").read_text()
    psql(
        superuser_url,
        "CREATE TABLE schema_version (version int PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now());"
        "INSERT INTO schema_version VALUES (1);" + schema + ";"
        "INSERT INTO product (id, name, price, count, initial_count, created_by, updated_by)"
        " VALUES (1, 'Old ticket', 5, 7, 7, 'old', 'old')",
    )


def expect_new_version(service, url):
    newest = max(int(number) for number in re.findall(r"(\d+)\.sql", " ".join(os.listdir(ROOT / "db/schema"))))
    assert number(url, "SELECT max(version) FROM schema_version") == newest
    assert service.get("/products/1").json["name"] == "Old ticket"
    assert service.order(1).status == 201


@pytest.mark.long
def test_a_database_that_a_superuser_has_made_is_handed_over(own, services):
    """As docs/security.md says: by stack/shop.sql, once or again."""
    own.up("postgres")
    psql(own.admin_url, "CREATE DATABASE handed_over")
    admin, url = (with_database(each, "handed_over") for each in (own.admin_url, own.url))
    older_shop(admin)
    service = services.start(admin, "--workers", "2")  # to the newest version, and all that it makes
    assert service.order(1, strategy="lock-row").status == 201
    service.stop()
    refused(url, "SELECT count(*) FROM product")
    for _ in range(2):
        psql(admin, SHOP_SQL.read_text())
    assert psql(admin, NOT_OURS) == [["0"]], "stack/shop.sql names every table and view"
    service = services.start(url, "--workers", "2")
    expect_new_version(service, url)
    expect_orders(service)
    service.stop()
    assert psql(admin, f"SELECT {ATTRIBUTES} FROM pg_roles WHERE rolname = 'shop'") == [["t"] + ["f"] * 5]


def as_owner(folder):
    """What runs a command as the user of a private server's files."""
    owner = folder.stat()
    return ["setpriv", "--reuid", str(owner.st_uid), "--regid", str(owner.st_gid), "--clear-groups"] if os.geteuid() == 0 else []


def make_stack_of_earlier_version(own):
    """Turns a private stack into one of an earlier version, whose first superuser is `shop`, with tables of version 1."""
    programs = Path(os.readlink(f"/proc/{(own.servers / 'postgres.pid').read_text().strip()}/exe")).parent
    own.stop()
    data, conf = own.servers / "postgres" / "data", (own.servers / "postgres" / "data" / "postgresql.conf").read_text()
    server = as_owner(own.servers / "postgres")
    subprocess.run([*server, "rm", "-rf", data], check=True)
    given = (own.servers / "postgres.password").read_text()
    file = data.parent / "given"
    subprocess.run([*server, "tee", file], input=given, text=True, check=True, stdout=subprocess.DEVNULL)
    subprocess.run([*server, programs / "initdb", "--pgdata", data, "--username", "shop", "--pwfile", file, "--auth",
                    "scram-sha-256", "--encoding", "UTF8", "--locale", "C.UTF-8"], check=True, stdout=subprocess.DEVNULL)  # fmt: skip
    subprocess.run([*server, "tee", data / "postgresql.conf"], input=conf, text=True, check=True, stdout=subprocess.DEVNULL)
    subprocess.run([*server, programs / "postgres", "--single", "-D", data, "postgres"], input="CREATE DATABASE shop;\n",
                   text=True, check=True, capture_output=True)  # fmt: skip
    (own.servers / "postgres-admin.password").unlink()
    # Its own start, as that version did it: nothing but the server.
    port = (own.servers / "postgres.port").read_text().strip()
    log = own.folder / "earlier.log"
    with log.open("w") as out, subprocess.Popen([*server, programs / "postgres", "-D", data, "-p", port], cwd=data,
                                                stdout=out, stderr=out) as earlier:  # fmt: skip
        try:
            wait_until(lambda: "ready to accept connections" in log.read_text(), "the earlier version is up")
            older_shop(own.url)
            assert psql(own.url, "SELECT rolsuper FROM pg_roles WHERE rolname = 'shop'") == [["t"]]
        finally:
            earlier.terminate()


@pytest.mark.long
def test_a_stack_of_an_earlier_version_is_handed_over(own, services):
    own.up("postgres")
    make_stack_of_earlier_version(own)
    url = own.url
    own.up("postgres")
    assert own.url == url, "the service's address stays"
    service = services.start(own.url, "--workers", "2")
    expect_new_version(service, own.url)
    expect_orders(service)
    service.stop()
    expect_plain_role(own.admin_url)
    assert psql(own.admin_url, "SELECT rolname FROM pg_roles WHERE rolsuper") == [["postgres"]]
