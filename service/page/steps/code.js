// The same flow as programmers write it in Java and in Python, as an illustration: one line for each step. Pure functions.

const READ = "SELECT count FROM product WHERE id = ?";
const SOLD_OUT = { java: "if (stock < n) throw new SoldOut();", python: "if stock < n: raise SoldOut" };

const query = (sql, ...values) => ({
  java: [`int stock = jdbc.queryForObject("${sql}", Integer.class, ${values.join(", ")});`, SOLD_OUT.java],
  python: [`stock = db.execute("${sql.replaceAll("?", "%s")}", [${values.join(", ")}]).fetchone()[0]`, SOLD_OUT.python],
});

// REFUSAL: what is thrown if no row was changed.
const update = (sql, values, refusal) => ({
  java: [`${refusal ? "int rows = " : ""}jdbc.update("${sql}", ${values.join(", ")});`, ...(refusal ? [`if (rows == 0) throw new ${refusal}();`] : [])],
  python: [`${refusal ? "rows = " : ""}db.execute("${sql.replaceAll("?", "%s")}", [${values.join(", ")}])${refusal ? ".rowcount" : ""}`, ...(refusal ? [`if rows == 0: raise ${refusal}`] : [])],
});

const SET = "UPDATE product SET count = ? WHERE id = ?";
const SUBTRACT = "UPDATE product SET count = count - ? WHERE id = ?";

const VERSIONED = {
  java: ['Product was = jdbc.queryForObject("SELECT count, version FROM product WHERE id = ?", productMapper, id);', "int stock = was.count(), version = was.version();", SOLD_OUT.java],
  python: ['stock, version = db.execute("SELECT count, version FROM product WHERE id = %s", [id]).fetchone()', SOLD_OUT.python],
};

// How a way to take stock reads and writes, by the start of its name in GET /strategies.
const STOCK = [
  [/^select-for-update/, { read: query(`${READ} FOR UPDATE`, "id"), write: update(SET, ["stock - n", "id"]) }],
  [/^check-then-decrement/, { read: query(READ, "id"), write: update(SUBTRACT, ["n", "id"]) }],
  [/^guarded-update-of-one-bucket/, { take: update("UPDATE bucket SET count = count - ? WHERE product_id = ? AND bucket = ? AND count >= ?", ["n", "id", "k", "n"], "SoldOut") }],
  [/^guarded-update/, { take: update(`${SUBTRACT} AND count >= ?`, ["n", "id", "n"], "SoldOut") }],
  [/^delete-units/, { take: update("DELETE FROM unit WHERE id IN (SELECT id FROM unit WHERE product_id = ? LIMIT ? FOR UPDATE SKIP LOCKED)", ["id", "n"], "SoldOut") }],
  [/^write-if-version/, { read: VERSIONED, write: update("UPDATE product SET count = ?, version = version + 1 WHERE id = ? AND version = ?", ["stock - n", "id", "version"], "Conflict") }],
  [/^read-then-write-if-fence/, { read: query(READ, "id"), write: update("UPDATE product SET count = ? WHERE id = ? AND fence = ?", ["stock - n", "id", "token"], "LockLost") }],
  [/^read-then-write-if-no-newer/, { read: query(READ, "id"), write: update("UPDATE product SET count = ?, fence = ? WHERE id = ? AND fence <= ?", ["stock - n", "token", "id", "token"], "LockLost") }],
  [/^lock-table/, { lock: update("LOCK TABLE product IN EXCLUSIVE MODE", []), read: query(READ, "id"), write: update(SET, ["stock - n", "id"]) }],
  [/^advisory-lock/, { lock: update("SELECT pg_advisory_xact_lock(?)", ["id"]), read: query(READ, "id"), write: update(SET, ["stock - n", "id"]) }],
  [/./, { read: query(READ, "id"), write: update(SET, ["stock - n", "id"]) }],
];

const both = (java, python) => ({ java: [java], python: [python] });
const ATOMIC_RELEASE = both('redis.execute(COMPARE_AND_DELETE, List.of(key), me);', 'redis.eval(COMPARE_AND_DELETE, 1, key, me)');
const SET_NX_PX = both("boolean mine = redis.opsForValue().setIfAbsent(key, me, Duration.ofSeconds(30));", "mine = redis.set(key, me, nx=True, px=30000)");
const lockAndUnlock = (java, python) => ({ lock: both(`${java}.lock();`, `${python}.acquire()`), unlock: both(`${java}.unlock();`, `${python}.release()`) });

