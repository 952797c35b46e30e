// The lock, the reads and the writes use one client of the pool; SAFE=0 reads with another client, before the lock.
const http = require('http'), { Pool } = require('pg');
const pool = new Pool({ connectionString: process.env.DATABASE_URL, max: 10 });
async function buy() {
  const read = 'SELECT count FROM product WHERE id = 1', early = process.env.SAFE === '0' ? (await pool.query(read)).rows[0].count : null;
  const c = await pool.connect();
  try {
    await c.query('BEGIN');
    const n = (await c.query(read + ' FOR UPDATE')).rows[0].count;
    const ok = (early === null ? n : early) >= 1;
    if (ok) { await c.query('UPDATE product SET count = count - 1 WHERE id = 1'); await c.query('INSERT INTO sale DEFAULT VALUES'); }
    await c.query('COMMIT');
    return ok ? 201 : 409;
  } finally { c.release(); }
}
http.createServer((q, s) => { q.resume(); q.on('end', async () => { s.writeHead(q.method === 'POST' ? await buy().catch(() => 500) : 200); s.end(); }); }).listen(process.env.PORT, '127.0.0.1');
