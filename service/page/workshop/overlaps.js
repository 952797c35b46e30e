// Traces made into orders with named moments, and the orders whose critical sections overlap.

const MOST_HOLDERS = 64; // who had the lock before an order, as far as it is looked for
const COMMITS = new Set(["commit", "commit-stock", "commit-order"]);
const KINDS = { read: "read", write: "write", take: "write", insert: "insert", commit: "commit", "commit-stock": "commit", "commit-order": "commit", lock: "lock", fence: "lock", unlock: "after", refuse: "after" };

// A shorter wait for a place among the workers is not drawn. In microseconds.
export const QUEUED_US = 1000;

// A step of PostgreSQL that took less came with the answer to the step before it: both were sent together. In microseconds.
const SAME_ANSWER_US = 50;

// A wait for a statement's row may be the way of the answer, if it is shorter. In microseconds.
const LEAST_WAIT_US = 200;

const WRITTEN = { write: "write", take: "write", insert: "insert" };
const STATEMENTS = new Set(Object.keys(WRITTEN));

// The part of a step that an order spent waiting for another one's lock in PostgreSQL: LOCK of a table or a number, else the row's.
const waitKind = (step) => (step === "lock" ? "wait" : "row");

// One order of a trace, times in microseconds of the machine's clock. A step's name says what was done when it ended.
export function orderOf(trace, instance) {
  const order = {
    key: `${instance}/${trace.request_id}`,
    instance,
    worker: trace.worker,
    id: trace.order_id,
    strategy: trace.strategy,
    outcome: trace.outcome,
    tries: trace.tries,
    fence: trace.fence,
    start: trace.started_us, // when a worker began with it
    first: Math.min(trace.received_us, trace.started_us), // when the service had it
    queued: trace.started_us - trace.received_us,
    end: trace.ended_us,
    steps: trace.steps,
    segments: [],
    quantity: trace.quantity,
    locksAt: trace.locks_at,
    locked: null, // the step LOCKS_AT, or what it was sent with: it takes a lock in PostgreSQL until COMMIT: {kind, step, from, to, value, rowWait}
    holds: [], // [from, to] while a lock outside the database is held
    together: null, // see putTogether
    seen: null, // the stock read last
    readBegin: null, // when it was read, or taken, last
    readEnd: null,
    commitBegin: null, // when it began to commit what it took, and when it was told so
    commitEnd: null,
  };
  let waits = false;
  let heldFrom = null;
  let think = 0;
  for (const { step, begin_us: begin, end_us: to, value, think_us: pause } of trace.steps) {
    const kind = step === "lock" && waits ? "wait" : (KINDS[step] ?? "lock");
    const from = Math.min(begin + think, to); // when its statement was sent
    if (think > 0) order.segments.push({ kind: "think", step: "think time", from: begin, to: from, value: null });
    think = pause ?? 0;
    const segment = { kind, step, from, to, value };
    order.segments.push(segment);
    if (step === trace.locks_at) order.locked = segment;
    waits = step === "wait";
    if (step === "lock") heldFrom ??= to;
    if (step === "unlock" && heldFrom !== null) {
      order.holds.push([heldFrom, to]);
      heldFrom = null;
    }
    if (step === "read") order.seen = value;
    if (step === "read" || step === "take") Object.assign(order, { readBegin: from, readEnd: to });
    if (!COMMITS.has(step)) continue;
    const { joined, parts } = joinSent(order.segments);
    if (parts.includes(order.locked)) order.locked = joined;
    if (order.commitEnd === null) Object.assign(order, { commitBegin: joined.from, commitEnd: to });
  }
  if (heldFrom !== null) order.holds.push([heldFrom, order.end]);
  const last = order.segments.at(-1)?.to ?? order.start;
  if (order.end > last) order.segments.push({ kind: "after", step: "answer", from: last, to: order.end, value: null });
  return order;
}

// Joins the COMMIT, which is the last of SEGMENTS, with what was sent together with it, since they have one answer: the INSERT, and behind a
// locked row the write as well. Returns {joined, parts}.
function joinSent(segments) {
  const commit = segments.pop();
  const sent = [commit];
  for (let last = segments.at(-1); last && STATEMENTS.has(last.step); last = segments.at(-1)) {
    const isTogether = last.step === "insert" ? sent.length === 1 : sent[0].to - sent[0].from < SAME_ANSWER_US;
    if (!isTogether) break;
    sent.unshift(segments.pop());
  }
  const names = sent.map(({ step }) => WRITTEN[step] ?? "COMMIT");
  const step = sent.length === 1 ? commit.step : `${names.slice(0, -1).join(", ")} and COMMIT, sent together`;
  segments.push({ ...commit, step, from: sent[0].from, value: sent.find(({ value }) => value !== null)?.value ?? null });
  return { joined: segments.at(-1), parts: sent };
}

