"""The strategies, what each promises, and what shows its flaw, as the service that is tested lists them. A unit test derives
both from the cells of each row, so the tests keep no copy. redis-stock, which accepts an order before it is saved, has its own
tests."""

import tempfile
from pathlib import Path

from length import short_only
from service import Services


def listed():
    """The rows of GET /strategies, which needs no database."""
    with tempfile.TemporaryDirectory() as folder:
        services = Services(Path(folder))
        try:
            return services.start("postgresql://127.0.0.1:1/none", ready=False).get("/strategies").json["strategies"]
        finally:
            services.end()


# name → (guarantee, what shows its flaw)
STRATEGIES = {row["name"]: (row["guarantee"], row["shown_by"]) for row in listed() if row["stock_kind"] != "redis"}

# One of each way to place an order, and of each kind of lock.
FEW = {"mutex", "select-for-update", "atomic-statement", "batched", "skip-locked", "lock-table", "redis-fenced", "redis-fair",
       "zookeeper", "etcd-cas"}  # fmt: skip
# All for a test that takes long with all of them.
FEW_ARE_SHORT = short_only(FEW, STRATEGIES)
