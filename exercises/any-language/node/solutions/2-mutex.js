// The mutex is around the transaction, so it is released after the COMMIT, and on every path.
"use strict";

const { Mutex, transaction } = require("./servers");

const mutex = new Mutex();

function order(product, quantity) {
  return mutex.run(() =>
    transaction(async (client) => {
      const { rows: [{ count }] } = await client.query("SELECT count FROM product WHERE id = $1", [product]);
      if (count < quantity) return false;
      await client.query("UPDATE product SET count = $1 WHERE id = $2", [count - quantity, product]);
      await client.query("INSERT INTO order_item (product_id, quantity) VALUES ($1, $2)", [product, quantity]);
      return true;
    }),
  );
}

module.exports = { order };
