// Exercise 4: a lock that is a key in Redis. What happens to the key if its holder crashes? Which order may delete it?
"use strict";

const { setTimeout: sleep } = require("node:timers/promises");
const { redis, transaction } = require("./servers");

function readAndWrite(product, quantity) {
  return transaction(async (client) => {
    const { rows: [{ count }] } = await client.query("SELECT count FROM product WHERE id = $1", [product]);
    if (count < quantity) return false;
    await client.query("UPDATE product SET count = $1 WHERE id = $2", [count - quantity, product]);
    await client.query("INSERT INTO order_item (product_id, quantity) VALUES ($1, $2)", [product, quantity]);
    return true;
  });
}

function order(product, quantity) {
  const key = `lock:${product}`;
  return redis(async (server) => {
    while ((await server.command("SETNX", key, "locked")) === 0) await sleep(10);
    await server.command("PEXPIRE", key, 2000);
    try {
      return await readAndWrite(product, quantity);
    } finally {
      await server.command("DEL", key);
    }
  });
}

module.exports = { order };
