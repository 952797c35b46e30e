// A small checkout as many would write it in Node: node:http and pg. It protects the stock in the way that PROTECTION names, so
// that `loadtest check` can show which ways oversell.
//
//     NODE_PATH=/usr/share/nodejs loadtest check samples/own/node/shop.json --env PROTECTION=for-update
//
// PROTECTION    naive: reads the stock, then writes it; for-update: the same with SELECT … FOR UPDATE;
//               statement: one statement does all; decrement: UPDATE … WHERE count >= quantity, then the order;
//               synchronized: naive, one order after the other in this process; redis-lock: naive inside a lock in Redis;
//               redis-setnx: the same, but the unlock removes whatever lock is there (default: naive)
// POOL          connections to the database; 0: one for each request (default: 10)
// LEASE_MS      after which Redis ends a lock (default: 10000)
// DATABASE_URL, REDIS_URL, PORT   addresses; Redis is only needed for its locks
//
// POST /orders with {"product_id":1,"quantity":1} answers 201, or 409 if there are not enough units.
"use strict";

const http = require("node:http");
const net = require("node:net");
const { randomBytes } = require("node:crypto");
const { setTimeout: sleep } = require("node:timers/promises");
const { Client, Pool } = require("pg");

const { DATABASE_URL, REDIS_URL, PORT = "8081", PROTECTION = "naive", POOL = "10", LEASE_MS = "10000" } = process.env;
const LOCK_WAIT_MS = 30000;

// ---- connections --------------------------------------------------------------------------------

const pool = POOL === "0" ? null : new Pool({ connectionString: DATABASE_URL, max: Number(POOL) });
if (pool) pool.on("error", (error) => console.error(`shop: ${error.message}`)); // of a connection that no order uses

async function connect() {
  if (pool) return pool.connect();
  const client = new Client({ connectionString: DATABASE_URL });
  await client.connect();
  client.release = () => client.end();
  return client;
}

// Runs work(client) between BEGIN and COMMIT.
async function transaction(work) {
  const client = await connect();
  let broken;
  try {
    await client.query("BEGIN");
    const result = await work(client);
    await client.query("COMMIT");
    return result;
  } catch (error) {
    broken = error; // the connection is closed, which ends the transaction
    throw error;
  } finally {
    await client.release(broken);
  }
}

// ---- selling: each resolves to whether there were enough units ----------------------------------

const INSERT = "INSERT INTO order_item (product_id, quantity) VALUES ($1, $2)";

function readAndWrite(product, quantity, read = "SELECT count FROM product WHERE id = $1") {
  return transaction(async (client) => {
    const { rows: [row] } = await client.query(read, [product]);
    if (!row || row.count < quantity) return false;
    await client.query("UPDATE product SET count = $1 WHERE id = $2", [row.count - quantity, product]);
    await client.query(INSERT, [product, quantity]);
    return true;
  });
}

const forUpdate = (product, quantity) => readAndWrite(product, quantity, "SELECT count FROM product WHERE id = $1 FOR UPDATE");

function decrement(product, quantity) {
  return transaction(async (client) => {
    const taken = await client.query("UPDATE product SET count = count - $2 WHERE id = $1 AND count >= $2", [product, quantity]);
    if (taken.rowCount === 0) return false;
    await client.query(INSERT, [product, quantity]);
    return true;
  });
}

async function statement(product, quantity) {
  const client = await connect();
  try {
    const sold = await client.query(
      `WITH taken AS (UPDATE product SET count = count - $2 WHERE id = $1 AND count >= $2 RETURNING id)
       INSERT INTO order_item (product_id, quantity) SELECT id, $2 FROM taken`,
      [product, quantity],
    );
    return sold.rowCount === 1;
  } finally {
    await client.release();
  }
}

let last = Promise.resolve();

function synchronized(product, quantity) {
  const sale = last.then(() => readAndWrite(product, quantity));
  last = sale.catch(() => {});
  return sale;
}

