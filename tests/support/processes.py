"""Looks for processes of the kernel by their parents, so that a test can tell what stays behind."""

from pathlib import Path


def descendants(pid):
    """The processes below PID, as (pid, when it started)."""
    parents = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "stat").read_text().rsplit(")", 1)[1].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if words[0] != "Z":
            parents[int(folder.name)] = (int(words[1]), words[19])
    found, more = set(), {pid}
    while more:
        more = {child for child, (parent, _) in parents.items() if parent in more}
        found |= {(child, parents[child][1]) for child in more}
    return found


def alive(processes):
    left = set()
    for pid, started in processes:
        try:
            words = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if words[19] == started and words[0] != "Z":
            left.add(pid)
    return left
