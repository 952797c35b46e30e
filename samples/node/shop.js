// A small order service as many would write it in Node: its http server, and pg with a pool of ten connections. It sells from
// oversell's tables (db/schema/001.sql).
//
//     NODE_PATH=/usr/share/nodejs DATABASE_URL=postgresql://… PORT=8081 SALE=for-update node samples/node/shop.js
//
// DATABASE_URL   the database; its tables are there already
// PORT           port on loopback; 0: any free one (default: 8081)
// SALE           statement: one statement does all; for-update: a transaction with SELECT … FOR UPDATE (default: statement)
// POOL           connections to the database (default: 10)
//
// POST /orders with {"product_id":1,"quantity":1} answers 201 with the order, or 409 if there are not enough units.
"use strict";

const http = require("http");
const { Pool } = require("pg");

const { DATABASE_URL, PORT = "8081", SALE = "statement", POOL = "10" } = process.env;

const INSERT = `
  WITH o AS (
    INSERT INTO orders (amount, created_by, updated_by) VALUES ($3::numeric * $2::bigint, 'node', 'node') RETURNING id
  ) INSERT INTO order_item (order_id, product_id, purchase_price, purchase_num, strategy, instance, stock_xid, created_by, updated_by)
    SELECT id, $1::bigint, $3::numeric, $2::bigint, 'node', 'node', pg_current_xact_id(), 'node', 'node' FROM o RETURNING order_id`;

const ONE_STATEMENT = `
  WITH taken AS (
    UPDATE product SET count = count - $2::bigint, version = version + 1, updated_by = 'node'
    WHERE id = $1::bigint AND count >= $2::bigint RETURNING id, price
  ), o AS (
    INSERT INTO orders (amount, created_by, updated_by) SELECT price * $2::bigint, 'node', 'node' FROM taken RETURNING id
  ) INSERT INTO order_item (order_id, product_id, purchase_price, purchase_num, strategy, instance, stock_xid, created_by, updated_by)
    SELECT o.id, taken.id, price, $2::bigint, 'node', 'node', pg_current_xact_id(), 'node', 'node' FROM o, taken RETURNING order_id`;

// Each returns the order's id, or null if there are not enough units. pg prepares a statement that has a name.
async function sellInOneStatement(product, quantity) {
  const { rows } = await pool.query({ name: "sell", text: ONE_STATEMENT, values: [product, quantity] });
  return rows.length ? rows[0].order_id : null;
}

async function sellForUpdate(product, quantity) {
  const client = await pool.connect();
  let broken;
  try {
    await client.query("BEGIN");
    const read = "SELECT count, price FROM product WHERE id = $1 FOR UPDATE";
    const { rows: [row] } = await client.query({ name: "read", text: read, values: [product] });
    if (!row || Number(row.count) < quantity) {
      await client.query("ROLLBACK");
      return null;
    }
    const write = "UPDATE product SET count = $2, version = version + 1, updated_by = 'node' WHERE id = $1";
    await client.query({ name: "write", text: write, values: [product, Number(row.count) - quantity] });
    const { rows: [order] } = await client.query({ name: "insert", text: INSERT, values: [product, quantity, row.price] });
    await client.query("COMMIT");
    return order.order_id;
  } catch (error) {
    broken = error; // the pool closes the connection, which ends the transaction
    throw error;
  } finally {
    client.release(broken);
  }
}

function answer(response, status, body) {
  response.writeHead(status, { "Content-Type": "application/json" });
  response.end(JSON.stringify(body));
}

function parse(text) {
  try {
    const { product_id: product, quantity } = JSON.parse(text);
    return [product, quantity].every((number) => Number.isSafeInteger(number) && number > 0) ? { product, quantity } : null;
  } catch {
    return null;
  }
}

async function order(text, response) {
  const wanted = parse(text);
  if (!wanted) return answer(response, 400, { error: "product_id and quantity must be positive integers" });
  try {
    const id = await sell(wanted.product, wanted.quantity);
    if (id === null) return answer(response, 409, { error: "sold out" });
    answer(response, 201, { id: Number(id), product_id: wanted.product, quantity: wanted.quantity });
  } catch (error) {
    console.error(`shop: ${error.message}`);
    answer(response, 500, { error: "the order failed" });
  }
}

function fail(message) {
  console.error(`shop: ${message}`);
  process.exit(1);
}

const sell = { statement: sellInOneStatement, "for-update": sellForUpdate }[SALE];
if (!sell) fail(`SALE is "${SALE}". Set it to statement or for-update.`);
if (!DATABASE_URL) fail("DATABASE_URL is missing. Set it to the address of a database with oversell's tables.");
const pool = new Pool({ connectionString: DATABASE_URL, max: Number(POOL) });
pool.on("error", (error) => console.error(`shop: ${error.message}`)); // of a connection that no order uses

const server = http.createServer((request, response) => {
  if (request.method !== "POST" || request.url !== "/orders") return answer(response, 404, { error: "use POST /orders" });
  let text = "";
  request.setEncoding("utf8");
  request.on("data", (part) => (text += part));
  request.on("end", () => order(text, response));
});
server.on("error", (error) => fail(`cannot listen on port ${PORT}. Choose another PORT. Node says: ${error.message}`));

pool.query("SELECT 1").then(
  () => server.listen(Number(PORT), "127.0.0.1", () => console.log(`shop: listening on port ${server.address().port}`)),
  (error) => fail(`cannot use the database. Check DATABASE_URL. The driver says: ${error.message}`),
);

// Orders in progress are answered first.
for (const signal of ["SIGTERM", "SIGINT"]) {
  process.once(signal, () => {
    server.close(() => pool.end());
    server.closeIdleConnections();
  });
}
