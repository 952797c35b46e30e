"""tests/run itself: what it counts, what it finds left behind and whom it blames, and how Ctrl-C ends it.

It runs a copy of itself, with small suites in place of the real ones."""

import os
import re
import shutil
import signal
import subprocess
import time

import pytest
from private_stack import LIMIT_S, ROOT, alive

PASSES = "def test_passes(): pass\n"
# Makes the file NAME, so that another test can wait for it.
SAYS = "from pathlib import Path\nimport os, signal, subprocess, sys, time\nhere = Path(__file__).parents[3]\n"
WAITS = "def wait_for(name):\n    end = time.monotonic() + 120\n" \
    "    while not (here / name).exists():\n        assert time.monotonic() < end, name\n        time.sleep(0.02)\n"
SLEEPER = "subprocess.Popen(['sleep', '600'], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)"


class Runner:
    """A copy of tests/run in a folder with its own suites."""

    def __init__(self, folder):
        self.folder = folder
        (folder / "build/obj").mkdir(parents=True)
        (folder / "Makefile").write_text("programs:\n")
        self.write("tests/e2e/whole_run.py", PASSES)
        shutil.copy(ROOT / "tests" / "run", folder / "tests" / "run")

    def write(self, path, text):
        path = self.folder / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def start(self, *arguments):
        (self.folder / "scratch").mkdir(exist_ok=True)
        variables = {name: value for name, value in os.environ.items() if name not in ("BUILD", "MAKEFLAGS", "MFLAGS", "ANSWERS_SEEN")}
        return subprocess.Popen([self.folder / "tests/run", *arguments], env={**variables, "TMPDIR": str(self.folder / "scratch")},
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                start_new_session=True)  # fmt: skip

    def run(self, *arguments):
        """Returns the exit status, the output, and its last line."""
        process = self.start(*arguments)
        output, _ = process.communicate(timeout=LIMIT_S)
        assert list((self.folder / "scratch").iterdir()) == [], output
        return process.returncode, output, output.splitlines()[-1]


@pytest.fixture
def runner(tmp_path):
    return Runner(tmp_path)


@pytest.mark.long
def test_jobs_of_all_folders_are_added_up(runner):
    for folder in "abcdef":
        runner.write(f"tests/e2e/{folder}/test_one.py", PASSES)
        runner.write(f"tests/e2e/{folder}/test_page_two.py", PASSES)
    status, output, last = runner.run("e2e")
    assert (status, last) == (0, "13 passed, 0 failed"), output
    assert re.findall("^== (.*)$", output, re.M)[-1] == "e2e-whole-run", "the judge has seen all"
    assert len(re.findall("^== e2e-.-page_two$", output, re.M)) == 6


def test_a_choice_by_options_is_one_job_without_the_judge(runner):
    runner.write("tests/e2e/a/test_one.py", PASSES)
    runner.write("tests/e2e/b/test_two.py", "def test_other(): assert False\n")
    status, output, last = runner.run("e2e", "-k", "passes")
    assert (status, last) == (0, "1 passed, 0 failed"), output
    assert re.findall("^== (.*)$", output, re.M) == ["e2e"]


@pytest.mark.long
def test_a_failure_an_error_and_a_job_that_died_are_failures(runner):
    runner.write("tests/e2e/a/test_one.py", PASSES + "def test_fails(): assert False\n")
    runner.write("tests/e2e/b/test_one.py", "import no_such_module\n")
    runner.write("tests/e2e/c/test_one.py", f"{SAYS}def test_kills(): os.killpg(0, signal.SIGKILL)\n")
    runner.write("tests/e2e/d/test_one.py", f"{SAYS}def test_exits(): os._exit(0)\n")
    runner.write("tests/e2e/e/test_one.py", "")
    status, output, last = runner.run("e2e")
    assert (status, last) == (1, "2 passed, 5 failed"), output


@pytest.mark.long
def test_what_is_left_is_the_failure_of_the_job_that_left_it(runner):
    """Its neighbour has a process and a file at that moment, and is not blamed."""
    runner.write("tests/e2e/a/test_one.py", f"{SAYS}{WAITS}def test_neighbour(tmp_path):\n"
                 "    subprocess.run(['touch', os.environ['TMPDIR'] + '/neighbour'])\n"
                 "    child = subprocess.Popen(['sleep', '600'], cwd=os.environ['TMPDIR'])\n    (here / 'ready').touch()\n"
                 "    wait_for('build/tests/e2e-b.status')\n    child.kill(); child.wait()\n"
                 "    os.unlink(os.environ['TMPDIR'] + '/neighbour')\n")  # fmt: skip
    runner.write("tests/e2e/b/test_one.py", f"{SAYS}{WAITS}def test_leaves():\n    wait_for('ready')\n    {SLEEPER}\n"
                 "    subprocess.run(['touch', os.environ['TMPDIR'] + '/litter'])\n")
    status, output, last = runner.run("e2e")
    assert (status, last) == (1, "3 passed, 1 failed"), output
    left = re.findall("^tests/run: left behind, and removed now: (.*)$", output, re.M)
    assert len(left) == 1 and re.fullmatch(r"litter process (\d+) \(sleep 600 \) ", left[0]), output
    assert not alive(left[0].split()[2]), "it was ended"
    assert output.index("== e2e-b\n") < output.index(left[0]), output


def test_ctrl_c_ends_all_lanes_and_lets_fixtures_end_what_they_started(runner):
    for folder in "abcdef":
        runner.write(f"tests/e2e/{folder}/test_one.py", f"{SAYS}import pytest\n@pytest.fixture\ndef own():\n    yield\n"
                     f"    (here / 'ended-{folder}').touch()\ndef test_waits(own):\n    (here / 'ready-{folder}').touch()\n"
                     "    time.sleep(600)\n")  # fmt: skip
    process = runner.start("e2e")
    end = time.monotonic() + LIMIT_S
    while len(list(runner.folder.glob("ready-*"))) < 4:
        assert time.monotonic() < end and process.poll() is None, "no four lanes"
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGINT)
    output, _ = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 130, output
    ready, ended = (sorted(path.name[-1] for path in runner.folder.glob(f"{word}-*")) for word in ("ready", "ended"))
    assert ready == ended and len(ready) == 4, (ready, ended, "no job of the queue was started later")
    assert list((runner.folder / "scratch").iterdir()) == [], output
