// A lock that is a row, as ShedLock takes it: INSERT, and after a duplicate key UPDATE of a row that has ended. TRIES: it gives up after as many.
// THEN=sell: it sells without the lock then. HOLD=sale: it gives the lock back before the COMMIT of the sale.
const http = require('http'), { Pool } = require('pg'), crypto = require('crypto');
const pool = new Pool({ connectionString: process.env.DATABASE_URL, max: 10 }), tries = Number(process.env.TRIES);
const until = 60000;
async function take(owner) {
  try {
    await pool.query("INSERT INTO lock (name, until, owner) VALUES ('p1', $1, $2)", [new Date(Date.now() + until), owner]);
    return true;
  } catch (error) {
    if (error.code !== '23505') throw error;
  }
  return (await pool.query("UPDATE lock SET until = $1, owner = $2 WHERE name = 'p1' AND until <= $3", [new Date(Date.now() + until), owner, new Date()])).rowCount > 0;
}
const give = owner => pool.query("DELETE FROM lock WHERE name = 'p1' AND owner = $1", [owner]);
async function sell(before) {
  const c = await pool.connect();
  c.on('error', () => {});
  try {
    await c.query('BEGIN');
    const n = (await c.query('SELECT count FROM product WHERE id = 1')).rows[0].count;
    if (n >= 1) {
      await c.query('UPDATE product SET count = $1 WHERE id = 1', [n - 1]);
      await c.query('INSERT INTO sale DEFAULT VALUES');
    }
    await before();
    await c.query('COMMIT');
    return n >= 1 ? 201 : 409;
  } finally { c.release(); }
}
async function buy() {
  const owner = crypto.randomUUID(), early = process.env.HOLD === 'sale';
  for (let i = 1; !(await take(owner)); i++) {
    if (i === tries) return process.env.THEN === 'sell' ? sell(async () => {}) : 409;
    await new Promise(done => setTimeout(done, 5));
  }
  try { return await sell(early ? () => give(owner) : async () => {}); } finally { if (!early) await give(owner); }
}
http.createServer((q, s) => { q.resume(); q.on('end', async () => { s.writeHead(q.method === 'POST' ? await buy().catch(() => 500) : 200); s.end(); }); }).listen(process.env.PORT, '127.0.0.1');
