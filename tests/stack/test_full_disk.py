"""A disk that is full, in the middle of a build, of a start and of a run: the last words say so, nothing is left running, and
the same command goes on once there is room."""

import os
import subprocess
from pathlib import Path

import pytest
from private_stack import LIMIT_S, ROOT, STACK

BUILD = Path(os.environ.get("BUILD", ROOT / "build"))
# gcc, but that the disk is full where FULL is set: the list of headers is cut off, and the object is not written.
COMPILER = """#!/usr/bin/env bash
[[ " $* " == *" -MMD "* ]] || exec gcc "$@"
gcc "$@" || exit
[[ -n ${FULL:-} ]] || exit 0
while (($#)); do
    case $1 in -o) object=$2 ;; -MF) list=$2 ;; esac
    shift
done
list=${list:-${object%.o}.d}
[[ $object == *.o ]] && truncate -s 25 "$list" && rm "$object"
echo "fatal error: closing dependency file $list: No space left on device" >&2
exit 1
"""


def can_mount():
    words = ["unshare", "--mount", "--propagation", "private", "mount", "-t", "tmpfs", "disk", "/mnt"]
    return os.geteuid() == 0 and subprocess.run(words, capture_output=True, check=False).returncode == 0


small_disk = pytest.mark.skipif(not can_mount(), reason="a small disk is a mount, which is not allowed here")


@pytest.fixture
def disk(stacks):
    """An empty folder, which the servers' users can enter; on_small_disk mounts there."""
    folder = stacks().folder.parent / "disk"
    folder.mkdir()
    return folder


def on_small_disk(disk, size, script):
    """Runs SCRIPT where DISK ($1) has SIZE bytes; only this process and its children see it."""
    script = f'mount -t tmpfs -o mode=755,size={size} disk "$1"\n{script}'
    words = ["unshare", "--mount", "--propagation", "private", "bash", "-c", script, "bash", disk, STACK, BUILD]
    return subprocess.run(list(map(str, words)), cwd=ROOT, capture_output=True, text=True, timeout=LIMIT_S,
                          stdin=subprocess.DEVNULL, check=False, env={**os.environ, "TMPDIR": str(disk)})


def last_words(text):
    return [line for line in text.splitlines() if not line.startswith(("make: ", "make["))][-1]


def test_a_list_of_headers_that_was_cut_off_stops_no_later_build(tmp_path):
    compiler = tmp_path / "gcc-on-a-full-disk"
    compiler.write_text(COMPILER)
    compiler.chmod(0o755)
    words = ["make", "--no-print-directory", f"BUILD={tmp_path}/build", f"CC={compiler}", "WERROR=", f"{tmp_path}/build/obj/base/text.o"]
    full, later = (subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=LIMIT_S, check=False,
                                  env={**os.environ, "FULL": value}) for value in ("yes", ""))
    assert full.returncode == 2 and "No space left on device" in full.stderr, full
    assert later.returncode == 0, later


@pytest.mark.long
@small_disk
def test_a_build(disk):
    ran = on_small_disk(disk, "300k", f'make --no-print-directory CC=gcc BUILD="$1/build" demo')
    assert ran.returncode == 2, ran
    assert last_words(ran.stderr).startswith(f"make demo: The build failed because the disk of {disk}/build is full."), ran


@pytest.mark.long
@small_disk
def test_servers_that_start(disk):
    ran = on_small_disk(disk, "24m", """
        "$2" up --dir "$1/stack" postgres redis && exit 9
        [[ -z $(find /proc/[0-9]*/cwd -lname "$1/*" 2>/dev/null) ]] || exit 8
        mount -o remount,size=500m "$1"
        { "$2" up --dir "$1/stack" postgres redis && "$2" down --purge --dir "$1/stack"; } 2>/dev/null
    """)
    assert ran.returncode == 0, ran
    assert last_words(ran.stderr).startswith("stack: The disk of ") and "then run the command again" in ran.stderr, ran


@pytest.mark.long
@small_disk
def test_a_run_of_the_load_lab(disk):
    """The disk is filled after the first strategy. The others take longer than that, even on a slow machine."""
    ran = on_small_disk(disk, "400m", """
        names=read-write,select-for-update,atomic-decrement,atomic-statement,optimistic,check-constraint,serializable,batched
        "$3/loadtest" demo --strategies "$names" | while IFS= read -r line; do
            echo "$line"
            [[ $line != read-write* ]] || dd if=/dev/zero of="$1/filled" bs=64k status=none
        done
        status=${PIPESTATUS[0]}
        rm "$1/filled"
        ls -A "$1"
        exit "$status"
    """)
    assert ran.returncode in (1, 3), ran
    assert last_words(ran.stderr).startswith("loadtest: the disk of ") and "is full" in last_words(ran.stderr), ran
    assert ran.stdout.splitlines()[-1] != "filled" and not [line for line in ran.stdout.splitlines() if line.startswith("oversell-")], ran


def test_an_output_that_cannot_be_written():
    with open("/dev/full", "w", encoding="utf-8") as full:
        ran = subprocess.run([BUILD / "loadtest", "--help"], stdout=full, stderr=subprocess.PIPE, text=True, timeout=LIMIT_S,
                             check=False)
    assert ran.returncode == 3 and "cannot write the output: No space left on device" in ran.stderr, ran
