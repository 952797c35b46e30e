"""Whose folder a stack may live in: one of the caller's own, which nobody else can write to or replace."""

import os
import shutil
import subprocess

import pytest
from private_stack import LIMIT_S, STACK, stack

AS_ROOT = os.geteuid() == 0
COMMANDS = (["up", "postgres"], ["down", "--purge"], ["status"], ["env"], ["run", "redis", "--", "true"])


def refuses(folder, rule, *before, script=STACK):
    """Every command says why, and does nothing."""
    for words in COMMANDS:
        ran = subprocess.run([*before, script, words[0], "--dir", folder, *words[1:]], capture_output=True, text=True,
                             timeout=LIMIT_S, stdin=subprocess.DEVNULL, check=False)
        assert ran.returncode == 1 and ran.stdout == "", f"{words}: {ran.returncode} {ran.stdout}{ran.stderr}"
        assert rule in ran.stderr and "must belong to the user who runs this script" in ran.stderr, ran.stderr
        assert "choose another with --dir" in ran.stderr


@pytest.fixture
def folder(stacks):
    """A folder that every user can enter."""
    return stacks().folder.parent


def given_to(path, user):
    subprocess.run(["chown", "-h", user, path], check=True)
    return path


def test_a_folder_that_others_can_write_is_refused(folder):
    for mode in (0o777, 0o1777, 0o757):
        open_to_all = folder / f"mode-{mode:o}"
        open_to_all.mkdir()
        open_to_all.chmod(mode)
        refuses(open_to_all, f"{open_to_all} can be written by other users")
        assert list(open_to_all.iterdir()) == [] and open_to_all.stat().st_mode & 0o7777 == mode


@pytest.mark.skipif(not AS_ROOT, reason="only root makes files of other users")
def test_root_refuses_a_folder_of_another_user(folder):
    theirs = folder / "theirs"
    theirs.mkdir()
    given_to(theirs, "nobody")
    kept = folder / "kept"
    kept.write_text("root's own")
    for name in ("lock", "postgres.port", "postgres.log", "redis.port"):
        given_to(theirs / name, "nobody") if (theirs / name).exists() else (theirs / name).symlink_to(kept)
    refuses(theirs, f"{theirs} belongs to the user nobody")
    refuses(theirs / "not" / "made", f"{theirs} belongs to the user nobody")
    assert kept.read_text() == "root's own" and not (theirs / "not").exists() and (theirs / "lock").is_symlink()


@pytest.mark.skipif(not AS_ROOT, reason="only root makes files of other users")
def test_root_follows_no_link_of_another_user(folder):
    target = folder / "target"
    target.mkdir(mode=0o700)
    theirs = folder / "theirs"
    theirs.mkdir()
    (theirs / "link").symlink_to(target)
    given_to(theirs, "nobody")
    refuses(theirs / "link", f"{theirs} belongs to the user nobody")
    shared = folder / "shared"  # as /tmp
    shared.mkdir()
    shared.chmod(0o1777)
    (shared / "link").symlink_to(target)
    given_to(shared / "link", "nobody")
    refuses(shared / "link", f"{shared}/link belongs to the user nobody")
    shared.chmod(0o777)
    refuses(shared / "own", f"{shared} can be written by other users")
    assert list(target.iterdir()) == [] and target.stat().st_mode & 0o777 == 0o700


@pytest.mark.skipif(not AS_ROOT, reason="only root becomes another user")
def test_a_user_refuses_a_folder_of_another_user(folder):
    roots = folder / "roots"
    roots.mkdir()
    (roots / "postgres.password").write_text("x")
    copy = shutil.copytree(STACK.parent, folder / "copy")  # the checkout may be closed to that user
    refuses(roots, f"{roots} belongs to the user root", "setpriv", "--reuid", "nobody", "--regid", "nogroup",
            "--clear-groups", script=copy / STACK.name)
    assert os.listdir(roots) == ["postgres.password"]


def test_own_folders_are_taken(folder):
    """Also through a link of the caller's, and with a group of the caller's own that may write, as umask 002 makes them."""
    own = folder / "own"
    own.mkdir()
    own.chmod(0o775)
    (folder / "link").symlink_to(own)
    for named in (own, folder / "link", folder / "link" / "new"):
        ran = stack("status", "--dir", named)
        assert (ran.returncode, ran.stdout) == (3, f"no servers in {named.resolve()}\n"), ran.stderr
    # Where a primary group is shared, such a folder is refused: this user's is not.
