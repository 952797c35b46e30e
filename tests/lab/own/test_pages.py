"""The pages about a user's own service: their commands print what the pages say, and the code that they show is that of the samples."""

import json
import os
import re
import subprocess

import pytest

from basics import BUILD, ROOT
from lab import PATIENCE
from test_check import sample_needs

DOCS = ROOT / "docs"
OWN = ROOT / "samples" / "own"
TUTORIAL = "does-your-checkout-oversell.md"
# Page, where its code is from, blocks of code.
SHOWN = [
    (TUTORIAL, ("python/shop.py", "python/shop.json"), 5),
    ("frameworks/django.md", ("django/shop.py",), 4),
    ("frameworks/rails.md", ("rails/shop.rb",), 4),
    ("frameworks/laravel.md", ("laravel/shop.php",), 4),
    ("frameworks/spring.md", ("jpa/Shop.java",), 3),
    ("frameworks/node.md", tuple(f"node-orms/{orm}.js" for orm in ("prisma", "typeorm", "sequelize", "knex")), 5),
]


@pytest.mark.long
def test_the_tutorial_shows_what_the_commands_print():
    sample_needs("python")
    ran = subprocess.run([DOCS / "workshop" / "rehearse", DOCS / TUTORIAL], env=os.environ | {"BUILD": os.environ.get("BUILD", "build")},
                         capture_output=True, text=True, timeout=900 * PATIENCE, check=False)  # fmt: skip
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.parametrize(("page", "sources", "count"), SHOWN, ids=lambda value: value if isinstance(value, str) else None)
def test_a_page_shows_code_of_its_samples(page, sources, count):
    known = "\n".join((OWN / source).read_text(encoding="utf-8") for source in sources)
    blocks = re.findall(r"^```(?:python|json|js|java|ruby|php)\n(.*?)^```", (DOCS / page).read_text(encoding="utf-8"), re.S | re.M)
    assert len(blocks) == count, blocks
    assert [block for block in blocks if block not in known] == []


def test_the_tutorial_runs_each_command_that_it_prints_as_code():
    """What stands in a block but is not run is a block without a language, of which there are these."""
    text = (DOCS / TUTORIAL).read_text(encoding="utf-8")
    assert re.findall(r"^    (\S.*)$", re.sub(r"^```.*?^```", "", text, flags=re.S | re.M), re.M) == [
        "make deps-test && make",
        "build/loadtest explore shop.json --instances 2",
        "build/loadtest check shop.json --instances 2 --repeat 3 --export-junit check.xml",
    ]


# ---- frameworks -------------------------------------------------------------------------------------

MODULES = BUILD / "node-orms" / "node_modules"
JARS = ("hibernate-entitymanager-3.6.10.Final", "javassist", "postgresql")
DEBIAN, NPM = "make deps-frameworks", "make deps-orms"
# Page: its sample, a command that fails where the framework is missing and prints its version, and what installs it.
FRAMEWORKS = {
    "django": ("django", ["/usr/bin/python3", "-c", "import django, psycopg2; print(django.__version__)"], DEBIAN),
    "rails": ("rails", ["ruby", "-e", "require 'active_record'; require 'pg'; require 'webrick'; puts ActiveRecord.version"], DEBIAN),
    "laravel": ("laravel", ["sh", "-c", "php -r 'extension_loaded(\"pdo_pgsql\") && require \"Illuminate/Database/autoload.php\";' && "
                                        "dpkg-query -W -f '${Version}' php-illuminate-database"], DEBIAN),
    "spring": ("jpa", ["sh", "-c", "javac --version >&2" + "".join(f" && test -e /usr/share/java/{jar}.jar" for jar in JARS) + " && echo 3.6"], DEBIAN),
    "node": ("node-orms", ["node", "-e", "['knex', 'sequelize', 'typeorm', '@prisma/client'].forEach(require)"], NPM),
}  # fmt: skip
VERSIONS = {"django": "3.2", "rails": "6.1", "laravel": "8.83", "spring": "3.6", "node": ""}  # whose SQL the pages show
ENVIRONMENT = os.environ | {"NODE_PATH": str(MODULES)}


def page_of(name):
    return (DOCS / "frameworks" / f"{name}.md").read_text(encoding="utf-8")


def framework_needs(name, version=""):
    _, probe, install = FRAMEWORKS[name]
    try:
        ran = subprocess.run(probe, env=ENVIRONMENT, capture_output=True, text=True, timeout=60 * PATIENCE, check=False)
    except FileNotFoundError:
        ran = None
    if not ran or ran.returncode:
        pytest.skip(f"unavailable: {name} is not installed: {install}")
    if not ran.stdout.startswith(version):
        pytest.skip(f"unavailable: {name} is version {ran.stdout.strip()}, and the page shows the SQL of {version}")


def variables(words):
    """['prisma', 'lock'] or ['lock'], as options of loadtest."""
    pairs = zip(("PROTECTION", "ORM"), reversed(words), strict=False)
    return [word for name, value in pairs for word in ("--env", f"{name}={value}")]