// Did an order that asked for the lock at LOCKED wait for BEFORE, which had it first? For certain if BEFORE cannot have committed by then. A
// statement that is a whole order keeps the row until its COMMIT is on the disk, about when its answer comes.
function wasAwaited(before, locked) {
  const isWhole = before.locked.to === before.commitEnd;
  return before.commitBegin > locked.from || (isWhole && before.commitEnd - locked.from > LEAST_WAIT_US);
}

// Marks where orders waited for the lock that another order had. An order keeps the lock until its COMMIT, so if ONE got it before
// OTHER, and OTHER asked for it before ONE can have committed, then OTHER waited: from when it asked, or ONE got it, until ONE was told
// of its COMMIT. Each order gets SHOWN, its segments with these parts apart.
export function noteWaits(orders) {
  const holders = orders.filter(({ locked, commitEnd }) => locked && commitEnd !== null).sort((a, b) => a.locked.to - b.locked.to);
  for (const order of orders) Object.assign(order, { shown: order.segments, waited: null });
  holders.forEach((order, index) => {
    const { locked } = order;
    let wait = null;
    for (let i = index - 1; i >= 0 && index - i <= MOST_HOLDERS; i--) {
      const before = holders[i];
      if (!wasAwaited(before, locked)) continue;
      const from = before.locked.to < before.commitEnd ? Math.max(locked.from, before.locked.to) : locked.from;
      const to = Math.min(locked.to, before.commitEnd);
      if (to > from) wait = wait ? { from: Math.min(from, wait.from), to: Math.max(to, wait.to), for: wait.for } : { from, to, for: before };
    }
    if (!wait) return;
    order.waited = { kind: waitKind(locked.step), step: locked.step === "lock" ? "waited for the lock" : "waited for the row", value: null, ...wait };
    order.shown = order.segments.flatMap((segment) => (segment === locked
      ? [{ ...locked, to: wait.from, value: null, step: `${locked.step} sent` }, order.waited, { ...locked, from: wait.to }].filter(({ from, to }, part) => part > 0 || to > from)
      : [segment]));
  });
}

// A critical section is what lies between a read and the end of the transaction that relied on it. Where the database checks
// and subtracts in one statement there is none.
const isInside = (order) => order.outcome === "created" && order.seen !== null && order.commitEnd !== null;

// Did two orders overlap for certain? Clocks here are the client's: a COMMIT takes effect somewhere between its beginning
// and its end. Each had read before the other began to commit; or both read the same stock, one of them before the other's
// COMMIT had ended, and so without seeing what it took.
function overlap(a, b) {
  if (a.together === b.together) return false;
  if (a.readEnd < b.commitBegin && b.readEnd < a.commitBegin) return true;
  return a.seen === b.seen && a.readBegin < b.commitEnd && b.readBegin < a.commitEnd;
}

// Puts orders together that one worker placed in one transaction, a batch: it has one transaction at a time, so where its
// orders overlap they are one. Each order's TOGETHER is the array of them; ORDERS are sorted by their start.
export function putTogether(orders) {
  const last = new Map();
  for (const order of orders) {
    const lane = `${order.instance}/${order.worker}`;
    const batch = last.get(lane);
    order.together = batch && order.start < batch[0].end ? batch : [];
    order.together.push(order);
    last.set(lane, order.together);
  }
}

// For each order's key: { ranges: [[from, to]…], others: [order…], same: [order…] }; SAME read the same stock as well.
// WITNESS: ids of two orders of which the database itself knows that neither saw the other.
export function overlapsOf(orders, witness = []) {
  const found = new Map();
  const note = (order, other, range) => {
    const entry = found.get(order.key) ?? { ranges: [], others: [], same: [] };
    entry.ranges.push(range);
    entry.others.push(other);
    if (order.seen === other.seen) entry.same.push(other);
    found.set(order.key, entry);
  };
  const inside = orders.filter(isInside).sort((a, b) => a.readBegin - b.readBegin);
  inside.forEach((order, index) => {
    for (let i = index + 1; i < inside.length && inside[i].readBegin < order.commitEnd; i++) {
      const other = inside[i];
      if (!overlap(order, other) && !(witness.includes(order.id) && witness.includes(other.id))) continue;
      const to = Math.min(order.commitEnd, other.commitEnd);
      const range = [Math.min(Math.max(order.readEnd, other.readEnd), to), to];
      note(order, other, range);
      note(other, order, range);
    }
  });
  for (const entry of found.values()) entry.ranges = merge(entry.ranges);
  return found;
}

// Ranges put together where they touch.
export function merge(ranges) {
  const merged = [];
  for (const [from, to] of [...ranges].sort((a, b) => a[0] - b[0])) {
    const last = merged.at(-1);
    if (last && from <= last[1]) last[1] = Math.max(last[1], to);
    else merged.push([from, to]);
  }
  return merged;
}
