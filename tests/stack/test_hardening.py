"""What the programs and their unit promise about an attack that got in: read from the binaries, and from systemd."""

import json
import os
import platform
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("BUILD", ROOT / "build"))
PROGRAMS = ["order-service", "lockrun", "loadtest"]
UNIT = ROOT / "service" / "order-service.service"
SECURITY = (ROOT / "docs" / "security.md").read_text()
MOST_EXPOSURE = 12  # in tenths; 100 is a service without any sandbox


def output(*command, **options):
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=300, **options).stdout


def readelf(what, program):
    return output("readelf", "-W", what, BUILD / program, env={**os.environ, "LC_ALL": "C"})


@pytest.fixture(scope="module")
def flags():
    """How the objects were compiled."""
    return (BUILD / "obj" / "flags").read_text().split()


@pytest.mark.parametrize("program", PROGRAMS)
def test_addresses_are_random_and_the_linkers_tables_read_only(program):
    assert re.search(r"Type:\s+DYN", readelf("--file-header", program))
    dynamic = readelf("--dynamic", program)
    assert re.search(r"\(FLAGS_1\).*\bNOW\b.*\bPIE\b", dynamic), dynamic
    assert not re.search(r"TEXTREL|RPATH|RUNPATH", dynamic), dynamic
    segments = readelf("--segments", program)
    assert re.search(r"^\s*GNU_RELRO\s", segments, re.M), segments


@pytest.mark.parametrize("program", PROGRAMS)
def test_no_memory_is_both_written_and_executed(program):
    segments = re.findall(r"^\s*(\w+)\s+0x\S+ 0x\S+ 0x\S+ 0x\S+ 0x\S+ (.{3})\s", readelf("--segments", program), re.M)
    assert {"LOAD", "GNU_STACK"} <= {name for name, _ in segments}, segments
    assert not [name for name, access in segments if "W" in access and "E" in access], segments


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_stack_and_the_c_librarys_calls_are_checked(program, flags):
    """The sanitizers do the same and more, and are not built together with it."""
    symbols = set(re.findall(r"\bUND (\w+)", readelf("--dyn-syms", program)))
    checked = {"__stack_chk_fail", "__snprintf_chk", "__vsnprintf_chk", "__memcpy_chk"}
    if any(flag.startswith("-fsanitize=") for flag in flags):
        assert not [flag for flag in flags if "FORTIFY" in flag], flags
    else:
        assert checked <= symbols, checked - symbols
        assert "-fstack-protector-strong" in flags
        knows_3 = "gcc" in flags[0] and int(output(flags[0], "-dumpversion").split(".")[0]) >= 12
        assert "-D_FORTIFY_SOURCE=3" in flags or not knows_3 and "-D_FORTIFY_SOURCE=2" in flags, flags


@pytest.mark.skipif(platform.machine() != "x86_64", reason="x86 has these marks; the flags are asked for in the Makefile")
def test_indirect_jumps_have_marked_targets(flags):
    """Every object says so, assembly too; a program does where the C library's own start files do (not Debian 12's)."""
    if any(flag.startswith("-fsanitize=") for flag in flags):
        return
    objects = [path for layer in ("base", "db", "lock", "service", "loadtest") for path in (BUILD / "obj" / layer).rglob("*.o")]
    assert len(objects) > 100
    notes = output("readelf", "-W", "--notes", *objects, env={**os.environ, "LC_ALL": "C"})
    for text in notes.split("\nFile: ")[1:] if "\nFile: " in notes else [notes]:
        assert re.search(r"x86 feature: IBT, SHSTK", text), text.splitlines()[0]


# ── the unit ────────────────────────────────────────────────────────────────────────────────────────────────


def analyze(*words):
    """What systemd says about the unit; it needs no systemd that runs."""
    return subprocess.run(["systemd-analyze", "security", "--offline=true", "--no-pager", *words, UNIT],
                          capture_output=True, text=True, check=False, timeout=300)


def test_systemd_finds_little_that_the_unit_leaves_open():
    """By systemd's own count, which the document states."""
    ran = analyze(f"--threshold={MOST_EXPOSURE}")
    assert ran.returncode == 0, ran.stdout[-400:] + ran.stderr
    assert f"says {MOST_EXPOSURE / 10} of 10" in SECURITY


@pytest.mark.skipif("systemd 252" not in output("systemd-analyze", "--version"), reason="the document has the list of systemd 252")
def test_each_thing_that_the_unit_leaves_open_has_a_reason_in_the_document():
    found = {line["name"]: line["exposure"] for line in json.loads(analyze("--json=short").stdout) if float(line["exposure"] or 0)}
    rows = re.findall(r"^\| `([^`]+)` \| (\d\.\d) \| .{20,} \|$", SECURITY, re.M)
    assert {name.replace("\\|", "|"): points for name, points in rows} == found


