// The strategy that is set, told as words and as a picture, and its settings.
import { call } from "../shared/api.js";
import { alertUser, byId, make, plural, setText, tell } from "../shared/dom.js";

export const GUARANTEES = {
  unsafe: { sign: "✗", short: "unsafe", title: "Unsafe", means: "can oversell" },
  "one-process": { sign: "1", short: "one process", title: "Safe in one process", means: "a second process sells the same stock again" },
  "while-lease-holds": { sign: "◔", short: "lease", title: "Safe while its lease lasts", means: "fails if the lease or session ends before its holder finishes" },
  safe: { sign: "✓", short: "safe", title: "Safe", means: "no sequence of steps oversells" },
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

const table = new Map();
let current = null;

export const strategyNamed = (name) => table.get(name);
export const currentStrategy = () => current;
export const allStrategies = () => [...table.values()];
export const kindOf = (strategy) => strategy?.stock_kind ?? "counter";

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

// What there is to say about a row, as elements.
export function detailsOf(row) {
  const shownBy = row.shown_by.split("+").map((what) => SHOWN_BY[what]).filter(Boolean);
  return [
    make("p", { class: "guarantee" }, guaranteeBadge(row.guarantee), ` ${GUARANTEES[row.guarantee].means}`),
    make("p", { class: "title" }, row.title),
    make("p", { class: "why" }, row.why),
    anatomy(row),
    ...(shownBy.length > 0 ? [make("p", { class: "quiet" }, `What shows the flaw: ${shownBy.join(", or ")}.`)] : []),
    ...(row.max_tries > 1 ? [make("p", { class: "quiet" }, `It makes up to ${plural(row.max_tries, "attempt", "attempts")}.`)] : []),
    ...(row.lock ? lockProperties(row.lock) : []),
    ...(row.explorable ? [make("p", {}, make("a", { href: `/steps#${row.name}+s=1+q=1,1`, class: "steps-link" }, "Run two orders step by step"))] : []),
    ...(row.available ? [] : [make("p", { class: "notice" }, whyAway(row))]),
  ];
}

function show(row) {
  setText(byId("strategy-name"), row.name);
  byId("strategy-row").replaceChildren(...detailsOf(row));
}

// Why a strategy cannot be used, and what to do.
export const whyAway = (row) => `${row.name} cannot be used: ${row.reason ?? "its server does not answer"}. Start that server, or choose another strategy.`;

// Servers start and stop, so the page asks which strategies can be used whenever the user is about to choose one.
export async function refreshStrategies() {
  for (const row of (await call("GET", "/strategies")).strategies) table.set(row.name, row);
  if (current && table.get(current.name).available !== current.available) {
    current = table.get(current.name);
    show(current);
  }
}

// What the service says is set: shown, unless the user is changing it just now.
export function showSettings(settings) {
  if (settings.name !== current?.name && table.has(settings.name)) {
    current = table.get(settings.name);
    show(current);
  }
  for (const [id, member] of [["think", "think_ms"], ["wait", "lock_wait_ms"], ["ttl", "lock_ttl_ms"]])
    if (document.activeElement !== byId(id)) byId(id).value = settings[member];
}

// Changes the settings of the shop's product, or the common ones of all products without their own; throws as call does.
export async function changeSettings(shop, change) {
  const settings = await call("PUT", shop.own ? `/strategy?product_id=${shop.product}` : "/strategy", change);
  showSettings(settings);
  return settings;
}

// ON_SWITCH is called when the user has switched to another strategy, and the service has. Throws as call does.
export async function switchStrategy(shop, name, onSwitch) {
  const settings = await changeSettings(shop, { name });
  tell(`Strategy: ${settings.name}`);
  await onSwitch();
}

export async function setUpStrategies(shop) {
  for (const row of (await call("GET", "/strategies")).strategies) table.set(row.name, row);
  showSettings(await call("GET", `/strategy?product_id=${shop.product}`));
  for (const [id, member] of [["think", "think_ms"], ["wait", "lock_wait_ms"], ["ttl", "lock_ttl_ms"]])
    byId(id).addEventListener("change", async (event) => {
      if (!event.target.reportValidity() || event.target.value === "") return;
      try {
        await changeSettings(shop, { name: current.name, [member]: event.target.valueAsNumber });
      } catch (problem) {
        alertUser(`The setting was not changed. ${problem.message}`);
      }
    });
}
