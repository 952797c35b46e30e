"""The images and the compose file, as far as they can be checked without Docker: what one file names, the other has,
and both have the settings that the tests run with."""

import json
import os
import re
import signal
import socket
import stat
import subprocess
from pathlib import Path

import pytest
import yaml
from image import ROOT, read_stages
from private_stack import LIMIT_S, eventually

LOCK_PROFILES = {"redis", "redlock", "zookeeper", "etcd"}
CONDITIONS = {"service_started", "service_healthy", "service_completed_successfully"}
# https://github.com/compose-spec/compose-spec/blob/main/spec.md: of its keys those that we use.
TOP = {"name", "services", "networks", "volumes"}
SERVICE = {"build", "command", "depends_on", "environment", "networks", "ports", "profiles", "volumes",
           "restart", "stop_grace_period", "tmpfs", "read_only", "cap_drop", "security_opt"}


class OneKeyOnce(yaml.SafeLoader):
    """A key that is given twice is an error to Docker, and nothing to PyYAML."""

    def construct_mapping(self, node, deep=False):
        keys = [key.value for key, _ in node.value if key.tag != "tag:yaml.org,2002:merge"]
        merges = len(node.value) - len(keys)
        assert len(set(keys)) == len(keys) and merges <= 1, f"{node.start_mark}: a key is given twice"
        return super().construct_mapping(node, deep)


@pytest.fixture(scope="module")
def compose():
    return yaml.load((ROOT / "docker-compose.yml").read_text(), OneKeyOnce)


@pytest.fixture(scope="module")
def stages():
    return read_stages()


def test_every_service_has_an_image_of_ours_that_is_not_run_by_root(compose, stages):
    assert compose.keys() - {key for key in compose if key.startswith("x-")} == TOP
    for name, service in compose["services"].items():
        assert service.keys() <= SERVICE, (name, service.keys() - SERVICE)
        target = service["build"]["target"]
        assert service["build"] == {"context": ".", "target": target}
        stage = stages[target]
        assert stage.last("USER") not in (None, "root", "0"), f"{target} is run by root"
        assert stage.last("CMD"), f"{target} has no command"
        assert service["cap_drop"] == ["ALL"] and service["read_only"] is True, name


def test_each_image_but_those_that_end_says_whether_it_is_healthy(compose, stages):
    for name, service in compose["services"].items():
        healthcheck = stages[service["build"]["target"]].last("HEALTHCHECK")
        assert bool(healthcheck) == (name not in ("keys", "lab")), name
        if healthcheck:
            options, command = healthcheck.split(" CMD ")
            assert re.fullmatch(r"(--(interval|timeout|start-period|retries)=\d+s? ?)+", options), healthcheck
            assert all(isinstance(word, str) for word in json.loads(command)), healthcheck


def test_dependencies_are_there_and_can_be_met(compose, stages):
    services = compose["services"]
    for name, service in services.items():
        for other, how in service.get("depends_on", {}).items():
            assert other in services and how.keys() == {"condition"} and how["condition"] in CONDITIONS
            # Compose refuses to start what depends on a service that its profiles leave out.
            assert set(services[other].get("profiles", [])) <= set(service.get("profiles", [])), (name, other)
            if how["condition"] == "service_healthy":
                assert stages[services[other]["build"]["target"]].last("HEALTHCHECK"), other
            if how["condition"] == "service_completed_successfully":
                assert services[other]["restart"] == "no"
        assert name not in reachable(services, name), f"{name} depends on itself"
    assert {"service-1", "service-2"} <= services["proxy"]["depends_on"].keys()


def reachable(services, name):
    found, waiting = set(), list(services[name].get("depends_on", {}))
    while waiting:
        other = waiting.pop()
        if other not in found:
            found.add(other)
            waiting += services[other].get("depends_on", {})
    return found


def test_volumes_and_networks_are_declared_used_and_only_the_proxy_is_published(compose, stages):
    volumes, networks = set(), set()
    for name, service in compose["services"].items():
        for mount in service.get("volumes", []):
            volume, path = mount.split(":")[:2]
            volumes.add(volume)
            assert path == "/keys" or path in stages[service["build"]["target"]].last("VOLUME").split()
        networks |= set(service["networks"])
        if name == "proxy":
            assert service["ports"] == ["127.0.0.1:8080:8080"]
        else:
            assert "ports" not in service and service["networks"] == ["inside"]
    assert volumes == compose["volumes"].keys() and networks == compose["networks"].keys()
    assert compose["networks"]["inside"] == {"internal": True}


