// Each write changes the version, and an order that finds another version reads again in a new transaction.
"use strict";

const { transaction } = require("./servers");

const UPDATE = "UPDATE product SET count = $1, version = version + 1 WHERE id = $2 AND version = $3";

function attempt(product, quantity) {
  return transaction(async (client) => {
    const { rows: [{ count, version }] } = await client.query("SELECT count, version FROM product WHERE id = $1", [product]);
    if (count < quantity) return "sold out";
    const { rowCount } = await client.query(UPDATE, [count - quantity, product, version]);
    if (rowCount === 0) return "conflict";
    await client.query("INSERT INTO order_item (product_id, quantity) VALUES ($1, $2)", [product, quantity]);
    return "sold";
  });
}

async function order(product, quantity) {
  for (let i = 0; i < 100; i++) {
    const result = await attempt(product, quantity);
    if (result !== "conflict") return result === "sold";
  }
  throw new Error("100 other orders came first");
}

module.exports = { order };