def test_the_unit_is_valid_and_installed_with_the_programs(tmp_path):
    """Installed where it was asked for, it names the program that was installed there."""
    ran = subprocess.run(["make", "-o", "programs", "install", f"BUILD={BUILD}", f"DESTDIR={tmp_path}", "PREFIX=/opt/shop"],
                         cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)
    assert ran.returncode == 0, ran.stderr
    text = (tmp_path / "opt/shop/lib/systemd/system/order-service.service").read_text()
    assert "ExecStart=/opt/shop/bin/order-service\n" in text and "/usr/local/bin" not in text
    assert os.access(tmp_path / "opt/shop/bin/order-service", os.X_OK)
    # systemd-analyze wants the program to be there.
    here = tmp_path / "order-service.service"
    here.write_text(text.replace("/opt/shop", f"{tmp_path}/opt/shop"))
    ran = subprocess.run(["systemd-analyze", "verify", "--man=no", here], capture_output=True, text=True, check=False, timeout=300)
    assert ran.returncode == 0 and "order-service" not in ran.stderr, ran.stderr


def test_the_unit_gives_nothing_and_carries_no_secret():
    lines = UNIT.read_text().splitlines()
    for line in ("DynamicUser=yes", "CapabilityBoundingSet=", "NoNewPrivileges=yes", "ProtectSystem=strict",
                 "SystemCallArchitectures=native", "LimitCORE=0"):
        assert line in lines, line
    assert not [line for line in lines if line.startswith(("Environment=", "User=root"))]


def constant(file, name):
    """A number of the sources, in seconds; its name says its unit."""
    text = (ROOT / file).read_text()
    found = re.search(rf"\b{name} = ([\d *]+)[,; ]", text) or re.search(rf'"{name}", NUMBER, AT\(\w+\), "(\d+)"', text)
    value = 1
    for factor in found[1].split("*"):
        value *= int(factor)
    return value / (1000000 if name.endswith("_US") else 1000)


def test_whoever_stops_the_service_waits_for_its_longest_end():
    """A load run is ended, then calls are answered, but a search may take longer; then the threads end."""
    drain = constant("service/config/config.c", "ORDER_TIMEOUT_MS") + constant("service/main.c", "DRAIN_EXTRA_MS")
    search = max(0, constant("service/api/steps.c", "SEARCH_MS") - drain)
    longest = (constant("service/runs/load_test.c", "GRACE_MS") + drain + search + constant("service/main.c", "LAST_REPLIES_MS")
               + constant("service/engine/unsold_list.c", "STOPPING_US") + constant("service/engine/unsold_list.c", "TRY_US"))
    limits = re.findall(r"^TimeoutStopSec=(\d+)$", UNIT.read_text(), re.M) + re.findall(
        r"^  stop_grace_period: (\d+)s  #", (ROOT / "docker-compose.yml").read_text(), re.M)
    assert len(limits) == 2 and min(map(int, limits)) > 1.2 * longest, (limits, longest)
    assert f"{longest:.0f} s:" in UNIT.read_text()


def test_each_weakness_in_the_document_has_a_test():
    """Those that the table names are in the files that it names."""
    rows = re.search(r"^## Weaknesses of earlier versions\n.*?\n\n(\|.*?)\n\n", SECURITY, re.M | re.S)[1].splitlines()[2:]
    assert len(rows) >= 10
    for row in rows:
        cell = row.split(" | ")[2]
        files = {path: path.read_text() for name in re.findall(r"`(test_\w+\.py)`", cell) for path in (ROOT / "tests").rglob(name)}
        names = re.findall(r"`(test_\w+)`", cell)
        assert files and names, row
        for name in names:
            assert any(f"def {name}(" in text for text in files.values()), f"no test {name}: {row}"


SOURCES = ["base", "db", "lock", "service", "loadtest", "tools", "exercises"]


@pytest.mark.long
def test_secrets_are_compared_by_one_function(tmp_path):
    """The check of the sources finds each other comparison, and there is none in these."""
    for folder in SOURCES:
        shutil.copytree(ROOT / folder, tmp_path / folder)
    check = tmp_path / "tests" / "lint" / "includes"
    check.parent.mkdir(parents=True)
    shutil.copy(ROOT / "tests" / "lint" / "includes", check)

    def checked():
        ran = subprocess.run([check], capture_output=True, text=True, check=False, timeout=300)
        return ran.returncode, ran.stdout + ran.stderr

    file = tmp_path / "service" / "api" / "access.c"
    source = file.read_text()
    status, said = checked()
    assert status == 0, said
    for line in (
        "return strcmp(token, admin) == 0;",
        "return memcmp(given, service->class_code, length) == 0;",
        "if (strncasecmp(secret, text, 4))",
        "bool same = strcoll(text, config->admin_token);",
    ):
        file.write_text(source + line + "\n")
        status, said = checked()
        assert status == 1 and "service/api/access.c" in said and "same_secret" in said, f"{line}: {said}"