def test_there_are_two_services_six_redis_servers_and_a_profile_for_each_kind(compose):
    targets = [service["build"]["target"] for service in compose["services"].values()]
    assert {target: targets.count(target) for target in set(targets)} == {
        "keys": 1, "proxy": 1, "service": 2, "postgres": 1, "redis": 6, "zookeeper": 1, "etcd": 1, "lab": 1}
    profiles = {name: service.get("profiles", []) for name, service in compose["services"].items()}
    assert {word for words in profiles.values() for word in words} == LOCK_PROFILES | {"lab"}
    assert not any(profiles[name] for name in ("postgres", "service-1", "service-2", "proxy", "keys"))
    [line] = (ROOT / ".env").read_text().splitlines()
    assert set(line.removeprefix("COMPOSE_PROFILES=").split(",")) == LOCK_PROFILES, "`docker compose up` is all"


def test_every_address_is_a_service_at_the_port_that_its_image_opens(compose, stages):
    services = compose["services"]
    for name in ("service-1", "service-2", "lab"):
        env = services[name]["environment"]
        addresses = [env.pop(variable) for variable in ("DATABASE_URL", "REDIS_URL", "REDLOCK_URLS",
                                                        "ZOOKEEPER_CONNECT", "ETCD_ENDPOINTS")]
        names = env.pop("ALLOWED_HOSTS", "service-1,service-2").split(",")
        assert set(names) <= services.keys(), "the lab calls the services by these names"
        assert env.keys() <= {"INSTANCE", "CONNECTIONS_PER_ADDRESS"}
        found = re.findall(r"(?:^|[@/,])([a-z0-9-]+):(\d+)", ",".join(addresses))
        assert len(found) == 9
        for host, port in found:
            assert stages[services[host]["build"]["target"]].last("EXPOSE") == port, host
        assert all(" " not in address for address in addresses)
    nginx = (ROOT / "stack/container/nginx.conf").read_text()
    assert set(re.findall(r"server ([a-z0-9-]+):8080[ ;]", nginx)) == {"service-1", "service-2"}


def test_the_parts_in_a_container_may_write_where_they_make_folders(compose, stages):
    """The images are read-only, and what `loadtest` makes lies below TMPDIR."""
    for name, service in compose["services"].items():
        stage = stages[service["build"]["target"]]
        if stage.name in ("service", "lab"):
            written = [mount.split(":")[0] for mount in service["tmpfs"]]
            assert stage.environment().get("TMPDIR", "/var/tmp") in written, f"{name} cannot write"


def test_each_script_of_the_images_can_be_executed(stages):
    for stage in stages.values():
        for line in stage.arguments("COPY"):
            if line.startswith("--from="):
                assert line.split()[0].removeprefix("--from=") in stages
    for script in (ROOT / "stack/container").iterdir():
        assert os.access(script, os.X_OK) == script.read_text().startswith("#!"), script


def test_the_images_have_the_packages_that_the_tests_run_on(stages):
    make = (ROOT / "make/packages.mk").read_text().replace("\\\n", " ")
    deps = {word for line in re.findall(r"^DEPS(?:_TEST)?\s*:=(.*)", make, re.M) for word in line.split()} | {"nginx-light"}
    packages = {name: stage.packages() for name, stage in stages.items()}
    assert packages["build"] - {"make"} <= deps
    for name, package in (("postgres", "postgresql"), ("redis", "redis-server"), ("etcd", "etcd-server"), ("lab", "wrk"),
                          ("proxy", "nginx-light")):
        assert package in packages[name] & deps
    assert "libzookeeper-java" in packages["zookeeper"]


def settings(text):
    return {tuple(line.split("#")[0].split()) for line in text.splitlines()} - {()}