// How a lock is taken and released, by its name; and where its fencing token comes from, if the lock does not return it.
const LOCKS = [
  [/^mutex-wrong/, { lock: both("synchronized (new Object()) {  // another object each time", "lock = Lock(); lock.acquire()  # another object each time"), unlock: both("}", "lock.release()") }],
  [/^reentrant-mutex/, lockAndUnlock("reentrantLock", "rlock")],
  [/^mutex/, { lock: both("synchronized (lock) {", "lock.acquire()"), unlock: both("}", "lock.release()") }],
  [/^lock-table/, lockAndUnlock("new JdbcLockRegistry(repository).obtain(key)", "lock_table.lock(key)")],
  [/^shedlock/, { lock: both("Optional<SimpleLock> held = lockProvider.lock(configuration);", "held = lock_provider.lock(configuration)"), unlock: both("held.get().unlock();", "held.unlock()") }],
  [/^lock-row/, { lock: both('other.queryForMap("SELECT * FROM lock_row WHERE name = ? FOR UPDATE", key);', 'other.execute("SELECT * FROM lock_row WHERE name = %s FOR UPDATE", [key])'), unlock: both("other.commit();", "other.commit()") }],
  [/^redis-registry/, lockAndUnlock("new RedisLockRegistry(factory, region).obtain(key)", "registry.obtain(key)")],
  [/^redis-reentrant/, lockAndUnlock("redisson.getLock(key)", "redis.lock(key)")],
  [/^redis-fair/, lockAndUnlock("redisson.getFairLock(key)", "fair_lock(key)")],
  [/^redisson-redlock/, lockAndUnlock("redisson.getMultiLock(lock1, lock2, lock3, lock4, lock5)", "multi_lock(locks)")],
  [/^redlock/, lockAndUnlock("redlock(servers, key)", "Redlock(key, masters=servers)")],
  [/^redis-setnx/, { setnx: both("boolean mine = redis.opsForValue().setIfAbsent(key, me);", "mine = redis.setnx(key, me)"), expire: both("redis.expire(key, Duration.ofSeconds(30));", "redis.expire(key, 30)") }],
  [/^redis-(del|get-del)/, { lock: SET_NX_PX }],
  [/^redis-fenced/, { lock: both("Long token = redisson.getFencedLock(key).lockAndGetToken();", "token = redis.eval(SET_IF_FREE_AND_INCR_TOKEN, 2, key, token_key, me, 30000)"), unlock: both("redisson.getFencedLock(key).unlock();", "redis.eval(COMPARE_AND_DELETE, 1, key, me)") }],
  [/^redis/, { lock: SET_NX_PX, check: both("if (!me.equals(redis.opsForValue().get(key))) throw new LockLost();", "if redis.get(key) != me: raise LockLost"), unlock: ATOMIC_RELEASE }],
  [/^(zookeeper|curator)/, { lock: both("InterProcessMutex mutex = new InterProcessMutex(curator, path); mutex.acquire();", "lock = kazoo.Lock(path); lock.acquire()"), unlock: both("mutex.release();", "lock.release()"), token: both("long token = curator.checkExists().forPath(myNode).getCzxid();", "token = client.exists(my_node).czxid") }],
  [/^etcd/, { lock: both("client.getLockClient().lock(key, lease).get();", "lock = etcd.lock(key, ttl=30); lock.acquire()"), unlock: both("client.getLockClient().unlock(key).get();", "lock.release()"), token: both("long token = kv.get(myKey).get().getKvs().get(0).getCreateRevision();", "token = etcd.get(my_key)[1].create_revision") }],
];

const COMMON = {
  fence: update("UPDATE product SET fence = ? WHERE id = ? AND fence < ?", ["token", "id", "token"], "LockLost"),
  get: both("String owner = redis.opsForValue().get(key);", "owner = redis.get(key)"),
  del: both("redis.delete(key);", "redis.delete(key)"),
  insert: both("orders.save(new Order(id, n));", "orders.insert(id, n)"),
  commit: both("transaction.commit();", "db.commit()"),
  "commit-stock": both("stockTransaction.commit();", "db.commit()"),
  "commit-order": both("orderTransaction.commit();", "db.commit()"),
};

const ONE_STATEMENT = {
  java: ['int rows = jdbc.update("WITH taken AS (UPDATE product SET count = count - ?', '    WHERE id = ? AND count >= ? RETURNING id) INSERT INTO orders … SELECT … FROM taken");', "if (rows == 0) throw new SoldOut();"],
  python: ['rows = db.execute("""WITH taken AS (UPDATE product SET count = count - %s', '    WHERE id = %s AND count >= %s RETURNING id) INSERT INTO orders … SELECT … FROM taken""").rowcount', "if rows == 0: raise SoldOut"],
};

const chosen = (table, name) => table.find(([pattern]) => pattern.test(name))?.[1] ?? {};

// The lines of ROW (a row of GET /strategies) whose orders make STEPS, in LANGUAGE ("java" or "python"): [{step, text}].
export function codeOf(row, steps, language) {
  if (steps.join() === "commit") return ONE_STATEMENT[language].map((text) => ({ step: "commit", text }));
  const parts = { ...COMMON, ...chosen(STOCK, row.stock), ...(row.lock ? chosen(LOCKS, row.lock.name) : {}) };
  const linesOf = (step) => [...((step === "fence" && parts.token?.[language]) || []), ...(parts[step]?.[language] ?? [])];
  return steps.flatMap((step) => linesOf(step).map((text) => ({ step, text })));
}
