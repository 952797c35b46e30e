"""The images, built and used without Docker: the files that Docker would get, the Dockerfile's own commands, its packages, and
the installed programs, with nothing of the checkout at hand. Where there is an engine, the images are built as well."""

import contextlib
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from image import ROOT, Ignore, Packages, build_context, output, read_stages
from private_stack import alive, eventually

LIMIT_S = 900
STAGES = read_stages()
INSTALLED = "/installed"  # the DESTDIR that the Dockerfile names


def run(*command, seconds=LIMIT_S, **options):
    """Its output. What it starts is in its session, and is ended with it."""
    with subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, start_new_session=True, **options) as child:
        try:
            told, _ = child.communicate(timeout=seconds)
        except BaseException:
            os.killpg(child.pid, signal.SIGKILL)
            raise
    assert child.returncode == 0, f"{command}: exit {child.returncode}\n{told[-4000:]}"
    return told


def plain_environment(**more):
    """Nothing that leads to the checkout, or to another server."""
    kept = {name: os.environ[name] for name in ("PATH", "TMPDIR") if name in os.environ}
    return {**kept, "HOME": "/", "LC_ALL": "C.UTF-8", **more}


def compiler_environment():
    """Two jobs at a time, and the compiler cache where this build has one."""
    cached = "ccache" in os.environ.get("CC", "")
    kept = {name: value for name, value in os.environ.items() if name.startswith(("CCACHE_", "HOME", "XDG_CACHE"))}
    return {**plain_environment(OMP_NUM_THREADS="2"), **kept, **({"CC": "ccache gcc", "CCACHE_NOHASHDIR": "1"} if cached else {})}


@pytest.fixture(scope="module")
def context():
    return build_context()


@pytest.fixture(scope="module")
def packages():
    """Those of this machine, if it has the Debian that the images are made from."""
    base = STAGES["base"].base
    release = Path("/etc/os-release").read_text()
    if f"ID={base.split(':')[0]}\n" not in release or f'VERSION_ID="{base.split(":")[1]}"' not in release:
        pytest.skip(f"what {base}'s packages bring can only be seen on {base}")
    return Packages()


# ── the build context ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("text, sent, kept_out", [
    ("*\n!db", ["db/postgres/connection.c", "db/a/b"], ["lock/lock.c", "dbx", "x/db"]),
    ("*\n!docs/openapi.yaml", ["docs/openapi.yaml"], ["docs/page.md", "docs/openapi.yaml.old"]),
    ("*\n!db\n**/*.pyc\n**/__pycache__", ["db/x.py"], ["db/x.pyc", "db/a/x.pyc", "db/__pycache__/x", "x.pyc"]),
    ("# all\n/build\n\n*.md\n!README.md", ["db/NOTES.md", "README.md", "a/build"], ["build", "build/x", "HACKING.md"]),
    ("a/**\n!a/b/c", ["a/b/c", "a", "b"], ["a/x", "a/b/d"]),
    ("a?c\n[xy].c", ["a/c", "abbc", "z.c"], ["abc", "x.c", "y.c"]),
    ("!db\n*", [], ["db/postgres/connection.c"]),
    ("db/\n!db/postgres/connection.c", ["db/postgres/connection.c"], ["db/postgres/connection.h"]),
])
def test_the_filter_reads_a_dockerignore_as_docker_does(text, sent, kept_out):
    ignore = Ignore(text)
    assert [path for path in sent if not ignore.lets_in(path)] == []
    assert [path for path in kept_out if ignore.lets_in(path)] == []


def test_what_make_install_takes_is_sent_to_docker(context):
    commands = run("make", "-n", "-o", "programs", "install", "DESTDIR=/to", "BUILD=build", cwd=ROOT, env=plain_environment())
    taken = {str(path.relative_to(ROOT)) for word in shlex.split(commands) if not word.startswith(("/", "-", "build/"))
             for path in ROOT.glob(word) if path.is_file()}
    assert {"stack/stack", "loadtest/load/order.lua", "service/order-service.service"} <= taken
    kept_out = sorted(taken - context)
    assert not kept_out, f"`make install` needs files that .dockerignore keeps out of the images: {', '.join(kept_out)}"


def test_what_the_images_copy_is_sent_to_docker(context):
    for stage in STAGES.values():
        for source in stage.sources():
            assert source == "." or source in context or any(path.startswith(f"{source}/") for path in context), \
                f"{stage.name} copies {source}, and .dockerignore keeps it out"