def test_the_images_servers_have_the_settings_of_the_private_ones(stages):
    here = {kind: (ROOT / f"stack/{kind}.sh").read_text() for kind in ("postgres", "redis", "zookeeper", "etcd")}
    conf = {kind: re.search(r"<<'?CONF'?\n(.*?)\nCONF\n", here[kind], re.S)[1] for kind in ("postgres", "redis", "zookeeper")}
    container = ROOT / "stack/container"
    assert {key for key, *_ in settings(conf["postgres"]) ^ settings((container / "postgres.conf").read_text())} == {
        "listen_addresses", "unix_socket_directories"}
    assert {key for key, *_ in settings(conf["redis"]) ^ settings((container / "redis.conf").read_text())} == {
        "bind", "requirepass", "dir"}
    assert {key.split("=")[0] for key, *_ in settings(conf["zookeeper"]) ^ settings((container / "zoo.cfg").read_text())} == {
        "dataDir", "clientPort", "clientPortAddress"}
    java = re.search(r'java\)" (.*?) -cp', here["zookeeper"], re.S)[1].split()
    assert java == re.search(r"exec java (.*?) -cp", (container / "zookeeper").read_text().replace("\\\n", ""), re.S)[1].split()
    etcd = json.loads(stages["etcd"].last("CMD"))
    for option, value in zip(etcd[1::2], etcd[2::2]):
        if "url" not in option and option != "--data-dir":
            assert f"{option} {value}" in here["etcd"], option


def test_a_container_mounts_only_the_secrets_that_it_uses(compose, stages):
    """What each volume contains is the next test's matter."""
    mounted = {}
    for name, service in compose["services"].items():
        for mount in service.get("volumes", []):
            volume, path, *mode = mount.split(":")
            if volume.endswith("keys"):
                assert mode == ([] if name == "keys" else ["ro"]), f"{name}: {mount}"
                mounted.setdefault((service["build"]["target"], volume), set()).add(path)
    assert mounted == {
        ("keys", "keys"): {"/keys"}, ("keys", "postgres-keys"): {"/keys-postgres"}, ("keys", "redis-keys"): {"/keys-redis"},
        ("service", "keys"): {"/keys"}, ("lab", "keys"): {"/keys"},
        ("postgres", "postgres-keys"): {"/keys"}, ("redis", "redis-keys"): {"/keys"}}
    # Docker gives an empty volume the owner of the image's folder, and the script must write there.
    assert set(stages["keys"].last("VOLUME").split()) == {"/keys", "/keys-postgres", "/keys-redis"}
    assert any("install -d -o oversell -g oversell /keys /keys-postgres /keys-redis" in run for run in stages["keys"].arguments("RUN"))
    assert stages["keys"].last("USER") == "oversell"
    secret_files = set(re.findall(r"/keys[\w/-]*", "".join((ROOT / "stack/container" / name).read_text() for name in ("postgres", "redis"))))
    assert secret_files == {"/keys/password"}


def script(name, folder):
    """A script of the images as it is, with folders of this test in the place of /keys and /keys-…"""
    text = (ROOT / "stack/container" / name).read_text()
    assert "/keys" in text
    return ["sh", "-c", text.replace("/keys", f"{folder}/keys"), name]


@pytest.fixture
def volumes(tmp_path):
    """A folder with those that the image `keys` has."""
    for name in ("keys", "keys-postgres", "keys-redis"):
        (tmp_path / name).mkdir()
    return tmp_path


def make_keys(volumes):
    """What the script prints."""
    return subprocess.run(script("keys", volumes), capture_output=True, text=True, check=True, timeout=LIMIT_S).stdout


def keys_of(volumes):
    return {f"{path.parent.name}/{path.name}": path.read_text() for path in volumes.glob("keys*/*")}


def expect_separate_keys(keys):
    assert keys.keys() == {"keys/token", "keys/postgres-password", "keys/redis-password", "keys-postgres/password",
                           "keys-redis/password"}
    assert all(re.fullmatch("[0-9a-f]{32}", key) for key in keys.values())
    assert len({keys["keys/token"], keys["keys-postgres/password"], keys["keys-redis/password"]}) == 3, "three different secrets"
    for server in ("postgres", "redis"):
        assert keys[f"keys-{server}/password"] == keys[f"keys/{server}-password"]


