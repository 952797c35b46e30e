// The order stores its token in the row before it reads, and writes only if the row still has that token.
"use strict";

const { randomBytes } = require("node:crypto");
const { setTimeout: sleep } = require("node:timers/promises");
const { redis, transaction } = require("./servers");

const GRANT = "if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', 2000) then return redis.call('INCR', KEYS[2]) end return 0";
const RELEASE = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0";
const UPDATE = "UPDATE product SET count = $1 WHERE id = $2 AND fence = $3";

class LeaseLost extends Error {}

async function orderWith(token, product, quantity) {
  // commits, so that others see the token before this order reads
  await transaction(async (client) => {
    const { rowCount } = await client.query("UPDATE product SET fence = $1 WHERE id = $2 AND fence < $1", [token, product]);
    if (rowCount === 0) throw new LeaseLost();
  });
  return transaction(async (client) => {
    const { rows: [{ count }] } = await client.query("SELECT count FROM product WHERE id = $1", [product]);
    if (count < quantity) return false;
    const { rowCount } = await client.query(UPDATE, [count - quantity, product, token]);
    if (rowCount === 0) throw new LeaseLost();
    await client.query("INSERT INTO order_item (product_id, quantity) VALUES ($1, $2)", [product, quantity]);
    return true;
  });
}

function order(product, quantity) {
  const key = `lock:${product}`;
  const owner = randomBytes(8).toString("hex");
  return redis(async (server) => {
    let token;
    while ((token = await server.command("EVAL", GRANT, 2, key, `token:${product}`, owner)) === 0) await sleep(10);
    try {
      return await orderWith(token, product, quantity);
    } finally {
      await server.command("EVAL", RELEASE, 1, key, owner);
    }
  });
}

module.exports = { order };
