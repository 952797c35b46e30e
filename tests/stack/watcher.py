"""Notes what any user of this machine can read while something runs: arguments in /proc, and files below some folders.

usage: watcher.py [FOLDER...]        prints a line, watches until its stdin is closed, then prints JSON

`arguments`: every command line that a process had. `files`: of each readable file, all that may be a secret. `sweeps`: how
often it has looked at all processes. It imports nothing of the project, since it runs as a user who may not enter its folder."""

import json
import os
import re
import select
import stat
import sys
import time

MAY_BE_SECRET = re.compile(rb"[0-9a-zA-Z-]{12,}")
YOUNG_S = 3  # a process becomes another program soon after its start, if ever; older ones are read now and then
OLD_EVERY_S = 0.5
FILES_EVERY_S = 0.05
FILE_MAX = 1 << 20


def note_arguments(seen, known, arguments):
    """Reads the command lines of all young processes. KNOWN: when each process was first seen, and when it was last read."""
    now = time.monotonic()
    names = [name for name in os.listdir("/proc") if name[0].isdigit()]
    for name in names:
        first, last = known.get(name, (now, 0))
        if now - first > YOUNG_S and now - last < OLD_EVERY_S:
            continue
        known[name] = (first, now)
        try:
            descriptor = os.open(f"/proc/{name}/cmdline", os.O_RDONLY)
        except OSError:
            continue
        try:
            text = os.read(descriptor, 65536)
        except OSError:
            text = b""
        os.close(descriptor)
        if text and text not in seen:
            seen.add(text)
            arguments.append(text.replace(b"\0", b" ").decode("utf-8", "replace").strip())
    for name in known.keys() - set(names):
        del known[name]


def note_files(folders, versions, files):
    for folder in folders:
        for parent, _, names in os.walk(folder):
            for name in names:
                path = os.path.join(parent, name)
                try:
                    facts = os.lstat(path)
                    version = (facts.st_mtime_ns, facts.st_size, facts.st_ino)
                    if not stat.S_ISREG(facts.st_mode) or versions.get(path) == version:
                        continue
                    versions[path] = version
                    with open(path, "rb") as file:
                        found = MAY_BE_SECRET.findall(file.read(FILE_MAX))
                except OSError:
                    continue
                files.setdefault(path, set()).update(word.decode() for word in found)


def main(folders):
    seen, known, arguments, versions, files, sweeps, looked = set(), {}, [], {}, {}, 0, 0
    print("watching", flush=True)
    while not select.select([sys.stdin], [], [], 0)[0]:
        note_arguments(seen, known, arguments)
        if time.monotonic() - looked > FILES_EVERY_S:
            note_files(folders, versions, files)
            looked = time.monotonic()
        sweeps += 1
    note_files(folders, versions, files)
    json.dump({"arguments": arguments, "files": {path: sorted(words) for path, words in files.items()},
               "sweeps": sweeps}, sys.stdout)


main(sys.argv[1:])
