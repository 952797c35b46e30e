// Prepares the requests of an order for display: assigns each to a step, and shortens it. Pure functions.

const SHORT_ID = 4; // last characters of a random value that are kept
const SHORT_TEXT = 170;

const SQL_BOOKKEEPING = [
  /, (price|stock_kind|clock_timestamp\(\)|pg_current_snapshot\(\)|'' AS snapshot|stock_epoch|pg_current_xact_id\(\))(?=[ ,])/g,
  /, refuse_negative = false/g,
  /, updated_at = clock_timestamp\(\)/g,
  /, updated_by = \$\d+/g,
  / AND stock_epoch = \$\d+/g,
  / AND stock_kind = '\w+'/g,
  / RETURNING [^)]*(\)[^)]*)*$/,
  /::\w+(\[\])?/g,
];

// The statements that insert an order tell a reader nothing but that they do.
function shortStatement(text) {
  if (text.startsWith("WITH o AS ( INSERT")) return "INSERT INTO orders …, order_item …";
  const taking = text.match(/^WITH taken AS \( (UPDATE .*?) RETURNING/);
  if (taking) return `${shortStatement(taking[1])}; if one row: INSERT INTO orders …, order_item …`;
  return SQL_BOOKKEEPING.reduce((short, pattern) => short.replace(pattern, ""), text).replace(/^BEGIN ISOLATION LEVEL READ COMMITTED$/, "BEGIN");
}

const quoted = (value) => (value === null ? "NULL" : /^-?\d+(\.\d+)?$/.test(value) ? value : `'${value}'`);
const filled = (text, values) => text.replace(/\$(\d+)/g, (name, number) => (values.length >= number ? quoted(values[number - 1]) : name));

// A script of Redis with its keys and arguments in place. VALUES: "KEYS[1] = …", "ARGV[1] = …".
function filledScript(text, values) {
  const named = new Map(values.map((value) => value.split(" = ")).map(([name, ...rest]) => [name, rest.join(" = ")]));
  return text.replace(/^EVALSHA /, "script: ").replace(/\b(?:KEYS|ARGV)\[\d+\]/g, (name) => (named.has(name) ? quoted(named.get(name)) : name));
}

// TEXT without what every key has in common. PRODUCT: the product's number in the requests, which is shown as 1.
export function shortNames(text, product) {
  return text
    .replaceAll(String(product), "1")
    .replace(/\/?oversell-explore[:/](locks?[:/])?/g, (prefix) => (prefix.startsWith("/") ? "/" : ""))
    .replace(/_c_[0-9a-f-]{36}-/g, "")
    .replace(/\b[0-9a-f]{12,}\b/g, (id) => `…${id.slice(-SHORT_ID)}`);
}

// A request in short, with its values in place.
export function shortRequest({ to, text, values }, product) {
  const short = shortNames(to === "postgresql" ? filled(shortStatement(text), values) : filledScript(text, values), product);
  return short.length > SHORT_TEXT ? `${short.slice(0, SHORT_TEXT - 1)}…` : short;
}

// A request as it was sent.
export const wholeRequest = ({ text, values }) => (values.length > 0 ? `${text}   [${values.map(quoted).join(", ")}]` : text);

// The answer in short. The statement that does the whole order answers with the amount, which is null if it took nothing, and with the
// stock before it.
export function shortAnswer({ answer }, product) {
  if (answer === null) return "no answer yet";
  return shortNames(answer, product).replace(/^1 row: amount null, stock (\d+)$/, "too few units: stock $1").replace(/^(1 row: amount [\d.]+), stock \d+$/, "$1");
}

// What happens to an order's transaction by a request: "begins", "ends", or null.
export const edge = ({ connection, text }) =>
  connection === "lock" ? null : text.startsWith("BEGIN") ? "begins" : /^(COMMIT|ROLLBACK)/.test(text) ? "ends" : null;

// Returns the step below which the requests of EVENTS[INDEX] are shown. For an event of a step, that is the step. For a wait that has ended,
// it is the step that the order did next. For a refusal, or for a wait that goes on or was given up, it is the first step that is not done.
// Other requests stay at LAST, the step of the requests before them.
function placeOf(events, index, order, steps, last) {
  const { step } = events[index];
  if (steps.includes(step)) return step;
  const undone = steps.find((one) => !order.did.some((did) => did.step === one));
  if (step === "refuse") return undone ?? last; // its release may be next
  if (step !== "waits" && step !== "wait") return last ?? steps[0];
  const end = events.slice(index + 1).find((later) => later.step === "refuse" || steps.includes(later.step));
  return (end && end.step !== "refuse" ? end.step : end ? undone : (order.next ?? undone)) ?? last;
}

// Whether the server did not do what the order wants.
export const hasFailed = ({ answer }) => answer !== null && /^(UPDATE 0|ERROR|nil$|0$)/.test(answer);

// The requests of the order NAME that made it start again, oldest first.
export function failedTries(state, name) {
  const mine = state.told.filter(({ actor }) => actor === name);
  const now = mine.findLastIndex(({ step }) => step === "retry");
  return mine.slice(0, now + 1).flatMap(({ sent = [] }) => sent.filter(hasFailed)).map((request) => ({ request, inTransaction: false }));
}

// The requests of the order NAME in its present try, by step: Map of step → [{request, inTransaction}]. A statement that waited stands
// there once, with its answer as soon as that has come.
export function requestsOf(state, name) {
  const order = state.orders.find((one) => one.name === name);
  const mine = state.told.filter(({ actor }) => actor === name);
  const placed = new Map();
  let last = null;
  let inTransaction = false;
  const events = mine.slice(mine.findLastIndex(({ step }) => step === "retry") + 1);
  for (const [index, event] of events.entries()) {
    const place = placeOf(events, index, order, state.steps, last);
    for (const request of event.sent ?? []) {
      if (request.sent_before) {
        const waited = [...placed.values()].flat().find((one) => one.request.answer === null && one.request.text === request.text);
        if (waited) {
          waited.request = request;
          continue;
        }
      }
      const change = edge(request);
      if (change === "begins") inTransaction = true;
      placed.set(place, [...(placed.get(place) ?? []), { request, inTransaction: inTransaction && request.to === "postgresql" && request.connection !== "lock" }]);
      if (change === "ends") inTransaction = false;
    }
    last = place;
  }
  return placed;
}
