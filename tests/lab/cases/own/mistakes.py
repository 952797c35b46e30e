"""Checkouts that only append to a table, and others, each with one mistake: MODE names it."""
import os, sys; sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../common"))
from web import *
MODE = os.environ["MODE"]
LEFT = "SELECT p.count - coalesce((SELECT sum(quantity) FROM reservation), 0) FROM product p WHERE p.id = 1"
RESERVE = "INSERT INTO reservation (product, quantity) VALUES (1, 1)"
def value(c, sql):
    c.execute(sql)
    row = c.fetchone()
    return row and row[0]
def appended(c):                      # the sum is checked, then a reservation is appended
    if MODE == "old-snapshot": c.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    if MODE in ("old-snapshot", "lock-first"): c.execute("SELECT id FROM product WHERE id = 1 FOR UPDATE")
    if value(c, LEFT + (" FOR UPDATE OF p" if MODE == "lock-with-sum" else "")) < 1: return 409
    c.execute(RESERVE)
    return 201
def in_one_statement(c):
    c.execute("INSERT INTO reservation (product, quantity) SELECT 1, 1 FROM product p WHERE p.id = 1 AND p.count - coalesce((SELECT sum(quantity) FROM reservation), 0) >= 1")
    return 201 if c.rowcount else 409
def no_row(c):                        # the lock is on the reservations of the seat, and there are none yet
    if value(c, "SELECT id FROM reservation WHERE product = 1 FOR UPDATE") is not None: return 409
    c.execute(RESERVE)
    return 201
def ignored_zero(c):                  # the UPDATE has the condition, and nobody looks at its result
    if value(c, "SELECT count FROM product WHERE id = 1") < 1: return 409
    c.execute(RESERVE)
    c.execute("UPDATE product SET count = count - 1 WHERE id = 1 AND count >= 1")
    return 201
def cached(c):                        # the lock is right, and the value is that of the first read
    count = value(c, "SELECT count FROM product WHERE id = 1")
    c.execute("SELECT count FROM product WHERE id = 1 FOR UPDATE")
    if count < 1: return 409
    c.execute("UPDATE product SET count = %s WHERE id = 1", (count - 1,))
    c.execute(RESERVE)
    return 201
def released(c):                      # the lock ends with the first of two transactions
    if value(c, "SELECT count FROM product WHERE id = 1 FOR UPDATE") < 1: return 409
    c.execute("COMMIT; BEGIN")
    c.execute("UPDATE product SET count = count - 1 WHERE id = 1")
    c.execute(RESERVE)
    return 201
MEMORY = [int(os.environ["UNITS"])]
def memory(c):                        # each process counts for itself
    if MEMORY[0] < 1: return 409
    c.execute(RESERVE)
    return 201
FUNCTIONS = {"one-statement": in_one_statement, "no-row": no_row, "ignored-zero": ignored_zero, "cached": cached, "released": released, "memory": memory}
def buy(h, raw):
    with transaction() as c: return FUNCTIONS.get(MODE, appended)(c), {}
serve(buy)
