// The two orders that prove an oversell, as one sequence of steps, and the same sequence as a schedule for /steps.
import { call } from "../shared/api.js";

const TRACES = 100; // more than a sale of the story has
const SHOWN = new Set(["read", "write", "commit"]);

// The steps of the two orders in the order in which they ended: [{order: 0 or 1, step, ms, value}…]; order 0 read first.
function sequenceOf(traces) {
  const readAt = (trace) => trace.steps.findLast(({ step }) => step === "read")?.end_us ?? Infinity;
  const pair = traces.toSorted((a, b) => readAt(a) - readAt(b));
  const steps = pair.flatMap((trace, order) => trace.steps.filter(({ step }) => SHOWN.has(step)).map((step) => ({ ...step, order })));
  steps.sort((a, b) => a.end_us - b.end_us);
  return { ids: pair.map((trace) => trace.order_id), steps: steps.map(({ order, step, end_us: us, value }) => ({ order, step, ms: (us - steps[0].end_us) / 1000, value })) };
}

// Which order waits for the row lock depends on who writes first, so the schedule says only what each had done before.
function scheduleOf(steps) {
  const at = (order, what) => steps.findIndex((step) => step.order === order && step.step === what);
  const first = at(1, "commit") < at(0, "commit") ? 1 : 0;
  const wrote = at(0, "write") < at(1, "read") ? "A>write" : "A>read";
  return `${wrote} B>read ${"AB"[first]}>end ${"AB"[1 - first]}>end`;
}

// {ids, seen, steps, schedule} of the WITNESS of an audit. STEPS is empty where this process has no traces of both orders:
// another process may have placed one.
export async function pairOf(product, { orders, stock_seen: seen }) {
  const { traces } = await call("GET", `/live?product_id=${product}&traces=${TRACES}`);
  const found = (traces?.traces ?? []).filter((trace) => orders.includes(trace.order_id));
  const whole = found.length === 2 && found.every(({ steps }) => [...SHOWN].every((name) => steps.some(({ step }) => step === name)));
  if (!whole) return { ids: orders, seen, steps: [], schedule: "A>read B>end A>end" };
  const { ids, steps } = sequenceOf(found);
  return { ids, seen, steps, schedule: scheduleOf(steps) };
}
