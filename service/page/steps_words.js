// The step-through in words: what a step is, what happened, what the goal is, what the explorer found. Pure functions.

const STEPS = {
  lock: "take the lock",
  setnx: "SETNX: take the lock's key",
  expire: "EXPIRE: give the key an end",
  fence: "register its token",
  read: "read the stock",
  check: "ask the lock: still mine?",
  write: "write the new stock",
  take: "check and subtract",
  insert: "insert the order",
  commit: "COMMIT",
  "commit-stock": "COMMIT the stock",
  "commit-order": "COMMIT the order",
  get: "GET the lock's key",
  del: "DEL the lock's key",
  unlock: "release the lock",
};

const OUTCOMES = {
  created: "bought",
  "sold-out": "sold out",
  "lock-busy": "got no lock in time",
  conflict: "lost every try",
  "lock-lost": "refused, for it had lost the lock",
  "outcome-unknown": "nobody knows",
  "internal-error": "failed",
};

export const stepWords = (step) => STEPS[step] ?? step;
export const outcomeWords = (outcome) => OUTCOMES[outcome] ?? outcome;

// What a step has come to, beside its words: "→ 1".
export function valueWords({ step, value }) {
  if (value === null) return "";
  if (step === "read") return `→ ${value}`;
  if (step === "write") return `= ${value}`;
  if (step === "take") return `→ ${value} left`;
  return `token ${value}`;
}

const SENTENCES = {
  lock: "takes the lock",
  setnx: "takes the lock's key",
  expire: "gives the key an end",
  fence: "registers its token on the row",
  check: "asks the lock, and is told that it still has it",
  insert: "inserts its order",
  commit: "commits",
  "commit-stock": "commits the stock",
  "commit-order": "commits its order",
  get: "reads the lock's key",
  del: "deletes the lock's key",
  unlock: "releases the lock",
  retry: "meets a conflict, and begins anew",
};

// One event as a sentence, or "" where there is nothing to say.
export function sentence({ actor, step, text, stock }) {
  if (step === "read") return `${actor} reads ${text.split(" ")[1]}.`;
  if (step === "write") return `${actor} writes ${text.split(" ")[1]}.`;
  if (step === "take") return `${actor} subtracts, and leaves ${text.split(" ").at(-1)}.`;
  if (step === "end") return text === "" ? `${actor} has bought.` : `${actor} is told: ${outcomeWords(text)}.`;
  if (step.startsWith("commit")) return `${actor} ${SENTENCES[step]}: the others now see ${stock}.`;
  if (step === "waits") return `${actor} ${text}.`;
  if (text === "its lock ends") return `${actor}'s lock ends under it.`;
  if (text === "its place ends") return `${actor}'s place in the queue ends.`;
  if (text.startsWith("a server restarts")) return `A server of ${actor}'s lock restarts, and has forgotten it.`;
  if (text === "dies") return `${actor} dies.`;
  return `${actor} ${SENTENCES[step] ?? text}.`;
}

const has = (row, what) => row.shown_by.split("+").includes(what);

// The one-line goal. QUANTITIES: what the orders want.
export function goal(row, stock, quantities) {
  const wanted = quantities.reduce((sum, one) => sum + one, 0);
  const more = quantities.every((one) => one === 1) ? `${stock + 1} of ${stock}` : `more than ${stock}`;
  const sell = wanted > stock ? `Make it sell ${more}.` : "Make the books wrong.";
  if (row.guarantee === "safe") return wanted > stock ? `Try to make it sell ${more}.` : "Try to make the books wrong.";
  if (has(row, "load")) return sell;
  if (has(row, "expire")) return `${sell} A lease may end under its holder.`;
  if (has(row, "crash") && !has(row, "second-process")) return "Crash an order at the wrong moment: leave a lock that nobody will release.";
  return has(row, "crash") ? "Crash an order at the wrong moment: lose a unit." : `${sell} Both orders are in one process: can it be done?`;
}

// What the explorer should be asked with, so that the row's flaw can show.
export const faultsFor = (row) => (has(row, "load") ? "none" : has(row, "expire") ? "expire" : has(row, "crash") ? "crash" : "none");

const WITH = { none: "", expire: ", with a lease that may end at any point", crash: ", with a crash at any point" };

// What a search has found.
export function found(search) {
  const count = search.schedules.toLocaleString("en");
  const played = search.complete ? `of ${count} schedules` : `of the first ${count} schedules (${Math.round(search.coverage * 100)} % of all)`;
  const faults = WITH[search.faults] ?? "";
  if (search.oversold > 0) return `${search.oversold.toLocaleString("en")} ${played} oversell${faults}. Here is the plainest.`;
  if (search.witness) return `0 ${played} oversell${faults}, but this one goes wrong.`;
  if (search.complete) return `Impossible: 0 of ${count} schedules oversell${faults}. Every one was played.`;
  return `None found: 0 ${played} oversell${faults}. That is no proof.`;
}

// How it ended, as a title.
export function verdict(state) {
  if (state.oversold > 0) return `Sold ${state.database.sold} of ${state.stock}. You did it.`;
  if (state.ending?.stuck) return "Stuck. You did it.";
  if (state.bad) return "The books are wrong. You did it.";
  return `All is right: sold ${state.database.sold} of ${state.stock}.`;
}

// What the order NAME might read next, as far as a learner can tell: the numbers to choose from.
export function readable(state, name) {
  const { left, uncommitted } = state.database;
  const others = state.orders.filter((one) => one.name !== name && one.begun).map(({ wants }) => left - wants);
  const numbers = [state.stock, left, ...uncommitted.map(({ stock }) => stock), ...others.filter((number) => number >= 0)];
  return [...new Set(numbers)].sort((a, b) => b - a);
}

// Why ORDER has read what it has, or waits. BEFORE and AFTER are the states around it.
export function whyRead(name, before, after, read) {
  const order = after.orders.find((one) => one.name === name);
  if (read === null) return `${name} ${order.reason ?? "has to wait"}.`;
  const unseen = before.database.uncommitted.find((one) => one.order !== name && one.stock !== read);
  if (unseen) return `${name} reads ${read}: what ${unseen.order} wrote is not committed, so nobody else sees it.`;
  if (read === before.stock && before.database.sold === 0) return `${name} reads ${read}: nothing has been committed yet.`;
  return `${name} reads ${read}: that is what was committed last.`;
}
