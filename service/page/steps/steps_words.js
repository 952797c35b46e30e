// The step-through in words: what a step is, what happened, what the goal is, what the explorer found. Pure functions.

const STEPS = {
  lock: "take the lock",
  setnx: "SETNX: take the lock's key",
  expire: "EXPIRE: set the key's expiry",
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
  conflict: "had a conflict in every attempt",
  "lock-lost": "refused, because it had lost its lock",
  "outcome-unknown": "unknown whether it bought",
  "internal-error": "failed",
};

// STEPS: all steps of the order. COMMIT as the only one is a statement that does the whole order.
export const stepWords = (step, steps) => (steps.length === 1 && step === "commit" ? "the whole order: one statement" : (STEPS[step] ?? step));
export const outcomeWords = (outcome) => OUTCOMES[outcome] ?? outcome;
// The same in a word or two, where the whole text follows.
const SHORT_OUTCOMES = { conflict: "conflict", "lock-busy": "no lock", "lock-lost": "refused", "outcome-unknown": "unknown" };
export const shortOutcome = (outcome) => SHORT_OUTCOMES[outcome] ?? outcomeWords(outcome);

// The answer of the lock's server to a step, where it is not what the order expects.
const ANSWERS = {
  unlock: (value) => (value === null ? "no answer" : value === 0 ? "no longer its own" : ""),
  check: (value) => (value === 0 ? "no" : "yes"),
  get: (value) => (value === 0 ? "not its own" : "its own"),
  del: (value) => (value === 0 ? "nothing there" : ""),
};

// The result of a step, next to its words: "→ 1".
export function valueWords({ step, value }) {
  if (ANSWERS[step]) return ANSWERS[step](value);
  if (value === null) return "";
  if (step === "read") return `→ ${value}`;
  if (step === "write") return `= ${value}`;
  if (step === "take") return `→ ${value} left`;
  return `token ${value}`;
}

const SENTENCES = {
  setnx: "takes the lock's key",
  expire: "sets the key's expiry",
  insert: "inserts its order",
  commit: "commits",
  "commit-stock": "commits the stock",
  "commit-order": "commits its order",
};

// The steps that a server has answered, as sentences. KNOWN: who has the lock by then, the orders' tokens, and whose lock
// this very step has taken away.
const ANSWERED = {
  lock: ({ actor, value }) => `${actor} takes the lock${value === null ? "" : ` and gets token ${value}`}.`,
  fence: ({ actor, value }) => `${actor} registers its token on the row: the row's token is now ${value}.`,
  check: ({ actor, value }) => `${actor} asks the lock, which answers that ${actor} ${value === 0 ? "no longer has it" : "still has it"}.`,
  get: ({ actor, value }) => `${actor} reads the lock's key: it is ${value === 0 ? `not ${actor}'s any more` : `still ${actor}'s`}.`,
  del: ({ actor, value }, { victim }) =>
    value === 0 ? `${actor} deletes the lock's key, but the key is gone: the lock had ended.`
    : victim ? `${actor} deletes the lock's key, which is ${victim}'s.`
    : `${actor} deletes the lock's key.`,
  unlock: ({ actor, value }, { victim, holder, deleted }) =>
    value === null ? `${actor} asks the server to release the lock, and gets no answer.`
    : value === 1 && victim ? `${actor} releases the lock, which is ${victim}'s.`
    : value === 1 && deleted.has(actor) ? `${actor}'s release is done.`
    : value === 1 ? `${actor} releases the lock.`
    : holder !== null && holder !== actor ? `${actor}'s release finds that the lock is no longer ${actor}'s. The server leaves ${holder}'s lock alone.`
    : `${actor}'s release finds that the lock is no longer ${actor}'s. It changes nothing.`,
  refuse: ({ actor, value }, { tokens, reading }) =>
    `${actor}'s ${reading.has(actor) ? "write" : "token"} is refused: the row has ${value === null ? "a newer token" : `token ${value}`}, ${actor} has token ${tokens.get(actor)}.`,
};

// Why ACTOR starts again: what the database answered to its last statement that failed.
function conflict({ actor, sent = [] }) {
  const answers = sent.map(({ answer }) => answer ?? "");
  const code = answers.map((answer) => answer.match(/^ERROR (\w+)/)?.[1]).find(Boolean);
  if (code) return `The database ends ${actor}'s transaction (error ${code}), and ${actor} starts again.`;
  return answers.includes("UPDATE 0") ? `${actor}'s UPDATE finds no row of that version, so ${actor} starts again.` : `${actor} meets a conflict, and starts again.`;
}

