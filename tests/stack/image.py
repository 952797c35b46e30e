"""What Docker would do, without Docker: the stages of the Dockerfile, the files of the build context, and what Debian's
packages bring."""

import os
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
INSTRUCTIONS = {"FROM", "ENV", "COPY", "RUN", "WORKDIR", "USER", "ENTRYPOINT", "CMD", "EXPOSE", "HEALTHCHECK", "VOLUME",
                "STOPSIGNAL"}

# ── the Dockerfile ──────────────────────────────────────────────────────────────────────────────────────────


class Stage:
    def __init__(self, name, base):
        self.name, self.base, self.lines = name, base, []

    def arguments(self, word):
        """The arguments of each instruction WORD of this stage alone."""
        return [line.split(None, 1)[1] for line in self.lines if line.split()[0] == word]

    def last(self, word):
        """The arguments of the last instruction WORD of this stage or the stages that it is made from."""
        for found in reversed(self.arguments(word)):
            return found
        return self.base.last(word) if isinstance(self.base, Stage) else None

    def environment(self):
        found = self.base.environment() if isinstance(self.base, Stage) else {}
        for line in self.arguments("ENV"):
            found.update(word.split("=", 1) for word in line.split())
        return found

    def packages(self):
        """What install-packages installs in this stage and the stages that it is made from."""
        found = self.base.packages() if isinstance(self.base, Stage) else set()
        return found | {word for line in self.arguments("RUN") for command in line.split("&&")
                        if "install-packages" in command for word in command.split("install-packages", 1)[1].split()}

    def sources(self):
        """The files and folders of the build context that are copied."""
        for line in self.arguments("COPY"):
            words = [word for word in line.split() if not word.startswith("--")]
            if not line.startswith("--from="):
                yield from words[:-1]


def read_stages():
    found = {}
    text = re.sub(r"^\s*#.*\n", "", (ROOT / "Dockerfile").read_text(), flags=re.M).replace("\\\n", " ")
    for line in filter(None, map(str.strip, text.splitlines())):
        word = line.split()[0]
        assert word in INSTRUCTIONS, line
        if word == "FROM":
            base, name = re.fullmatch(r"FROM (\S+) AS (\S+)", line).groups()
            assert name not in found
            stage = found[name] = Stage(name, found.get(base, base))
            assert base in found.keys() - {name} or base == "debian:12", line
        else:
            stage.lines.append(line)
    return found


# ── the build context ───────────────────────────────────────────────────────────────────────────────────────


def pattern_regex(pattern):
    """As moby's patternmatcher has it: `**` is any number of folders, `*` and `?` stay inside one name."""
    text, at = "", 0
    while at < len(pattern):
        if pattern.startswith("**", at):
            at += 2
            if pattern.startswith("/", at):
                at += 1
            text += ".*" if at == len(pattern) else "(.*/)?"
            continue
        char = pattern[at]
        if char == "\\" and at + 1 < len(pattern):
            at += 1
            text += re.escape(pattern[at])
        else:
            text += {"*": "[^/]*", "?": "[^/]", "[": "[", "]": "]", "^": "^", "-": "-"}.get(char) or re.escape(char)
        at += 1
    return re.compile(text + r"\Z", re.S)


class Ignore:
    """A .dockerignore. The last line that matches a path, or a folder that it lies in, decides."""

    def __init__(self, text):
        self.rules = []
        for line in text.splitlines():
            line = line.strip() if not line.startswith("#") else ""
            if line:
                wanted = line.startswith("!")
                pattern = os.path.normpath(line.removeprefix("!").strip()).lstrip("/")
                self.rules.append((pattern_regex(pattern), wanted))

    def lets_in(self, path):
        parts = path.split("/")
        names = ["/".join(parts[:count]) for count in range(1, len(parts) + 1)]
        sent = True
        for regex, wanted in self.rules:
            if wanted != sent and any(regex.match(name) for name in names):
                sent = wanted
        return sent


def build_context():
    """The paths of all files that Docker would get, relative to the checkout."""
    ignore = Ignore((ROOT / ".dockerignore").read_text())
    found = set()
    for folder, folders, names in os.walk(ROOT):
        here = Path(folder).relative_to(ROOT)
        if here == Path():
            # Nothing there is a source, and there may be much of it.
            folders[:] = [name for name in folders if name not in (".git", "build")]
            for name in (".git/HEAD", "build/order-service"):
                assert not ignore.lets_in(name), f".dockerignore sends {name} to Docker"
        found.update(path for path in (str(here / name) for name in names) if ignore.lets_in(path))
    return found


# ── Debian's packages ───────────────────────────────────────────────────────────────────────────────────────


class Packages:
    """The packages that are installed on this machine."""

    def __init__(self):
        self.depends, self.provided_by, self.always = {}, {}, set()
        form = "${Package}\t${db:Status-Status}\t${Essential}\t${Priority}\t${Provides}\t${Pre-Depends}, ${Depends}\n"
        for line in output("dpkg-query", "-W", "-f", form).splitlines():
            name, status, essential, priority, provides, depends = line.split("\t")
            if status != "installed":
                continue
            self.depends[name] = [[re.split(r"[ :(]", word.strip())[0] for word in choice.split("|")]
                                  for choice in depends.split(",") if choice.strip()]
            for word in filter(None, map(str.strip, provides.split(","))):
                self.provided_by.setdefault(word.split()[0], []).append(name)
            if essential == "yes" or priority == "required":
                self.always.add(name)

    def closure(self, names):
        """NAMES, what every Debian has, and all that these depend on."""
        found, waiting = set(), [*names, *self.always, "apt"]
        while waiting:
            name = waiting.pop()
            if name in found or name not in self.depends:
                continue
            found.add(name)
            for choice in self.depends[name]:
                # Of several the first that is installed here; a name may be what other packages provide.
                installed = [real for word in choice for real in ([word] if word in self.depends else self.provided_by.get(word, []))]
                waiting += installed[:1]
        return found

    def owners(self, paths):
        """The package of each path; one that no package brings is left out."""
        asked = {}
        for path in paths:
            # A package may name a file as it was before /lib became a link to /usr/lib.
            for name in {path, os.path.realpath(path)}:
                asked[name] = asked[name.removeprefix("/usr") if name.startswith("/usr/") else f"/usr{name}"] = path
        ran = subprocess.run(["dpkg-query", "-S", *asked], capture_output=True, text=True, check=False, timeout=120,
                             env={"PATH": os.environ["PATH"], "LC_ALL": "C"})
        found = {}
        for line in ran.stdout.splitlines():
            names, _, path = line.rpartition(": ")
            if path in asked and not line.startswith("diversion by"):
                found[asked[path]] = names.split(",")[0].split(":")[0]
        return found


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout
