// The UPDATE checks the newest version of the row, and the number of rows is the answer.
"use strict";

const { transaction } = require("./servers");

function order(product, quantity) {
  return transaction(async (client) => {
    const { rowCount } = await client.query("UPDATE product SET count = count - $1 WHERE id = $2 AND count >= $1", [quantity, product]);
    if (rowCount === 0) return false;
    await client.query("INSERT INTO order_item (product_id, quantity) VALUES ($1, $2)", [product, quantity]);
    return true;
  });
}

module.exports = { order };
