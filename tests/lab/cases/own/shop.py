"""One checkout with several protections: MODE names it."""
import os, sys, uuid; sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../common"))
from web import *
MODE = os.environ["MODE"]
TAKE, SELL = "UPDATE product SET count = count - 1 WHERE id = 1", "INSERT INTO sale DEFAULT VALUES"
def attempt(c):
    if MODE == "deferred": c.execute("INSERT INTO booking DEFAULT VALUES"); return 201
    if MODE == "advisory": c.execute("SELECT pg_advisory_xact_lock(7)")
    if MODE == "serializable": c.execute("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE")
    c.execute("SELECT count FROM product WHERE id = 1" + (" FOR UPDATE SKIP LOCKED" if MODE == "skip-locked" else f" FOR UPDATE /* trace={uuid.uuid4()} */" if MODE == "counters" else ""))
    row = c.fetchone()
    if MODE == "skip-locked" and not row: c.execute("SELECT count FROM product WHERE id = 1"); row = c.fetchone()
    if row[0] < 1: return 409
    if MODE == "savepoint": c.execute("SAVEPOINT s")
    if MODE == "counters": c.execute(f'SAVEPOINT __sp_{os.urandom(2).hex()}__; SAVEPOINT "{uuid.uuid4()}"')
    c.execute(TAKE + (" AND count >= 1" if MODE == "savepoint" else ""))
    if c.rowcount == 0: c.execute("ROLLBACK TO s"); return 409
    c.execute(SELL)
    return 201
def look(found):
    with transaction() as c: c.execute("SELECT count FROM product WHERE id = 1"); found.append(c.fetchone()[0])
def buy(h, raw):
    if MODE == "twice":                # the same statement over two connections at once, and then a conditional UPDATE
        found = []; threads = [threading.Thread(target=look, args=(found,)) for _ in range(2)]
        for t in threads: t.start()
        for t in threads: t.join()
        if min(found) < 1: return 409, {}
        with transaction() as c:
            c.execute(TAKE + " AND count >= 1")
            if c.rowcount == 0: return 409, {}
            c.execute(SELL)
        return 201, {}
    while True:
        try:
            with transaction() as c: return attempt(c), {}
        except psycopg2.errors.SerializationFailure: pass
        except psycopg2.errors.RaiseException: return 409, {}
serve(buy)
