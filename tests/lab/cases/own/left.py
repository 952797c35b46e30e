"""What a refused buyer leaves behind, and a stock in memory: MODE names it. POST /reset sets the stock."""
import os, sys; sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../common"))
from web import *
MODE, READ, stock = os.environ["MODE"], "SELECT count FROM product WHERE id = 1", []
TAKE, SELL = "UPDATE product SET count = count - 1 WHERE id = 1", "INSERT INTO sale DEFAULT VALUES"
def memory():
    with transaction() as c:
        if not stock: c.execute(READ); stock.append(c.fetchone()[0])
        if stock[0] < 1: return 409, {}
        stock[0] -= 1
        c.execute(TAKE); c.execute(SELL)
    return 201, {}
def buy(h, raw):
    if h.path.startswith("/reset"):
        stock.clear()
        with transaction() as c: c.execute("DELETE FROM sale"); c.execute("UPDATE product SET count = %s", (int(h.path.split("=")[1]),))
        return 200, {}
    if MODE == "memory": return memory()
    with connection() as d, d.cursor() as c:
        if MODE.startswith("advisory"): c.execute("SELECT pg_advisory_lock(9)"); d.commit()
        c.execute(READ + ("" if MODE.startswith("advisory") else " FOR UPDATE"))
        sold = c.fetchone()[0] >= 1
        if sold: c.execute(TAKE); c.execute(SELL)
        if sold or MODE != "transaction": d.commit()
        if MODE.startswith("advisory") and (sold or MODE == "advisory-right"): c.execute("SELECT pg_advisory_unlock(9)"); d.commit()
    return 201 if sold else 409, {}
serve(buy)
