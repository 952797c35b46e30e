// Exercise 3: write only if the row has not changed since the read. This order() has two bugs: it sells an order
// that should fail, and it refuses an order that it could sell.
"use strict";

const { transaction } = require("./servers");

const UPDATE = "UPDATE product SET count = $1 WHERE id = $2 AND version = $3";

function order(product, quantity) {
  return transaction(async (client) => {
    const { rows: [{ count, version }] } = await client.query("SELECT count, version FROM product WHERE id = $1", [product]);
    if (count < quantity) return false;
    const { rowCount } = await client.query(UPDATE, [count - quantity, product, version]);
    if (rowCount === 0) return false;
    await client.query("INSERT INTO order_item (product_id, quantity) VALUES ($1, $2)", [product, quantity]);
    return true;
  });
}

module.exports = { order };