def expect_modes(volumes):
    """The services and the lab run as the user who makes the keys; the servers do not."""
    modes = {path.relative_to(volumes).as_posix(): stat.S_IMODE(path.stat().st_mode) for path in volumes.glob("keys*/*")}
    assert modes == {name: 0o400 if name.startswith("keys/") else 0o444 for name in modes} and len(modes) == 5, modes


def test_who_reads_the_keys_is_who_makes_them(stages):
    made = {name: re.findall(r"useradd .*--uid (\d+) .*\boversell\b", " ".join(stages[name].arguments("RUN"))) for name in ("keys", "programs")}
    assert made == {"keys": ["999"], "programs": ["999"]}
    assert {stages[name].last("USER") for name in ("keys", "service", "lab")} == {"oversell"}


def test_keys_are_made_once_and_not_printed(volumes):
    first = make_keys(volumes)
    keys = keys_of(volumes)
    expect_separate_keys(keys)
    expect_modes(volumes)
    assert "docker compose exec service-1 cat /keys/token" in first.replace(str(volumes), "")
    assert not [key for key in keys.values() if key in first], "Docker keeps what is printed"
    assert make_keys(volumes) == first and keys_of(volumes) == keys


def test_keys_of_an_earlier_version_are_handed_over(volumes):
    """One password was everybody's, in the volume of the token: the token stays, all others are new."""
    (volumes / "keys/token").write_text("0123456789abcdef" * 2)
    (volumes / "keys/password").write_text("fedcba9876543210" * 2)
    for file in (volumes / "keys").iterdir():
        file.chmod(0o444)
    make_keys(volumes)
    keys = keys_of(volumes)
    expect_separate_keys(keys)
    assert keys["keys/token"] == "0123456789abcdef" * 2, "somebody has noted it"
    expect_modes(volumes)
    assert "fedcba9876543210" * 2 not in keys.values()


def test_keys_are_complete_after_an_interruption(volumes):
    """A file half written, an empty one, one that another volume has lost, and one that differs."""
    make_keys(volumes)
    before = keys_of(volumes)
    (volumes / "keys-redis/password").unlink()
    (volumes / "keys-postgres/password.new").write_text("012")
    (volumes / "keys-postgres/password").unlink()
    (volumes / "keys-postgres/password").write_text("another")
    make_keys(volumes)
    (volumes / "keys-postgres/password.new").unlink(missing_ok=True)
    assert keys_of(volumes) == before
    for name in ("token", "redis-password"):
        (volumes / "keys" / name).unlink()
        (volumes / "keys" / name).touch()
    make_keys(volumes)
    expect_separate_keys(keys_of(volumes))


def test_each_address_gets_the_password_of_its_server(volumes):
    make_keys(volumes)
    keys = keys_of(volumes)
    names = ("ADMIN_TOKEN", "DATABASE_URL", "REDIS_URL", "REDLOCK_URLS", "ETCD_ENDPOINTS")

    def told(**env):
        ran = subprocess.run([*script("with-keys", volumes), "sh", "-c", "".join(f'echo "${{{name}-none}}";' for name in names) + "exit 7"],
                             capture_output=True, text=True, check=False, timeout=LIMIT_S, env={"PATH": os.environ["PATH"], **env})
        assert ran.returncode == 7, ran.stderr
        return ran.stdout.splitlines()

    postgres, redis = keys["keys-postgres/password"], keys["keys-redis/password"]
    assert told(DATABASE_URL="postgresql://shop:PASSWORD@postgres:5432/shop", ETCD_ENDPOINTS="http://etcd:2379",
                REDLOCK_URLS="redis://default:PASSWORD@a:1,redis://default:PASSWORD@b:1") == [
        keys["keys/token"], f"postgresql://shop:{postgres}@postgres:5432/shop", "none",
        f"redis://default:{redis}@a:1,redis://default:{redis}@b:1", "http://etcd:2379"]
    assert told(DATABASE_URL="postgresql://mine:own@db/shop", REDIS_URL="redis://default:PASSWORD@redis:6379") == [
        keys["keys/token"], "postgresql://mine:own@db/shop", f"redis://default:{redis}@redis:6379", "none", "none"]


