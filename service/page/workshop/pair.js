// Two orders as one sequence of steps, and as a schedule of the explorer, for /steps: the same strategy, and their steps in the same sequence.

// Only the last try of an order counts: the explorer's orders may need fewer tries.
function stepsOf(order) {
  const steps = order.steps.filter(({ step }) => step !== "wait");
  const last = steps.findLastIndex(({ step }) => step === "read");
  return order.tries > 1 && last > 0 ? steps.slice(last) : steps;
}

// When the steps of ORDER were done, as far as OTHER can tell. A client learns of its COMMIT or release a little later than the server
// has done it, so an order that waited for it may learn of the next step first. Then this step and the next ones are placed after that.
function timesOf(order, other) {
  const second = order.locked && other.locked && other.commitEnd !== null && other.locked.to < order.locked.to;
  const release = other.steps.find(({ step }) => step === "unlock");
  let least = 0;
  return stepsOf(order).map(({ step, value, end_us: at }) => {
    if (second && step === order.locksAt) least = other.commitEnd + 0.5;
    if (step === "lock" && release && release.begin_us <= at && at <= release.end_us) least = Math.max(least, release.end_us + 0.5);
    return { step, value, at: Math.max(at, least) };
  });
}

// When ORDER read; of an order that does not read, when it started.
const readAt = (order, other) => timesOf(order, other).find(({ step }) => step === "read")?.at ?? order.start;

// [A, B]: A is the order that read first.
export const named = (one, other) => (readAt(one, other) <= readAt(other, one) ? [one, other] : [other, one]);

// The steps of A and B in the sequence in which the servers made them: [{name, step, value, at}…]; NAME is "A" or "B", AT in microseconds.
export function sequenceOf(a, b) {
  const steps = (name, times) => times.map((step) => ({ name, ...step }));
  return [...steps("A", timesOf(a, b)), ...steps("B", timesOf(b, a))].sort((x, y) => x.at - y.at);
}

// The moves of a schedule that has this sequence.
export function movesOf(a, b) {
  const steps = sequenceOf(a, b);
  const isLast = ({ name }, index) => steps.findLastIndex((step) => step.name === name) === index;
  return steps
    .map((step, index) => `${step.name}>${isLast(step, index) ? "end" : step.step}`)
    .filter((_, index) => steps[index + 1]?.name !== steps[index].name)
    .join(" ");
}

// The schedule's text, as `loadtest explore --replay` reads it. The stock is just enough for both, or, if both read the same
// stock, for one: then the schedule shows what follows from that.
export function scheduleOf(one, other) {
  const [a, b] = named(one, other);
  const stock = a.seen !== null && a.seen === b.seen ? Math.max(a.quantity, b.quantity) : a.quantity + b.quantity;
  return `${a.strategy} s=${stock} q=${a.quantity},${b.quantity} ${movesOf(a, b)}`;
}