def test_what_the_programs_embed_is_sent_to_docker(context):
    embedded = {path for source in (path for layer in ("db", "lock", "service") for path in (ROOT / layer).rglob("*.S")) for path in re.findall(r'\.incbin\s+"([^"]+)"', source.read_text())}
    assert embedded
    kept_out = sorted(embedded - context)
    assert not kept_out, f"the programs embed files that .dockerignore keeps out of the images: {', '.join(kept_out)}"


# ── the build ───────────────────────────────────────────────────────────────────────────────────────────────


class Build:
    """The programs as `make install` in the image leaves them. The sources are gone, so that nothing is found there."""

    def __init__(self, folder, context, commands):
        self.prefix = folder / "installed" / "usr" / "local"
        source = folder / "src"
        for path in context:
            (source / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / path, source / path, follow_symlinks=False)
        environment = compiler_environment()
        printed = ""
        for command in commands:
            printed += run("sh", "-c", command.replace(INSTALLED, str(folder / "installed")), cwd=source,
                           env={**environment, "LDFLAGS": "-Wl,--trace"})
        self.linked = {os.path.normpath(path) for path in re.findall(r"^(/\S+\.(?:so|a|o)[.0-9]*)$", printed, re.M)}
        # What make built them with is in a file.
        compiler = shlex.split((source / "build/obj/flags").read_text())
        told = run(*compiler, "-M", *(path for path in sorted(context) if path.endswith(".c")), cwd=source, env=environment)
        self.headers = {os.path.normpath(path) for path in told.replace("\\\n", " ").split() if path.startswith("/")}
        shutil.rmtree(source)


@pytest.fixture(scope="module")
def build(context):
    commands = [line for line in STAGES["build"].arguments("RUN") if re.search(r"\bmake -", line)]
    assert commands and all("install-packages" not in line for line in commands), "the Dockerfile builds in a separate RUN"
    assert STAGES["programs"].arguments("COPY")[0] == f"--from=build {INSTALLED}/usr/local /usr/local"
    folder = Path(tempfile.mkdtemp(prefix="oversell-image-"))
    try:
        yield Build(folder, context, commands)
    finally:
        shutil.rmtree(folder)


@pytest.mark.long
def test_the_build_stage_has_the_packages_that_the_build_uses(packages, build):
    named = STAGES["build"].packages()
    assert sorted(named - packages.depends.keys()) == [], "packages that Debian does not have, or `make deps` does not install"
    assert "/usr/include/stdio.h" in build.headers and any(path.endswith("/microhttpd.h") for path in build.headers)
    assert any("libmicrohttpd.so" in path for path in build.linked), build.linked
    tools = {f"/usr/bin/{name}" for name in ("gcc", "make", "pkg-config", "ar", "sed", "install", "cmark", "python3")}
    used = build.headers | build.linked | tools
    there, owners = packages.closure(named), packages.owners(used)
    assert sorted(used - owners.keys()) == [], "no package has these files"
    assert {path: owner for path, owner in owners.items() if owner not in there} == {}, "their packages are not in the image"
    needless = [name for name in named if not set(owners.values()) & {name, *packages.closure([name]) - packages.closure([])}]
    assert needless == []


@pytest.mark.long
@pytest.mark.parametrize("target", ["programs", "service", "lab"])
def test_each_image_has_the_libraries_of_the_programs(target, packages, build):
    named = STAGES[target].packages()
    assert sorted(named - packages.depends.keys()) == [], "packages that Debian does not have, or `make deps` does not install"
    told = output("ldd", *(path for path in (build.prefix / "bin").iterdir()))
    assert "not found" not in told, told
    libraries = set(re.findall(r"=> (/\S+)", told))
    assert any("libmicrohttpd" in path for path in libraries)
    owners, there = packages.owners(libraries), packages.closure(named)
    assert sorted(libraries - owners.keys()) == []
    assert {path: owner for path, owner in owners.items() if owner not in there} == {}, "their packages are not in the image"
    # What the image's programs and health check call.
    commands = {"programs": {"curl"}, "service": {"curl", "wrk"}, "lab": {"wrk", "gnuplot"}}[target]
    for command in commands:
        path = shutil.which(command)
        assert path, command
        assert packages.owners([os.path.realpath(path)])[os.path.realpath(path)] in there, command


