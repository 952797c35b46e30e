// The two orders that prove an oversell, as one sequence of steps, and the same sequence as a schedule for /steps.
import { call } from "../shared/api.js";
import { orderOf } from "./overlaps.js";
import { movesOf, named, sequenceOf } from "./pair.js";

const TRACES = 100; // more than a sale of the story has
const SHOWN = new Set(["read", "write", "commit"]);

// {ids, seen, steps, schedule} of the WITNESS of an audit. STEPS: [{order: 0 or 1, step, value, ms}…], order 0 read first. It is empty
// where this process has no traces of both orders: another process may have placed one.
export async function pairOf(product, { orders, stock_seen: seen }) {
  const { traces } = await call("GET", `/live?product_id=${product}&traces=${TRACES}`);
  const found = (traces?.traces ?? []).filter((trace) => orders.includes(trace.order_id));
  const whole = found.length === 2 && found.every(({ steps }) => [...SHOWN].every((name) => steps.some(({ step }) => step === name)));
  if (!whole) return { ids: orders, seen, steps: [], schedule: "A>read B>end A>end" };
  const [a, b] = named(...found.map((trace) => orderOf(trace, "")));
  const shown = sequenceOf(a, b).filter(({ step }) => SHOWN.has(step));
  const steps = shown.map(({ name, step, value, at }) => ({ order: name === "A" ? 0 : 1, step, value, ms: (at - shown[0].at) / 1000 }));
  return { ids: [a.id, b.id], seen, steps, schedule: movesOf(a, b) };
}
