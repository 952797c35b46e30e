"""`make deps` where packages are missing: it installs them, or its last words say what to do, and the next run goes on.

apt-get, dpkg, dpkg-query, sudo and id are programs of the test, which print what the real ones print."""

import os
import shutil
import subprocess

import pytest
from private_stack import LIMIT_S, ROOT

TOOLS = ("bash", "sh", "env", "grep", "make", "cat", "touch", "sed", "basename")
INSTALLED = "#!/bin/sh\necho 'install ok installed'\n"
# The state of a package in a file; an installation makes it.
DPKG_QUERY = '#!/bin/sh\ncase "$*" in *Eflag*) echo "ok bash"; cat "$STATE/broken" 2>/dev/null; exit ;; esac\n' \
    '[ -e "$STATE/installed" ] && echo "install ok installed"\n'
RECORD = 'echo "$(basename "$0") $*" >>"$STATE/calls"\n'
INSTALLS = 'case " $* " in *" install "*) touch "$STATE/installed" ;; esac\n'
GOOD = f"#!/usr/bin/env bash\n{RECORD}{INSTALLS}"


def failing(words, status=100, unless="false"):
    """An apt-get whose installation ends with WORDS."""
    return (f"#!/usr/bin/env bash\n{RECORD}case \" $* \" in *' install '*) if ! {unless}; then echo '{words}' >&2;"
            f" exit {status}; fi; touch \"$STATE/installed\" ;; esac\n")


class Machine:
    """One with the programs of TOOLS and those that it is given."""

    def __init__(self, folder):
        self.folder = folder
        self.programs = folder / "bin"
        self.programs.mkdir()
        for tool in TOOLS:
            (self.programs / tool).symlink_to(shutil.which(tool))
        self.give(dpkg_query=DPKG_QUERY, dpkg=f"#!/usr/bin/env bash\n{RECORD}", id="#!/bin/sh\necho 0\n")

    def give(self, **programs):
        for name, text in programs.items():
            path = self.programs / name.replace("_", "-")
            path.write_text(text)
            path.chmod(0o755)

    def make(self, *words, seconds=LIMIT_S):
        env = {"PATH": str(self.programs), "STATE": str(self.folder), "HOME": os.environ.get("HOME", "/")}
        return subprocess.run(["make", "--no-print-directory", *words], cwd=ROOT, env=env, capture_output=True, text=True,
                              timeout=seconds, stdin=subprocess.DEVNULL, check=False)

    def calls(self):
        path = self.folder / "calls"
        return path.read_text().splitlines() if path.exists() else []


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


def last_words(ran):
    """The last line that is not make's own."""
    lines = [line for line in ran.stderr.splitlines() if not line.startswith(("make: ", "make["))]
    return lines[-1] if lines else ""


def test_nothing_is_done_where_nothing_is_missing(machine):
    machine.give(dpkg_query=INSTALLED, apt_get=GOOD)
    ran = machine.make("deps")
    assert (ran.returncode, ran.stdout, machine.calls()) == (0, "", []), ran


def test_what_is_missing_is_installed_once(machine):
    machine.give(apt_get=GOOD)
    ran = machine.make("deps")
    assert ran.returncode == 0, ran
    installs = [call for call in machine.calls() if " install " in call]
    assert len(installs) == 1 and " wrk" in installs[0] and "--no-install-recommends" in installs[0], machine.calls()
    before = machine.calls()
    assert machine.make("deps").returncode == 0 and machine.calls() == before


def test_without_apt_get_the_packages_are_named_and_the_build_says_what_it_lacks(machine):
    ran = machine.make("demo", f"BUILD={machine.folder}/build")
    assert ran.returncode == 2, ran
    assert "There is no apt-get here." in ran.stderr and "libmicrohttpd-dev" in ran.stderr, ran
    assert "libraries are missing (libmicrohttpd libpq" in ran.stderr, ran
    assert last_words(ran).startswith("make demo: The build failed. Correct what the first error above says"), ran


def test_who_may_not_install_is_told_whom_to_ask(machine):
    machine.give(apt_get=GOOD, id="#!/bin/sh\necho 1000\n")
    ran = machine.make("deps")
    assert ran.returncode == 2 and machine.calls() == [], ran
    assert "there is no sudo. Run as root 'apt-get install" in last_words(ran) and "etcd-server wrk" in last_words(ran), ran

    words = "learner is not in the sudoers file.  This incident will be reported."
    machine.give(sudo=f"#!/usr/bin/env bash\n{RECORD}echo '{words}' >&2; exit 1\n")
    ran = machine.make("deps")
    assert ran.returncode == 2 and "Ask an administrator to run 'apt-get install" in last_words(ran), ran
    assert len([call for call in machine.calls() if " install " in call]) == 1, "asked for a password again"

    machine.give(sudo='#!/usr/bin/env bash\nexec "$@"\n')
    assert machine.make("deps").returncode == 0


@pytest.mark.parametrize(
    ("words", "advice"),
    [
        ("E: Unable to locate package wrk", "This system does not offer the packages named above."),
        ('E: Package "wrk" has no installation candidate', "Use Debian 12 or newer"),
        ("E: Failed to fetch http://deb.example/w.deb  Temporary failure resolving deb.example", "Check the network"),
        ("E: You don\"t have enough free space in /var/cache/apt/archives/.", "Free some space"),
        ("dpkg: error processing archive w.deb (--unpack): failed to write (No space left on device)", "Free some space"),
        ("E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 7 (apt)", "Wait until it has ended"),
        ("E: Sub-process /usr/bin/dpkg returned an error code (1)", "Correct what it says above"),
    ],
)  # fmt: skip
def test_a_failed_installation_ends_with_what_to_do_and_the_next_run_goes_on(machine, words, advice):
    machine.give(apt_get=failing(words))
    ran = machine.make("deps")
    assert ran.returncode == 2 and words in ran.stdout, ran
    assert advice in last_words(ran) and last_words(ran).startswith("packages: "), ran
    machine.give(apt_get=GOOD)
    ran = machine.make("deps")
    assert ran.returncode == 0, ran


def test_an_interrupted_installation_is_completed_first(machine):
    """As after a full disk: apt-get refuses to install anything else."""
    machine.give(apt_get=failing("E: Unmet dependencies. Try apt --fix-broken install with no packages.",
                                 unless='grep -q "apt-get.* --fix-broken$" "$STATE/calls"'))
    ran = machine.make("deps")
    assert ran.returncode == 0, ran
    assert [call.split(" ")[0] for call in machine.calls()][-4:] == ["dpkg", "apt-get", "apt-get", "apt-get"], machine.calls()
    assert " wrk" in machine.calls()[-1], machine.calls()


def test_a_package_that_dpkg_could_not_finish_is_unpacked_again(machine):
    (machine.folder / "broken").write_text("reinstreq default-jre-headless\n")
    machine.give(apt_get=failing("E: Sub-process /usr/bin/dpkg returned an error code (1)",
                                 unless='grep -q "apt-get.* --reinstall default-jre-headless$" "$STATE/calls"'))
    ran = machine.make("deps")
    assert ran.returncode == 0 and not any("bash" in call for call in machine.calls()), ran
