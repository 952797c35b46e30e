"""The lessons: their commands print what is said there, their exercises can be solved and can be missed."""

import os
import re
import subprocess
import time
from pathlib import Path

import pytest
from length import short_only

ROOT = Path(__file__).resolve().parents[2]
BUILD = (ROOT / os.environ.get("BUILD", "build")).resolve()
WORKSHOP = ROOT / "docs" / "workshop"
LESSONS = sorted(WORKSHOP.glob("[0-9][0-9]-*.md"))


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """What `make run` starts, for all lessons; the environment of a shell that has found it."""
    folder = tmp_path_factory.mktemp("workshop")
    stack, port_file = ROOT / "stack" / "stack", folder / "port"
    subprocess.run([stack, "up", "--dir", folder / "stack", "--while", str(os.getpid()), "--purge", "all"],
                   check=True, timeout=300, stdout=subprocess.DEVNULL)  # fmt: skip
    service = None
    try:
        environment = os.environ | {"BUILD": str(BUILD), "STACK": str(folder / "stack")}
        command = f'. docs/workshop/shell && exec "$BUILD/order-service" --listen 127.0.0.1:0 --port-file {port_file}'
        service = subprocess.Popen(["bash", "-c", command], cwd=ROOT, env=environment, stdin=subprocess.DEVNULL,
                                   stderr=(folder / "log").open("w"))  # fmt: skip
        end = time.monotonic() + 300
        while not (port_file.exists() and port_file.read_text().strip()):
            assert service.poll() is None and time.monotonic() < end, (folder / "log").read_text()
            time.sleep(0.05)
        yield environment | {"SHOP": f"http://127.0.0.1:{port_file.read_text().strip()}"}
        service.terminate()
        assert service.wait(timeout=300) == 0, (folder / "log").read_text()
    finally:
        if service and service.poll() is None:
            service.kill()
            service.wait()
        subprocess.run([stack, "down", "--dir", folder / "stack", "--purge"], check=True, timeout=300,
                       stdout=subprocess.DEVNULL)  # fmt: skip


def rehearse(shop, *words):
    return subprocess.run(
        [WORKSHOP / "rehearse", *words], cwd=ROOT, env=shop, capture_output=True, text=True, timeout=1200, check=False
    )


def check(shop, *words):
    command = ["bash", "-c", '. docs/workshop/shell; check "$@"', "bash", *words]
    return subprocess.run(
        command, cwd=ROOT, env=shop, capture_output=True, text=True, timeout=600, check=False
    )


@pytest.mark.long
@pytest.mark.parametrize("lesson", short_only(LESSONS[:2], LESSONS), ids=lambda path: path.stem)
def test_a_lesson_shows_what_it_says(shop, lesson):
    ran = rehearse(shop, "--any-speed", lesson)
    assert ran.returncode == 0, ran.stdout + ran.stderr


# A table that a command prints, and below it the page's, with other figures.
TABLE = """```sh
cat <<END
strategy orders_per_s round_trips_per_order
row-lock 2000 2.0
optimistic 1000 9.6
END
```

```text{}
strategy orders_per_s round_trips_per_order
row-lock 2500 {}
optimistic {} 12
```
"""


