// A small order service as many would write it: Node's http server, and pg with a pool of ten connections.
//
//   DATABASE_URL=… node samples/node/shop.js statement|for-update PORT
//
// It sells from the tables of oversell (db/schema/001.sql), so that both can be compared: `make peers`.

const http = require("http");
const { Pool } = require("pg");

const [mode, port] = process.argv.slice(2);
const pool = new Pool({ connectionString: process.env.DATABASE_URL, max: 10 });

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

// The order's id; null: sold out.
async function sellInOneStatement(product, quantity) {
  const { rows } = await pool.query({ name: "sell", text: ONE_STATEMENT, values: [product, quantity] });
  return rows.length ? rows[0].order_id : null;
}

async function sellForUpdate(product, quantity) {
  const client = await pool.connect();
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
    await client.query("ROLLBACK").catch(() => {});
    throw error;
  } finally {
    client.release();
  }
}

const sell = { statement: sellInOneStatement, "for-update": sellForUpdate }[mode];
if (!sell || !port) {
  console.error("usage: node samples/node/shop.js statement|for-update PORT");
  process.exit(2);
}

function answer(response, status, body) {
  response.writeHead(status, { "Content-Type": "application/json" });
  response.end(JSON.stringify(body));
}

http
  .createServer((request, response) => {
    let text = "";
    request.on("data", (part) => (text += part));
    request.on("end", async () => {
      try {
        const { product_id: product, quantity } = JSON.parse(text);
        const id = await sell(product, quantity);
        answer(response, id === null ? 409 : 201, id === null ? { error: "sold out" } : { id: Number(id), product_id: product, quantity });
      } catch (error) {
        answer(response, 500, { error: error.message });
      }
    });
  })
  .listen(Number(port), "127.0.0.1");