@pytest.mark.long
def test_the_image_of_postgres_makes_a_role_without_rights(stages, stacks):
    """The script as it is, with folders of this test in the place of the image's: twice, the second time on data of an
    earlier version, whose superuser is `shop`."""
    folder = stacks().folder.parent / "image"
    folder.mkdir(mode=0o755)
    assert {"stack/container/postgres.conf", "stack/shop.sql"} <= set(" ".join(stages["postgres"].arguments("COPY")).split())
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    conf = (ROOT / "stack/container/postgres.conf").read_text().replace("'*'", "'127.0.0.1'")
    (folder / "postgres.conf").write_text(f"{conf}port = {port}\n")
    (folder / "shop.sql").write_text((ROOT / "stack/shop.sql").read_text())
    (folder / "password").write_text("0123456789abcdef")
    as_server = []
    if os.geteuid() == 0:
        subprocess.run(["chown", "-R", "postgres", folder], check=True)
        as_server = ["setpriv", "--reuid", "postgres", "--regid", "postgres", "--init-groups"]
    script = (ROOT / "stack/container/postgres").read_text()
    for named in ("/keys", "/etc/oversell", "/var/lib/oversell"):
        script = script.replace(named, str(folder))
    env = {**os.environ, "PGHOST": "127.0.0.1", "PGPORT": str(port), "PGDATABASE": "shop", "PGPASSWORD": "0123456789abcdef"}

    def ask(sql, user="shop"):
        return subprocess.run(["psql", "-XAtq", "-v", "ON_ERROR_STOP=1", "-c", sql], capture_output=True, text=True,
                              timeout=LIMIT_S, check=False, env={**env, "PGUSER": user})

    def meanwhile(look):
        with (folder / "log").open("w") as log, subprocess.Popen([*as_server, "sh", "-c", script], cwd="/", stdout=log,
                                                                 stderr=log) as server:
            try:
                eventually(lambda: ask("SELECT 1").returncode == 0 or server.poll() is not None, "PostgreSQL answers")
                look()
            finally:
                server.send_signal(signal.SIGINT)
                server.wait(timeout=LIMIT_S)
        assert server.returncode == 0, (folder / "log").read_text()

    def look_at_the_role():
        attributes = "rolsuper, rolcreatedb, rolcreaterole, rolreplication, rolbypassrls"
        assert ask(f"SELECT {attributes} FROM pg_roles WHERE rolname = current_user").stdout == "f|f|f|f|f\n"
        assert ask("CREATE TABLE IF NOT EXISTS made (a int); CREATE SCHEMA explore_1; DROP SCHEMA explore_1").returncode == 0
        assert "external program" in ask("COPY made TO PROGRAM 'cat'").stderr
        assert ask("SELECT rolname FROM pg_roles WHERE rolsuper").stdout == "postgres\n"
        assert ask("SELECT 1", user="postgres").returncode == 2, "nobody logs in as the superuser"

    meanwhile(look_at_the_role)
    meanwhile(look_at_the_role)
    data = folder / "postgres"
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin"))[-1]
    subprocess.run([*as_server, "rm", "-rf", data], check=True)
    subprocess.run([*as_server, programs / "initdb", "--pgdata", data, "--username", "shop", "--pwfile", folder / "password",
                    "--auth", "scram-sha-256", "--locale", "C.UTF-8"], check=True, stdout=subprocess.DEVNULL)
    for file, line in (("pg_hba.conf", "host all all all scram-sha-256"), ("postgresql.conf", f"include '{folder}/postgres.conf'")):
        subprocess.run([*as_server, "tee", "-a", data / file], input=line + "\n", text=True, check=True, stdout=subprocess.DEVNULL)
    subprocess.run([*as_server, programs / "postgres", "--single", "-D", data, "postgres"], input="CREATE DATABASE shop;\n",
                   text=True, check=True, capture_output=True)
    meanwhile(look_at_the_role)


def test_the_devcontainer_builds_once_and_starts_the_stack_each_time(stages):
    container = json.loads((ROOT / ".devcontainer/devcontainer.json").read_text())
    assert container["image"] == stages["base"].base and container["forwardPorts"] == [8080]
    assert "make deps" in container["onCreateCommand"] and container["postStartCommand"] == "stack/stack up all"