# ── the installed programs ──────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def database(build):
    """The address of a private PostgreSQL, started by the installed script."""
    folder = Path(tempfile.mkdtemp(prefix="oversell-image-"))
    stack = build.prefix / "share/oversell/stack/stack"
    options = {"cwd": "/", "env": plain_environment()}
    try:
        run(stack, "up", "--dir", folder / "stack", "--while", os.getpid(), "postgres", **options)
        [line] = run(stack, "env", "--dir", folder / "stack", **options).splitlines()
        yield line.removeprefix("export DATABASE_URL=")
    finally:
        run(stack, "down", "--dir", folder / "stack", "--purge", **options)
        shutil.rmtree(folder)


def call(url, body=None):
    """The status of an answer, and its JSON."""
    request = urllib.request.Request(url, json.dumps(body).encode() if body else None, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)
    except OSError as error:
        return None, str(error)


@contextlib.contextmanager
def ending(child):
    try:
        yield child
    finally:
        child.terminate()
        try:
            child.wait(60)
        finally:
            child.kill()
            child.wait()


@pytest.mark.long
def test_the_installed_service_is_ready_and_takes_an_order(build, database, tmp_path):
    port = tmp_path / "port"
    with ending(subprocess.Popen([build.prefix / "bin/order-service", "--listen", "127.0.0.1:0", "--port-file", port],
                                 cwd="/", env=plain_environment(DATABASE_URL=database))) as service:
        def listens():
            assert service.poll() is None, "it has ended"
            return port.exists() and port.read_text().strip()

        eventually(listens, "the service listens", 120)
        url = f"http://127.0.0.1:{port.read_text().strip()}"
        eventually(lambda: call(f"{url}/readyz")[0] == 200, "the service is ready", 120)
        status, order = call(f"{url}/orders", {"product_id": 1, "quantity": 1})
        assert status == 201, order
        status, books = call(f"{url}/audit")
        assert status == 200 and "balanced" in json.dumps(books), books
    assert service.returncode == 0 and not alive(service.pid)


@pytest.mark.long
def test_the_installed_lockrun_holds_a_lock(build, database):
    lockrun = [build.prefix / "bin/lockrun", "--lock", "lock-table", "--name", "nightly"]
    # The lock is held while its command runs: a second one that does not wait gives up (75).
    second = shlex.join(map(str, [*lockrun, "--wait", "0s", "--", "echo", "two holders"]))
    told = run(*lockrun, "--", "sh", "-c", f"{second}; echo status $?", cwd="/", env=plain_environment(DATABASE_URL=database))
    assert told.splitlines()[-1] == "status 75" and "two holders" not in told, told


@pytest.mark.long
def test_the_installed_load_test_finds_its_scripts_and_an_oversell(build, tmp_path):
    result = tmp_path / "compare.json"
    run(build.prefix / "bin/loadtest", "compare", "--strategies", "read-write,atomic-decrement", "--phases", "sell-out",
        "--export-json", result, cwd="/", env=plain_environment())
    rows = {row["strategy"]: row for row in json.loads(result.read_text())["rows"]}
    assert rows.keys() == {"read-write", "atomic-decrement"}
    assert rows["read-write"]["verdict"] == "oversold-as-expected" and rows["read-write"]["oversold"] > 0, rows
    assert rows["atomic-decrement"]["verdict"] == "ok", rows


@pytest.mark.long
def test_the_installed_schedules_come_to_what_they_say(build):
    schedule = build.prefix / "share/oversell/schedules/lost-update.sched"
    told = run(build.prefix / "bin/loadtest", "explore", "--replay", schedule, cwd="/", env=plain_environment())
    assert f"{schedule}:" in told and "read-write" in told, told


# ── with an engine ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def engine():
    """The command of an engine that works and has the base image, or can get it."""
    reasons = []
    for name in ("buildah", "podman", "docker"):
        if not shutil.which(name):
            reasons.append(f"{name} is not installed")
            continue
        for words in (["info"], ["pull", STAGES["base"].base]):
            ran = subprocess.run([name, *words], capture_output=True, text=True, check=False, timeout=300)
            if ran.returncode != 0:
                reasons.append(f"{name} {' '.join(words)}: {(ran.stderr.strip() or ran.stdout.strip()).splitlines()[-1][:200]}")
                break
        else:
            return name
    pytest.skip("; ".join(reasons))


@pytest.mark.long
def test_every_image_is_built(engine):
    for target in STAGES:
        image = f"oversell-test-{target}-{os.getpid()}"
        run(engine, "build", "--target", target, "-t", image, ".", cwd=ROOT)
        run(engine, "rmi", image)
