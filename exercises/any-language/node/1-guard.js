// Exercise 1: the program checks the stock, then the database subtracts. Change the order so that the UPDATE does both.
"use strict";

const { transaction } = require("./servers");

function order(product, quantity) {
  return transaction(async (client) => {
    const { rows: [{ count }] } = await client.query("SELECT count FROM product WHERE id = $1", [product]);
    if (count < quantity) return false;
    await client.query("UPDATE product SET count = count - $1 WHERE id = $2", [quantity, product]);
    await client.query("INSERT INTO order_item (product_id, quantity) VALUES ($1, $2)", [product, quantity]);
    return true;
  });
}

module.exports = { order };
