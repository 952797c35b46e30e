// What the pages say about a strategy: its guarantee, a picture of its steps, the properties of its lock, and why it cannot be used.
import { make, plural } from "./dom.js";

export const GUARANTEES = {
  unsafe: { sign: "✗", short: "unsafe", title: "Unsafe", means: "can oversell" },
  "one-process": { sign: "1", short: "one process", title: "Safe in one process", means: "a second process sells the same stock again" },
  "while-lease-holds": { sign: "◔", short: "lease", title: "Safe while its lease lasts", means: "fails if the lease or session ends before its holder finishes" },
  safe: { sign: "✓", short: "safe", title: "Safe", means: "no test has found an oversell, also with faults; a test is not a proof" },
};

const SHOWN_BY = {
  load: "load",
  "second-process": "a second process",
  expire: "a lease that ends before its holder finishes",
  crash: "a crash",
};

// What taking the stock does, in the words of the picture; a policy that is not here is shown by its own name.
const STEPS = {
  "read-write": ["read", "write"],
  "delete-units-not-locked": ["DELETE units … SKIP LOCKED"],
  "guarded-update-of-one-bucket": ["UPDATE a bucket WHERE count ≥ n"],
  "check-then-decrement": ["read", "count − n"],
  "check-then-decrement, CHECK (count >= 0)": ["read", "count − n, CHECK ≥ 0"],
  "guarded-update": ["UPDATE … WHERE count ≥ n"],
  "select-for-update-then-write": ["SELECT … FOR UPDATE", "write"],
  "write-if-version-unchanged": ["read", "write if version is the same"],
  "lock-table-then-read-write": ["LOCK TABLE", "read", "write"],
  "advisory-lock-then-read-write": ["advisory lock", "read", "write"],
  "read-ask-the-lock-write": ["read", "still mine?", "write"],
  "read-then-write-if-no-newer-fence": ["read", "write if no newer token"],
  "read-then-write-if-fence-is-ours": ["read", "write if token is ours"],
};

const PROPERTIES = [
  ["reentrant", "reentrant", "not reentrant"],
  ["blocking", "waiters are woken", "waiters poll"],
  ["fair", "first come, first served", "in no fixed sequence"],
  ["leased", "leased: expires", "no lease"],
  ["renewed", "renewed while held", "not renewed"],
  ["fenced", "gives a fencing token", "no fencing token"],
  ["survives_crash", "free again after a crash", "stuck after a crash"],
  ["survives_minority", "survives a minority of servers", null],
];

export function guaranteeBadge(guarantee, length = "title") {
  const { sign, title, [length]: text } = GUARANTEES[guarantee];
  return make("span", { class: `badge is-${guarantee}`, title }, make("span", { "aria-hidden": "true" }, sign), ` ${text}`);
}

const chip = (text) => make("span", { class: "step" }, text);
const box = (kind, label, ...inside) =>
  make("div", { class: `box is-${kind}` }, make("span", { class: "box-label" }, label), ...inside);

// Where the lock lies around the transaction: two boxes, one in the other.
function anatomy(row) {
  const isolation = row.isolation === "read-committed" ? "transaction" : `transaction, ${row.isolation}`;
  const lockName = row.lock ? `lock: ${row.lock.name}` : "";
  const stock = (STEPS[row.stock] ?? [row.stock === "own" ? "its own steps" : row.stock]).map(chip);
  const fence = row.fence === "before-read" ? [chip("register token")] : [];
  const insert = row.stock === "own" ? [] : [chip("insert order")];
  const commit = () => chip("COMMIT");
  const whole = () => box("transaction", isolation, ...stock, ...insert, commit());
  let parts;
  if (row.scope === "two-transactions") {
    const first = box("transaction", isolation, ...stock, commit());
    const second = box("transaction", isolation, ...insert, commit());
    const locked = row.span === "around-transaction-twice" ? box("lock", `${lockName}, taken twice`, first) : first;
    parts = [locked, second];
  } else if (row.span === "inside-transaction") {
    parts = [box("transaction", isolation, box("lock", lockName, ...stock, ...insert), commit())];
  } else if (row.span === "none") {
    parts = [whole()];
  } else {
    parts = [box("lock", lockName, ...fence, whole())];
  }
  return make("div", { class: "anatomy", role: "group", "aria-label": "What an order does, in order" }, ...parts);
}

function lockProperties(lock) {
  const items = PROPERTIES.map(([name, yes, no]) => [lock[name], lock[name] ? yes : no])
    .filter(([, text]) => text !== null)
    .map(([has, text]) =>
      make("li", { class: has ? "has" : "has-not" }, make("span", { "aria-hidden": "true" }, has ? "✓ " : "– "), text),
    );
  const ends = lock.ended_by.length > 0 ? `It can end before its holder finishes, after: ${lock.ended_by.join(", ")}.` : "";
  return [
    make("p", { class: "quiet" }, `${lock.mechanism}${lock.server ? `, kept by ${lock.server}` : ", in the process"}. ${ends}`),
    make("ul", { class: "properties" }, ...items),
  ];
}

// What there is to say about a row, as elements. LINKS: with a link to the step-through.
export function detailsOf(row, links = true) {
  const shownBy = row.shown_by.split("+").map((what) => SHOWN_BY[what]).filter(Boolean);
  return [
    make("p", { class: "guarantee" }, guaranteeBadge(row.guarantee), ` ${GUARANTEES[row.guarantee].means}`),
    make("p", { class: "title" }, row.title),
    make("p", { class: "why" }, row.why),
    anatomy(row),
    ...(shownBy.length > 0 ? [make("p", { class: "quiet" }, `What shows the flaw: ${shownBy.join(", or ")}.`)] : []),
    ...(row.max_tries > 1 ? [make("p", { class: "quiet" }, `It makes up to ${plural(row.max_tries, "attempt", "attempts")}.`)] : []),
    ...(row.lock ? lockProperties(row.lock) : []),
    ...(links && row.explorable ? [make("p", {}, make("a", { href: `/steps#${row.name}+s=1+q=1,1`, class: "steps-link" }, "Run two orders step by step"))] : []),
    ...(row.available ? [] : [make("p", { class: "notice" }, whyAway(row))]),
  ];
}

// Why a strategy cannot be used, and what to do.
export const whyAway = (row) => `${row.name} cannot be used: ${row.reason ?? "its server does not answer"}. Start that server, or choose another strategy.`;
