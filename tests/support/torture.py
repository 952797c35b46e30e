"""The C library that fails on demand (tests/torture/preload.c), as a test works it."""

import mmap
import os
import struct
import subprocess
from pathlib import Path

from basics import BUILD, SANITIZED

LIBRARY = BUILD / "torture-shim.so"
KINDS = ("none", "memory", "send", "receive", "poll", "connect", "thread")
WAYS = ("refused", "too-late", "interrupted", "short")
NEVER = 1 << 62


class Torture:
    """What a service is started with so that its calls can fail, and which of them shall."""

    KIND, WAY, FIRST, LAST, CALLS, FAILED, CUT = 0, 4, 8, 16, 24, 32, 40

    def __init__(self, folder, name):
        self.control, self.stack_file = folder / f"{name}.torture", folder / f"{name}.stack"
        self.control.write_bytes(bytes(4096))
        self.stack_file.write_bytes(b"")
        with open(self.control, "r+b") as file:
            self.map = mmap.mmap(file.fileno(), 4096)

    @property
    def environment(self):
        """The library stands before a sanitizer's, which would else refuse to start."""
        options = os.environ.get("ASAN_OPTIONS", "")
        return {
            "LD_PRELOAD": str(LIBRARY),
            "OVERSELL_TORTURE": str(self.control),
            "OVERSELL_TORTURE_STACK": str(self.stack_file),
            **(
                {"ASAN_OPTIONS": f"{options}:detect_leaks=1:exitcode=99:verify_asan_link_order=0"}
                if SANITIZED
                else {}
            ),
        }

    def _set(self, layout, at, value):
        struct.pack_into(layout, self.map, at, value)

    def _get(self, layout, at):
        return struct.unpack_from(layout, self.map, at)[0]

    def arm(self, kind, way="refused", first=NEVER, last=None):
        """From now on the calls FIRST to LAST (one where it is None) of that kind fail."""
        self.disarm()
        os.truncate(self.stack_file, 0)
        for at, value in ((self.FIRST, first), (self.LAST, last or first), (self.CALLS, 0), (self.FAILED, 0)):
            self._set("<q", at, value)
        self._set("<i", self.WAY, WAYS.index(way))
        self._set("<i", self.KIND, KINDS.index(kind))

    def disarm(self):
        """Returns how many calls there were, and how many of them failed."""
        self._set("<i", self.KIND, 0)
        return self._get("<q", self.CALLS), self.failed

    @property
    def failed(self):
        return self._get("<q", self.FAILED)

    def cut(self):
        """All connections that the service has made are shut when it next looks at any."""
        self._set("<i", self.CUT, 1)

    def stack(self):
        """Where in the program the calls failed that did: files and lines where they are known."""
        return "".join(explain(line) for line in self.stack_file.read_text().splitlines())


def explain(line):
    """A line of backtrace_symbols: PROGRAM(SYMBOL+OFFSET)[ADDRESS]."""
    program, _, rest = line.partition("(")
    place = rest.partition(")")[0]
    if not place.startswith("+") or not Path(program).is_relative_to(BUILD):
        return f"    {line}\n"
    ran = subprocess.run(
        ["addr2line", "-s", "-f", "-p", "-i", "-e", program, place[1:]],
        capture_output=True,
        text=True,
        check=False,
    )
    return f"    {ran.stdout.strip() or line}\n"