function sentence(event, known) {
  const { actor, step, text, stock, value } = event;
  if (ANSWERED[step]) return ANSWERED[step](event, known);
  if (step === "read") return `${actor} reads ${value ?? "the stock"}.`;
  if (step === "write") return `${actor} writes ${value ?? "the stock"}.`;
  if (step === "take") return value === null ? `${actor} subtracts.` : `${actor} subtracts, and leaves ${value}.`;
  if (step === "end") return text === "" ? `${actor} has bought.` : `${actor} ends: ${outcomeWords(text)}.`;
  if (step.startsWith("commit")) return `${actor} ${SENTENCES[step]}: the others now see ${stock}.`;
  if (step === "waits") return `${actor} ${text}.`;
  if (step === "retry") return conflict(event);
  if (event.by) return `${actor}'s lock is gone: ${event.by} released it. ${actor} does not know.`;
  if (text === "its lock ends") return `${actor}'s lock ends. ${actor} does not know.`;
  if (text === "its place ends") return `${actor}'s place in the queue ends.`;
  if (text.startsWith("a server restarts")) return `A server of ${actor}'s lock restarts and loses the lock.`;
  if (text === "dies") return `${actor} crashes.`;
  return `${actor} ${SENTENCES[step] ?? text}.`;
}

// What is known after EVENT, changed in KNOWN.
function learn(known, { actor, step, text, value, by }) {
  if (step === "lock") known.holder = actor;
  if (step === "lock" || step === "fence") known.tokens.set(actor, value);
  if (step === "read") known.reading.add(actor);
  if (step === "del") known.deleted.add(actor);
  const released = (step === "del" || step === "unlock") && value === 1;
  if ((released || by || text === "its lock ends") && known.holder === actor) known.holder = null;
}

// One sentence for each event of TOLD, or "" where there is nothing to say. They tell what the servers answered.
export function sentences(told) {
  const known = { holder: null, victim: null, tokens: new Map(), reading: new Set(), deleted: new Set() };
  return told.map((event) => {
    known.victim = told.find(({ move, by }) => move === event.move && by === event.actor)?.actor ?? null;
    const text = sentence(event, known);
    learn(known, event);
    return text;
  });
}

const has = (row, what) => row.shown_by.split("+").includes(what);

// The one-line goal. QUANTITIES: what the orders want.
export function goal(row, stock, quantities) {
  const wanted = quantities.reduce((sum, one) => sum + one, 0);
  const more = quantities.every((one) => one === 1) ? `${stock + 1} of ${stock}` : `more than ${stock}`;
  const sell = wanted > stock ? `Make it sell ${more}.` : "Make stock and orders disagree.";
  if (row.guarantee === "safe") return wanted > stock ? `Try to make it sell ${more}.` : "Try to make stock and orders disagree.";
  if (has(row, "load")) return sell;
  if (has(row, "expire")) return `${sell} You can end a lease before its holder finishes.`;
  if (has(row, "crash") && !has(row, "second-process")) return "Crash an order at the wrong moment: leave a lock that no order releases.";
  return has(row, "crash") ? "Crash an order at the wrong moment: lose a unit." : `${sell} Both orders are in one process: is it possible?`;
}

// The fault that shows the strategy's flaw; for a safe strategy with fencing, the fault against which fencing protects.
export const faultsFor = (row) => (has(row, "load") ? "none" : has(row, "expire") || row.fence !== "none" ? "expire" : has(row, "crash") ? "crash" : "none");

const WITH = { none: "no fault", expire: "a lease that may end at any point", crash: "a crash at any point" };

export const faultWords = (faults) => WITH[faults] ?? faults;

// What a search covered, in words. SETTING: as schedule_text.js has it.
const scopeOf = ({ stock, quantities }, faults) => `${quantities.length} orders in one process, stock ${stock}, ${faultWords(faults)}`;

const shareOf = (coverage) => (coverage < 0.01 ? "less than 1 %" : `about ${Math.min(Math.round(coverage * 100), 99)} %`);

// What a search has found, with its scope.
export function found(search, setting) {
  const scope = scopeOf(setting, search.faults);
  const count = search.schedules.toLocaleString("en");
  const run = search.complete ? "All schedules were run." : `The search ran out of time after ${shareOf(search.coverage)} of all schedules.`;
  if (search.oversold > 0) return `${search.oversold.toLocaleString("en")} of ${count} schedules oversell: ${scope}. ${run} Here is the simplest.`;
  if (search.witness) return `0 of ${count} schedules oversell, but this one fails in another way: ${scope}. ${run}`;
  return `0 of ${count} schedules oversell: ${scope}. ${run}`;
}

// How it ended, as a title.
export function verdict(state) {
  if (state.oversold > 0) return `Sold ${state.database.sold} of ${state.stock}.`;
  if (state.ending?.stuck) return "Stuck: an order cannot go on.";
  if (state.bad) return "Stock and orders do not balance.";
  return `Correct: sold ${state.database.sold} of ${state.stock}.`;
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
  if (unseen) return `${name} reads ${read}: what ${unseen.order} wrote is not committed, so no other order sees it.`;
  if (read === before.stock && before.database.sold === 0) return `${name} reads ${read}: no order has committed yet.`;
  return `${name} reads ${read}: the value of the last COMMIT.`;
}

// Why a call failed, and what to do. SCHEDULE: what it was about.
export function problemWords(problem, schedule = "") {
  const name = schedule.split(" ").find(Boolean) ?? "this strategy";
  if (problem.name === "backend-unavailable")
    return `${name} cannot be stepped through, because ${problem.body.backend} does not answer. Start ${problem.body.backend} and reload the page, or choose another strategy.`;
  if (problem.name === "explorer-unavailable") return `The steps cannot be run. ${problem.message} Then reload the page.`;
  return problem.message;
}
