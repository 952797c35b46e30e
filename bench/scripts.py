"""pgbench's scripts, made of the service's own statements, so that both run the same SQL."""

import re
from dataclasses import dataclass

from harness import BUILD, Failure, output_of

LOCKBENCH = BUILD / "lockbench"


@dataclass(frozen=True)
class Step:
    statement: str
    values: str = ""  # for $1…, with blanks between
    keep: str = ""  # prefix: the row's columns become variables
    then: str = ""  # a line of pgbench's own behind it


@dataclass(frozen=True)
class Script:
    """What a client sends for one order, or for several in one transaction. pgbench has no null variables, so nulls are written into
    the statements."""

    orders: int
    steps: tuple


def array(element):
    return "'{" + ",".join([element] * 50) + "}'"


SCRIPTS = {
    "select-for-update": Script(1, (
        Step("begin"),
        Step("read-for-update", ":product", "seen_", "\\set target :seen_count - :quantity"),
        Step("write-target", ":product :target :instance :seen_stock_epoch", "wrote_"),
        Step("insert-order", ":product :quantity :seen_price NULL NULL NULL :instance :seen_count :strategy :seen_clock_timestamp NULL "
                             ":wrote_pg_current_xact_id"),
        Step("commit"))),
    "atomic-decrement": Script(1, (
        Step("begin"),
        Step("guarded", ":product :quantity :instance", "took_"),
        Step("insert-order", ":product :quantity :took_price NULL NULL NULL :instance NULL :strategy NULL NULL :took_pg_current_xact_id"),
        Step("commit"))),
    "atomic-statement": Script(1, (Step("place-in-one", ":product :quantity NULL NULL NULL :instance :strategy"),)),
    "batched": Script(50, (
        Step("begin"),
        Step("read-for-update", ":product", "seen_", "\\set target :seen_count - 50 * :quantity"),
        Step("insert-batch", f":product :target :seen_price :instance :strategy :seen_clock_timestamp {array('1')} {array('1')} {array('NULL')} "
                             f"{array('NULL')} {array('NULL')}"),
        Step("commit"))),
}  # fmt: skip


def script_text(steps, statements):
    """The steps in pgbench's language, for a random product of :first to :last. STATEMENTS: name → (parameters, SQL)."""
    lines = ["\\set product random(:first, :last)"]
    for step in steps:
        parameters, sql = statements[step.statement]
        values = step.values.split()

        def put(found, values=values):
            literal, number = found.groups()
            if number:
                return values[int(number) - 1]
            # pgbench looks for variables inside of literals, too.
            return "E" + literal.replace("\\", "\\\\").replace(":", "\\x3A") if ":" in literal else literal

        used = {int(number) for number in re.findall(r"\$(\d+)", re.sub(r"'(?:[^']|'')*'", "", sql))}
        if len(values) != parameters or max(used, default=0) > parameters:
            raise Failure(f"bench/scripts.py has {len(values)} values for the statement {step.statement}. Correct its script.")
        text = re.sub(r"('(?:[^']|'')*')|\$(\d+)", put, sql)
        lines += [f"{text} \\gset {step.keep}" if step.keep else f"{text};", *([step.then] if step.then else [])]
    return "\n".join(lines) + "\n"


def service_statements():
    parts = output_of([LOCKBENCH, "statements"]).split("\0")
    return {name: (int(parameters), sql) for name, parameters, sql in zip(parts[::3], parts[1::3], parts[2::3])}  # noqa: B905