@pytest.mark.parametrize(
    "text, right",
    [
        ("```sh\necho sold 2\n```\n\n```text\nsold 2\n```\n", True),
        ("```sh\necho sold 2\n```\n\n```text\nsold 1\n```\n", False),
        ("```sh\necho sold 2, ok\n```\n\n```text rough\nsold 130, ok\n```\n", True),
        ("```sh\necho sold 2, broken\n```\n\n```text rough\nsold 2, ok\n```\n", False),
        (TABLE.format(" rough", 2.0, 900), True),
        (TABLE.format(" rough", 2.1, 900), False),
        (TABLE.format(" rough", 3.0, 900), False),
        (TABLE.format(" rough row-lock>optimistic", 2.0, 900), True),
        (TABLE.format(" rough optimistic>row-lock", 2.0, 900), False),
        (TABLE.format(" rough row-lock>optimistic", 2.0, 3000), False),
        (TABLE.format(" rough round_trips_per_order:optimistic>row-lock", 2.0, 900), True),
        (TABLE.format(" rough row-lock>nobody", 2.0, 900), False),
        ("```sh\nfalse\n```\n", False),
        ("```sh fails\nfalse\n```\n", True),
        ("```sh fails\ntrue\n```\n", False),
        ("```sh\necho first\nfalse\necho last\n```\n\n```text\nfirst\n```\n", False),
    ],
)
def test_a_lesson_that_is_not_true_is_caught(shop, tmp_path, text, right):
    lesson = tmp_path / "lesson.md"
    lesson.write_text(text)
    ran = rehearse(shop, lesson)
    assert ran.returncode == (0 if right else 1), ran.stdout + ran.stderr
    assert lesson.read_text() == text


def sessions(shop, *statements):
    command = ["bash", "-c", ". docs/workshop/shell; sessions"]
    return subprocess.run(command, cwd=ROOT, env=shop, input="\n".join(statements), capture_output=True, text=True,
                          timeout=600, check=False)  # fmt: skip


def test_sessions_show_who_waits_for_whom_and_leave_nothing(shop):
    lock = "SELECT count FROM reserve WHERE place = 1 FOR UPDATE"
    ran = sessions(shop, "A: BEGIN", "B: BEGIN", f"A: {lock}", f"B~ {lock};", "A: ROLLBACK", "B: SELECT 1 / 0", "B: COMMIT",
                   "B: SELECT count(*) FROM pg_namespace WHERE nspname = current_schema()")  # fmt: skip
    assert ran.returncode == 0, ran.stdout + ran.stderr
    told = [" ".join(line.split()) for line in ran.stdout.splitlines()]
    assert told[2:-1] == [f"A {lock} 1", f"B {lock} waits for A", "A ROLLBACK", "B 1", "B SELECT 1 / 0 ERROR 22012",
                          "division by zero", "B COMMIT ROLLBACK"]  # fmt: skip
    assert told[-1].endswith(" 1")
    command = ["bash", "-c", ". docs/workshop/shell; psql -XAtc \"SELECT nspname FROM pg_namespace WHERE nspname ~ '^workshop_'\""]
    assert subprocess.run(command, cwd=ROOT, env=shop, capture_output=True, text=True, timeout=600, check=True).stdout == ""


def test_sessions_say_what_is_not_as_written(shop):
    for status, said, statements in (
        (1, "A did not wait", ["A~ SELECT 1"]),
        (2, "line 2: ", ["A: SELECT 1", "C: SELECT 2"]),
        (2, "no statements", [""]),
        (2, "psql ended", ["A: \\q", "A: SELECT 1"]),
    ):
        ran = sessions(shop, *statements)
        assert ran.returncode == status and f"sessions: {said}" in ran.stdout, ran.stdout + ran.stderr
    # The shell fixes PGPORT, so the script itself is asked.
    environment = shop | {"PGHOST": "127.0.0.1", "PGPORT": "1"}
    ran = subprocess.run([WORKSHOP / "bin" / "sessions"], env=environment, input="A: SELECT 1", capture_output=True, text=True,
                         timeout=600, check=False)  # fmt: skip
    assert ran.returncode == 2 and "psql ended" in ran.stdout, ran.stdout + ran.stderr


# `docker compose run --rm lab` without Docker: what the image's ENTRYPOINT does, with the service of this test for service-1.
CONTAINER = """
docker() {
    [ "$1 $2 $3 $4" = "compose run --rm lab" ] || { echo "docker $*" >&2; return 1; }
    shift 4
    stack/container/with-keys "$BUILD/loadtest" "${@/http:\\/\\/service-1:8080/$SHOP}"
}
"""