def explored(description, words, *options):
    command = [BUILD / "loadtest", "explore", description, *variables(words), *options, "--format", "json"]
    ran = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=240 * PATIENCE, check=False)
    assert ran.returncode in (0, 1), ran.stderr
    return json.loads(ran.stdout)


def sql_of(name, words, folder):
    """The statements of the first of two requests. A rule that is never true makes every schedule one to show."""
    sample = OWN / FRAMEWORKS[name][0]
    shop = json.loads((sample / "shop.json").read_text(encoding="utf-8"))
    shop |= {"invariant": "SELECT false", "schema": str(OWN / "schema.sql")}
    shop["start"] = ["sh", "-c", 'cd "$0" && exec "$@"', str(sample), *shop["start"]]
    (folder / "shop.json").write_text(json.dumps(shop), encoding="utf-8")
    shown = explored(folder / "shop.json", words, "--max-schedules", "1")["counterexample"]
    return [step["text"] for step in shown["steps"] if step["actor"] == "A"]


def rows_of(name):
    """The idiom of each row of a page's table, and its verdict: ['prisma', 'lock', 'clean']."""
    for row in re.findall(r"^\| (`.*\S) \|$", page_of(name), re.M):
        *words, _, verdict = row.split(" | ")
        if verdict != "verdict":  # the head of the table
            yield [word.strip("`") for word in words] + [verdict]


VERDICTS = [(name, words) for name in FRAMEWORKS for words in rows_of(name)]
BLOCKS = [(name, words.split(), said) for name in FRAMEWORKS
          for words, said in re.findall(r"^```sql ([^\n]*)\n(.*?)^```", page_of(name), re.S | re.M)]  # fmt: skip


def test_the_index_names_each_page_and_version():
    for name, version in VERSIONS.items():
        assert re.search(rf"^\| \[.*\]\({name}.md\) \| .*{re.escape(version)}", page_of("README"), re.M), name


def test_the_pages_have_verdicts_and_sql():
    for name in FRAMEWORKS:
        verdicts = {words[-1] for page, words in VERDICTS if page == name}
        assert verdicts == {"oversold", "clean"}, name
        assert len([block for block in BLOCKS if block[0] == name]) >= 4, name


@pytest.mark.long
@pytest.mark.parametrize(("name", "words"), VERDICTS, ids=lambda value: value if isinstance(value, str) else "-".join(value))
def test_the_verdict_on_an_idiom(name, words):
    framework_needs(name)
    found = explored(OWN / FRAMEWORKS[name][0] / "shop.json", words[:-1])
    assert found["complete"] and found["verdict"] == words[-1], found


@pytest.mark.long
@pytest.mark.parametrize(("name", "words", "said"), BLOCKS, ids=[f"{name}-{'-'.join(words)}" for name, words, _ in BLOCKS])
def test_the_sql_of_an_idiom(name, words, said, tmp_path):
    framework_needs(name, VERSIONS[name])
    assert "\n".join(sql_of(name, words, tmp_path)) == said.rstrip("\n")


# ---- traps ------------------------------------------------------------------------------------------

TRAPS = ROOT / "tests" / "lab" / "own" / "traps"


def shown_by_traps(command):
    """What a program of traps/ prints, with a private PostgreSQL; its JDBC address is made from DATABASE_URL."""
    script = 'p=${DATABASE_URL#postgresql://}; user=${p%%:*} p=${p#*:} password=${p%%@*} p=${p#*@}\n' \
             'export JDBC_URL="jdbc:postgresql://$p?user=$user&password=$password"; exec "$@"'  # fmt: skip
    ran = subprocess.run([ROOT / "stack" / "stack", "run", "postgres", "--", "bash", "-c", script, "bash", *command], cwd=ROOT,
                         stdout=subprocess.PIPE, text=True, timeout=240 * PATIENCE, check=True)  # fmt: skip
    return dict(line.split(" ", 1) for line in ran.stdout.splitlines())


@pytest.mark.long
def test_what_moves_the_lock_version_of_rails():
    framework_needs("rails", VERSIONS["rails"])
    found = shown_by_traps(["ruby", TRAPS / "traps.rb"])
    assert found == {"update_all-hash": "1", "update_all-string": "1", "update_all-array": "1", "decrement!-of-a-stale-record": "6"}
    told = " ".join(page_of("rails").split())
    assert "`update_all` with a hash and `decrement!` count `lock_version` up, and `update_all` with SQL does not" in told


@pytest.mark.long
def test_a_lock_of_hibernate_without_a_transaction():
    framework_needs("spring", VERSIONS["spring"])
    start = json.loads((OWN / "jpa" / "shop.json").read_text(encoding="utf-8"))["start"]
    found = shown_by_traps([*start[:4], TRAPS / "Traps.java"])
    refused = "TransactionRequiredException"
    assert found == {"find": "no exception", "refresh": "no exception", "lock": refused, "query": refused}
    told = " ".join(page_of("spring").split())
    assert "Hibernate 3.6 throws it in `lock` and in queries. Its `find` and `refresh` send `for update`" in told
