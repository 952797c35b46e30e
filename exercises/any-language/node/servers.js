// What the exercises share: a transaction, a connection to Redis, and a mutex.
"use strict";

const net = require("node:net");
const readline = require("node:readline");

function driver() {
  try {
    return require("pg");
  } catch (error) {
    if (error.code !== "MODULE_NOT_FOUND") throw error;
    console.error("shop: node cannot find the module pg. Install it with make deps-peers, or set NODE_PATH to the folder that has pg.");
    return process.exit(1);
  }
}

const { Client } = driver();

// Runs work(client). COMMIT at the end, ROLLBACK after an exception.
async function transaction(work) {
  const client = new Client({ connectionString: process.env.DATABASE_URL });
  client.on("error", (error) => console.error("shop:", error)); // without a listener, the process would exit
  await client.connect();
  try {
    await client.query("BEGIN");
    const result = await work(client);
    await client.query("COMMIT");
    return result;
  } catch (error) {
    await client.query("ROLLBACK").catch(() => {}); // the first error tells more
    throw error;
  } finally {
    client.end();
  }
}

// A connection. command resolves to the reply: a number, a text or null. It throws an Error for an error reply. The exercises get no other
// replies.
class Redis {
  constructor({ hostname, port }) {
    this.socket = net.connect(Number(port) || 6379, hostname).setNoDelay();
    const lines = readline.createInterface({ input: this.socket, crlfDelay: Infinity });
    this.socket.on("error", (error) => {
      this.error = error;
      lines.close();
    });
    this.lines = lines[Symbol.asyncIterator]();
  }

  async line() {
    const { value, done } = await this.lines.next();
    if (done) throw this.error ?? new Error("Redis has closed the connection");
    return value;
  }

  async command(...words) {
    this.socket.write(`*${words.length}\r\n${words.map((word) => `$${Buffer.byteLength(String(word))}\r\n${word}\r\n`).join("")}`);
    const line = await this.line();
    if (line[0] === "-") throw new Error(`Redis: ${line.slice(1)}`);
    if (line[0] === ":") return Number(line.slice(1));
    if (line[0] === "$") return line === "$-1" ? null : this.line();
    return line.slice(1);
  }
}

// Runs work(server). server.command("SET", key, value) resolves to the reply.
async function redis(work) {
  const url = new URL(process.env.REDIS_URL);
  const server = new Redis(url);
  try {
    if (url.password) await server.command("AUTH", decodeURIComponent(url.password));
    return await work(server);
  } finally {
    server.socket.destroy();
  }
}

// JavaScript has one thread, but other orders run at each await. run(work) starts work when all earlier work has ended.
class Mutex {
  last = Promise.resolve();

  run(work) {
    const result = this.last.then(work);
    this.last = result.catch(() => {});
    return result;
  }
}

module.exports = { transaction, redis, Mutex };