@pytest.mark.parametrize(
    "command, said",
    [
        ("explore --replay 'read-write s=1 q=1,1 A>read B>end A>end'", "Sold 2 of 1"),
        ("explore --replay 'redlock s=1 q=1,1 A!cut A!cut A>end B>end'", "Sold 1 of 1"),
        ("compare --strategies mutex --phases sell-out", "1 strategy: 1 oversold-as-expected"),
        ("compare --strategies mutex --phases sell-out --instances 1", "1 strategy: 1 flawed"),
    ],
)
def test_the_function_for_containers_runs_the_lessons_commands(shop, command, said):
    """Dockerfile: ENTRYPOINT ["with-keys", "loadtest"] of the lab; docker-compose.yml: the addresses in its environment."""
    assert 'ENTRYPOINT ["with-keys", "loadtest"]' in (ROOT / "Dockerfile").read_text()
    function = re.search(r"```bash\n(loadtest\(\)\n.*?)```", (WORKSHOP / "README.md").read_text(encoding="utf-8"), re.S)[1]
    script = f'eval "$(stack/stack env --dir "$STACK")"\n{CONTAINER}\n{function}\nloadtest {command}'
    ran = subprocess.run(["bash", "-c", script], cwd=ROOT, env=shop | {"COLUMNS": "200"}, capture_output=True, text=True,
                         timeout=600, check=False)  # fmt: skip
    assert ran.returncode == 0 and said in ran.stdout, ran.stdout + ran.stderr


@pytest.mark.long
def test_what_cannot_be_judged_is_neither_right_nor_wrong(shop):
    for words in (["1", "A>sleep"], ["1"], ["99", "x"], ["5", "nobody"], ["17", "nowhere", "mutex"], ["23", "SELECT 1; \\q"]):
        ran = check(shop, *words)
        assert (ran.returncode, ran.stdout.splitlines()[-1][:2]) == (2, ":|"), ran.stdout + ran.stderr
    ran = check(shop | {"SHOP": "http://127.0.0.1:1"}, "8", "lock-row")
    assert ran.returncode == 2 and "does not answer" in ran.stdout, ran.stdout + ran.stderr


WAKE = "PUBLISH redisson_lock__channel:{oversell:lock:exercise} 0"


