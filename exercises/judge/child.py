"""Runs a program with a time limit, in a separate process group, which does not outlive the judge."""

import ctypes
import os
import signal
import subprocess
import time

LIBC = ctypes.CDLL(None)
PR_SET_PDEATHSIG = 1
POLL_S, KILL_S = 0.01, 5

seen = []  # signals


def watch():
    """From now on SIGINT, SIGTERM and SIGHUP end the programs that run, and nothing else, so that the judge can clean up."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: seen.append(number))


def interrupted():
    """The first signal that has come, or 0."""
    return seen[0] if seen else 0


def begin():
    os.setpgrp()
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def wait(program, seconds, interruptible):
    end = time.monotonic() + seconds
    while program.poll() is None:
        if time.monotonic() >= end or (interruptible and interrupted()):
            return False
        time.sleep(POLL_S)
    return True


def run(words, log, seconds, grace_s, environment=None, interruptible=True):
    """The exit status, or the negative signal that has ended it. None if it did not end within SECONDS, or before an interrupt: then it got
    SIGTERM, and after GRACE_S SIGKILL. LOG gets what it prints. An OSError if it cannot be started."""
    with open(log, "ab") as output:
        program = subprocess.Popen(words, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output, preexec_fn=begin)
    if wait(program, seconds, interruptible):
        return program.returncode
    for number, patience_s in ((signal.SIGTERM, grace_s), (signal.SIGKILL, KILL_S)):
        if program.poll() is None:
            os.killpg(program.pid, number)
            wait(program, patience_s, False)
    return None


def status_text(status):
    return f"killed by signal {-status} ({signal.strsignal(-status)})" if status < 0 else f"exit status {status}"