// ---- locks in Redis -----------------------------------------------------------------------------

const replies = []; // of commands that were sent, the oldest first
let redis;

// Integers, short texts, null and errors are all that these commands are answered with.
function openRedis() {
  const { hostname, port, password } = new URL(REDIS_URL);
  redis = net.connect(Number(port) || 6379, hostname).setNoDelay().setEncoding("utf8");
  let text = "";
  redis.on("data", (part) => {
    const lines = (text + part).split("\r\n");
    text = lines.pop();
    for (const line of lines) {
      const { resolve, reject } = replies.shift();
      if (line[0] === "-") reject(new Error(line.slice(1)));
      else resolve(line === "$-1" ? null : line.slice(1));
    }
  });
  redis.on("error", (error) => replies.splice(0).forEach(({ reject }) => reject(error)));
  return password ? command("AUTH", decodeURIComponent(password)) : command("PING");
}

function command(...words) {
  redis.write(`*${words.length}\r\n${words.map((word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`).join("")}`);
  return new Promise((resolve, reject) => replies.push({ resolve, reject }));
}

const UNLOCK = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0";

async function inRedisLock(product, quantity) {
  const key = `lock:${product}`;
  const token = randomBytes(8).toString("hex");
  const until = Date.now() + LOCK_WAIT_MS;
  while ((await command("SET", key, token, "NX", "PX", LEASE_MS)) === null) {
    if (Date.now() > until) throw new Error("the lock was not free in time");
    await sleep(1);
  }
  try {
    return await readAndWrite(product, quantity);
  } finally {
    if (PROTECTION === "redis-lock") await command("EVAL", UNLOCK, "1", key, token);
    else await command("DEL", key); // after the lease has ended, this is the lock of another request
  }
}

// ---- HTTP ---------------------------------------------------------------------------------------

const PROTECTIONS = {
  naive: readAndWrite,
  "for-update": forUpdate,
  statement,
  decrement,
  synchronized,
  "redis-lock": inRedisLock,
  "redis-setnx": inRedisLock,
};

function answer(response, status, body) {
  response.writeHead(status, { "Content-Type": "application/json" });
  response.end(JSON.stringify(body));
}

function parse(text) {
  try {
    const { product_id: product, quantity } = JSON.parse(text);
    return [product, quantity].every((number) => Number.isSafeInteger(number) && number > 0) ? [product, quantity] : null;
  } catch {
    return null;
  }
}

async function order(text, response) {
  const wanted = parse(text);
  if (!wanted) return answer(response, 400, { error: "product_id and quantity must be positive integers" });
  try {
    if (await PROTECTIONS[PROTECTION](...wanted)) answer(response, 201, { product_id: wanted[0] });
    else answer(response, 409, { error: "sold out" });
  } catch (error) {
    console.error(`shop: ${error.message}`);
    answer(response, 503, { error: "the order failed" });
  }
}

const server = http.createServer((request, response) => {
  if (request.url === "/healthz") return answer(response, 200, {});
  if (request.method !== "POST" || request.url !== "/orders") return answer(response, 404, { error: "use POST /orders" });
  let text = "";
  request.setEncoding("utf8");
  request.on("data", (part) => (text.length < 65536 ? (text += part) : request.destroy()));
  request.on("end", () => order(text, response));
});

async function main() {
  if (!PROTECTIONS[PROTECTION]) throw new Error(`PROTECTION is "${PROTECTION}". Set it to one of: ${Object.keys(PROTECTIONS).join(", ")}.`);
  if (PROTECTION.startsWith("redis")) await openRedis();
  await transaction((client) => client.query("SELECT 1"));
  server.listen(Number(PORT), "127.0.0.1");
}

function fail(error) {
  console.error(`shop: ${error.message}`);
  process.exit(1);
}

server.on("error", fail);
main().catch(fail);