@pytest.mark.parametrize(
    "words, status, reason",
    [
        (["18", "A>unlock B>read A>end B>end"], 0, "sold 2 of 1, with 0 faults"),
        (["18", "A>end B>end"], 1, "sold 1 of 1"),
        (["18", "A>read A!expire B>end A>end"], 1, "with 1 faults"),
        (["19", "B!cut B!cut B!cut B>end A>end"], 0, "A: created, B: backend-unavailable"),
        (["19", "B!cut B!cut B>end A>end"], 1, "B: created"),
        (["19", "B!cut B!cut B!cut B>end A!cut A!cut A!cut A>end"], 1, "A: backend-unavailable"),
        (["20", "A>read B>end A>end"], 0, "sold 2 of 1, with 0 faults"),
        (["20", "A>end B>end"], 1, "sold 1 of 1"),
        (["20", "A>read A!expire B>end A>end"], 1, "with 1 faults"),
        (["21", "DEL oversell:lock:exercise", WAKE], 0, "a waiter tries again"),
        (["21", "DEL oversell:lock:exercise", "PUBLISH oversell:lock:exercise 0"], 1, "sleep on"),
        (["21", WAKE, "DEL oversell:lock:exercise"], 1, "has to remove the lock"),
        (["22", "A>read A!restart A!restart A!restart B>end A>end"], 0, "sold 2 of 1, with 3"),
        (["22", "A>read A!expire B>end A>end"], 1, "no lease ends"),
        (["22", "A>read B>lock~ A>end B>end"], 1, "sold 1 of 1, with 0"),
        (["23", "SELECT count FROM reserve ORDER BY place FOR UPDATE"], 0, "A read '1 1', and B, after A's commit, '0 1'"),
        (["23", "SELECT sum(count) FROM reserve"], 1, "B did not wait"),
        (["23", "SELECT sum(count) FROM reserve FOR UPDATE"], 1, "PostgreSQL refuses"),
        (["23", "SELECT pg_advisory_xact_lock(1)"], 1, "A read ''"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_an_exercise_is_judged_by_running_it(shop, words, status, reason):
    ran = check(shop, *words)
    assert ran.returncode == status and reason in ran.stdout.splitlines()[-1], ran.stdout + ran.stderr


# ---- etcd's version 2 ----------------------------------------------------------------------------------------------


def free_ports(count):
    import socket

    probes = [socket.socket() for _ in range(count)]
    for probe in probes:
        probe.bind(("127.0.0.1", 0))
    ports = [probe.getsockname()[1] for probe in probes]
    for probe in probes:
        probe.close()
    return ports


def recipe(step, client):
    """The method of STEP and its parameters, in the column of version 2 of lesson 13, for CLIENT's request."""
    cell = re.search(rf"^\| {step} \| (.*?) \|", (WORKSHOP / "13-etcd.md").read_text(encoding="utf-8"), re.M)[1]
    method, *rest = re.findall(r"`(.*?)`( my value)?", cell)
    return method[0], [name + (client if mine else "") for name, mine in rest]


def test_the_recipe_for_etcds_version_2_never_renews_or_deletes_the_key_of_another_holder(tmp_path):
    """Where this etcd still has version 2. A's key has expired, and B has created it."""
    client, peer = (f"http://127.0.0.1:{port}" for port in free_ports(2))
    command = ["etcd", "--enable-v2", "--data-dir", tmp_path / "etcd", "--listen-client-urls", client, "--advertise-client-urls", client,
               "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", f"default={peer}"]  # fmt: skip
    with open(tmp_path / "log", "w", encoding="utf-8") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log)

    def ask(method, parameters, *value):
        words = [word for each in (*parameters, *value) for word in ("-d", each)]
        in_body = [] if method == "PUT" else ["-G"]
        return subprocess.run(["curl", "-s", *in_body, "-X", method, f"{client}/v2/keys/lock", *words], capture_output=True, text=True,
                              timeout=60, check=False).stdout  # fmt: skip

    try:
        end = time.monotonic() + 120
        while '"action"' not in (answer := ask(*recipe("take the lock", "B"), "value=B", "ttl=600")):
            if server.poll() is not None or "404" in answer:
                pytest.skip("unavailable: this etcd has no version 2")
            assert time.monotonic() < end, answer
            time.sleep(0.1)
        for step, *value in (("take the lock", "value=A"), ("renew",), ("release",)):
            answer = ask(*recipe(step, "A"), *value)
            assert '"errorCode":10' in answer, (step, answer)  # 105: the key exists; 101: it has another value
        for step, action in (("renew", "update|compareAndSwap"), ("release", "compareAndDelete")):
            answer = ask(*recipe(step, "B"))
            assert re.search(f'"action":"({action})".*"value":"B"', answer), (step, answer)
    finally:
        server.terminate()
        server.wait(timeout=60)


# ---- their form ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda path: path.stem)
def test_a_lesson_has_the_form_of_the_others(lesson):
    text, number = lesson.read_text(encoding="utf-8"), int(lesson.name[:2])
    assert text.startswith(f"# {number}. ")
    head = re.compile(r"^\*\d+ minutes[.,].*\n\n- \*\*Objective:\*\* .+\n(?:  .+\n)*- \*\*Prerequisite:\*\* .+\n(?:  .+\n)*"
                      r"- \*\*Misconception:\*\* .+\n(?:  .+\n)*\n\*\*Question\.\*\* ", re.M)  # fmt: skip
    assert head.search(text), "times, objective, prerequisite, misconception, question"
    teacher = re.search(r"<details><summary>For the teacher</summary>\n(.*?)</details>", text, re.S)
    assert teacher and "*Exercise:*" in teacher[1] and re.search("Sources?: ", teacher[1]), "expected answers and sources"
    assert re.findall(r"^## (.+)$", text, re.M) == ["See it", "Why", "Read", "Exercise"]
    see_it, exercise = text.split("## Why")[0], text.split("## Exercise")[1]
    assert see_it.count("```sh\n") == len(re.findall(r"^```\n\n```text", see_it, re.M)) > 0, "what is run is shown"
    assert f"```sh fails\ncheck {number} " in exercise and f"</summary>\n" in exercise
    assert f"\ncheck {number} " in exercise.split("<details>")[1], "a solution"


def test_the_glossary_has_each_verdict_that_a_lesson_prints():
    glossary = (WORKSHOP / "glossary.md").read_text(encoding="utf-8")
    known = set(re.findall(r"`([\w-]+)`", re.search(r"^\*\*Verdict\*\*: (.*?)\n(?:\n|$)", glossary, re.S | re.M)[1]))
    verdicts = set()
    for lesson in LESSONS:
        for block in re.findall(r"^```text[^\n]*\n(.*?)^```", lesson.read_text(encoding="utf-8"), re.S | re.M):
            rows = [line.split() for line in block.splitlines()]
            verdicts |= {row[rows[0].index("verdict")] for row in rows[1:] if "verdict" in rows[0] and len(row) == len(rows[0])}
    assert {"ok", "flawed", "anomaly"} < verdicts and verdicts - {"verdict"} <= known, verdicts
    for word in ("Guarantee", "Serial execution", "Round trip", "Strategy"):
        assert f"**{word}**: " in glossary, word


def test_the_index_names_every_lesson():
    index = (WORKSHOP / "README.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| \d+ \| \[.*?\]\((\d\d-.*?\.md)\)", index, re.M) == [lesson.name for lesson in LESSONS]
    for lesson, minutes in zip(LESSONS, re.findall(r"^\| \d+ \| \[.*\| (\d+) min ", index, re.M), strict=True):
        assert f"*{minutes} minutes" in lesson.read_text(encoding="utf-8"), lesson.name


DOCUMENTS = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "exercises").rglob("*.md")])


