// One command sets the key, its owner and its expiry. A script compares the owner and deletes the key, on every path.
"use strict";

const { randomBytes } = require("node:crypto");
const { setTimeout: sleep } = require("node:timers/promises");
const { redis, transaction } = require("./servers");

const RELEASE = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0";

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
  const owner = randomBytes(8).toString("hex");
  return redis(async (server) => {
    while ((await server.command("SET", key, owner, "NX", "PX", 2000)) === null) await sleep(10);
    try {
      return await readAndWrite(product, quantity);
    } finally {
      await server.command("EVAL", RELEASE, 1, key, owner);
    }
  });
}

module.exports = { order };
