// The two orders that prove an oversell, as one sequence of steps, and the same sequence as a schedule for /steps.
import { call } from "../shared/api.js";

const TRACES = 100; // more than a sale of the story has
const SHOWN = new Set(["read", "write", "commit"]);

const ended = (trace, name) => trace.steps.findLast(({ step }) => step === name).end_us;

// The steps of the two orders in the sequence in which they took effect: [{order: 0 or 1, step, ms, value}…]; order 0 read first. The
// times are the service's: it learns of a COMMIT later than the order that waited for it. So such a COMMIT is placed before that write.
function sequenceOf(pair) {
  const steps = pair.flatMap((trace, order) => {
    const otherWrote = ended(pair[1 - order], "write");
    const waited = otherWrote > ended(trace, "write");
    return trace.steps
      .filter(({ step }) => SHOWN.has(step))
      .map(({ step, end_us: end, value }) => ({ order, step, value, us: step === "commit" && waited ? Math.min(end, otherWrote - 1) : end }));
  });
  steps.sort((a, b) => a.us - b.us);
  return steps.map(({ us, ...step }) => ({ ...step, ms: (us - steps[0].us) / 1000 }));
}

// The order that writes first has the row lock, so it also commits first.
function scheduleOf([a, b]) {
  const first = ended(b, "write") < ended(a, "write") ? 1 : 0;
  const before = ended(a, "write") < ended(b, "read") ? "A>write" : "A>read";
  return `${before} B>read ${"AB"[first]}>end ${"AB"[1 - first]}>end`;
}

// {ids, seen, steps, schedule} of the WITNESS of an audit. STEPS is empty where this process has no traces of both orders:
// another process may have placed one.
export async function pairOf(product, { orders, stock_seen: seen }) {
  const { traces } = await call("GET", `/live?product_id=${product}&traces=${TRACES}`);
  const found = (traces?.traces ?? []).filter((trace) => orders.includes(trace.order_id));
  const whole = found.length === 2 && found.every(({ steps }) => [...SHOWN].every((name) => steps.some(({ step }) => step === name)));
  if (!whole) return { ids: orders, seen, steps: [], schedule: "A>read B>end A>end" };
  const pair = found.toSorted((a, b) => ended(a, "read") - ended(b, "read"));
  return { ids: pair.map((trace) => trace.order_id), seen, steps: sequenceOf(pair), schedule: scheduleOf(pair) };
}