@pytest.mark.parametrize("page", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    for link in re.findall(r"\]\(((?!https?:)[^)#]+)", page.read_text(encoding="utf-8")):
        assert (page.parent / link).exists(), link


# Variables that hold a secret, a token that is written out, and a URL with a password.
SECRET = r"""\$\{?(?:\w*DATABASE_URL|REDIS_URL|REDLOCK_URLS|PGPASSWORD|REDISCLI_AUTH|ADMIN_TOKEN|TOKEN)\b|Bearer \w|://\w*:[^@\s/]+@"""
COMMAND = r"\b(?:curl|psql|pgbench|redis-cli|redis-benchmark|etcdctl|wrk|loadtest|lockrun|order-service) .*?"


def secret_arguments(text):
    """The commands in TEXT that get a secret as an argument. What a here-string (<<<) has comes by standard input."""
    commands = [line.split("<<<")[0] for line in text.replace("\\\n", " ").splitlines()]
    return [command for command in commands if re.search(COMMAND + f"(?:{SECRET})", command)]


def test_a_secret_argument_is_found():
    for command in ('redis-cli -u "$REDIS_URL" ping', "psql $DATABASE_URL", "psql postgresql://shop:pw@127.0.0.1/shop",
                    'curl -H "Authorization: Bearer $TOKEN" x', "curl -H 'Authorization: Bearer a1' \\\n x",
                    "sh -c \\\n 'redis-cli -u ${REDIS_URL} ping'"):  # fmt: skip
        assert secret_arguments(command), command
    assert not secret_arguments('curl -H @- x <<<"Authorization: Bearer $TOKEN"\npsql -c "SELECT 1"')


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_document_gives_a_secret_as_an_argument(document):
    """Every user of the machine can read the arguments of a command while it runs."""
    assert secret_arguments(document.read_text(encoding="utf-8")) == []
