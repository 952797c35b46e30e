// A small checkout in Node, with the usual drivers: node:http and pg. PROTECTION chooses how it protects the stock.
// `loadtest check` shows which of these ways oversell.
//
//     NODE_PATH=/usr/share/nodejs loadtest check samples/own/node/shop.json --env PROTECTION=for-update
//
// PROTECTION    naive: reads the stock, then writes it; for-update: the same with SELECT … FOR UPDATE;
//               statement: one statement does all; decrement: UPDATE … WHERE count >= quantity, then the order;
//               synchronized: naive, one order after the other in this process; redis-lock: naive inside a lock in Redis;
//               redis-setnx: the same, but the release deletes the key of any owner;
//               redis-fenced: redis-lock, and the row refuses an order whose lock has ended (default: naive)
// POOL          connections to the database; 0: one for each request (default: 10)
// LEASE_MS      time to live of a lock in Redis, in ms (default: 10000)
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
const report = (error) => console.error(`shop: ${error.message}`);
if (pool) {
  pool.on("error", report); // of a connection that no order uses
  pool.on("connect", (client) => client.on("error", report)); // of one that an order uses: without a listener, the process would end
}

async function connect() {
  if (pool) return pool.connect();
  const client = new Client({ connectionString: DATABASE_URL });
  client.on("error", report);
  await client.connect();
  client.release = () => void client.end(); // without waiting: after an error the server may no longer answer
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

// The statement that reads also keeps the token, so no older one can write after it.
function readAndWriteFenced(product, quantity, fence) {
  return transaction(async (client) => {
    const { rows: [row] } = await client.query("UPDATE product SET fence = $1 WHERE id = $2 AND fence < $1 RETURNING count", [fence, product]);
    if (!row) throw new Error("the lock has ended, and another order had it");
    if (row.count < quantity) return false;
    await client.query("UPDATE product SET count = $1 WHERE id = $2", [row.count - quantity, product]);
    await client.query(INSERT, [product, quantity]);
    return true;
  });
}

// ---- locks in Redis -----------------------------------------------------------------------------

const LOCK = "if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return redis.call('INCR', KEYS[2]) end";
const UNLOCK = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end";

// A connection for each order. It reads integers, short strings, null and errors: these commands have no other replies.
class Redis {
  constructor() {
    const { hostname, port, password } = new URL(REDIS_URL);
    this.replies = []; // of commands that were sent, the oldest first
    let text = "";
    const fail = (error) => this.replies.splice(0).forEach(({ reject }) => reject(error));
    this.socket = net.connect(Number(port) || 6379, hostname).setNoDelay().setEncoding("utf8").setTimeout(10000, () => this.socket.destroy());
    this.socket.on("data", (part) => {
      const lines = (text + part).split("\r\n");
      text = lines.pop();
      for (const line of lines) {
        const { resolve, reject } = this.replies.shift();
        if (line[0] === "-") reject(new Error(line.slice(1)));
        else resolve(line === "$-1" ? null : line.slice(1));
      }
    });
    this.socket.on("error", fail);
    this.socket.on("close", () => fail(new Error("the connection to Redis has ended")));
    this.ready = password ? this.command("AUTH", decodeURIComponent(password)) : this.command("PING");
  }

  command(...words) {
    this.socket.write(`*${words.length}\r\n${words.map((word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`).join("")}`);
    return new Promise((resolve, reject) => this.replies.push({ resolve, reject }));
  }

  close() {
    this.socket.end();
  }
}

// Waits for the lock, and runs work(grant) with what acquire returned. release gets the owner's token.
async function inLock(product, acquire, release, work) {
  const key = `lock:${product}`;
  const token = randomBytes(8).toString("hex");
  const until = Date.now() + LOCK_WAIT_MS;
  const redis = new Redis();
  let grant;
  try {
    await redis.ready;
    while ((grant = await acquire(redis, key, token)) === null) {
      if (Date.now() > until) throw new Error("the lock was not free in time");
      await sleep(1);
    }
    try {
      return await work(grant);
    } finally {
      await release(redis, key, token);
    }
  } finally {
    redis.close();
  }
}

const setNx = (redis, key, token) => redis.command("SET", key, token, "NX", "PX", LEASE_MS);
// Each holder gets a larger number than the one before.
const lockWithFence = (redis, key, token) => redis.command("EVAL", LOCK, "2", key, `fence:${key}`, token, LEASE_MS);
const unlock = (redis, key, token) => redis.command("EVAL", UNLOCK, "1", key, token);
const deleteWhateverIsThere = (redis, key) => redis.command("DEL", key); // after the lease has ended, the lock of another request

const inRedisSetnx = (product, quantity) => inLock(product, setNx, deleteWhateverIsThere, () => readAndWrite(product, quantity));
const inRedisLock = (product, quantity) => inLock(product, setNx, unlock, () => readAndWrite(product, quantity));
const inFencedRedisLock = (product, quantity) => inLock(product, lockWithFence, unlock, (fence) => readAndWriteFenced(product, quantity, fence));

// ---- HTTP ---------------------------------------------------------------------------------------

const PROTECTIONS = {
  naive: readAndWrite,
  "for-update": forUpdate,
  statement,
  decrement,
  synchronized,
  "redis-lock": inRedisLock,
  "redis-setnx": inRedisSetnx,
  "redis-fenced": inFencedRedisLock,
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
  if (PROTECTION.startsWith("redis")) {
    const redis = new Redis();
    await redis.ready;
    redis.close();
  }
  await transaction((client) => client.query("SELECT 1"));
  server.listen(Number(PORT), "127.0.0.1");
}

function fail(error) {
  console.error(`shop: ${error.message}`);
  process.exit(1);
}

server.on("error", fail);
main().catch(fail);
