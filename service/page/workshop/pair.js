// Two orders of the timeline as a schedule of the explorer, for /steps: the same strategy, and their steps in the same sequence.

// An order that began again is told by its last try: the explorer's orders may not have to try so often.
function stepsOf(order) {
  const steps = order.steps.filter(({ step }) => step !== "wait");
  const last = steps.findLastIndex(({ step }) => step === "read");
  return order.tries > 1 && last > 0 ? steps.slice(last) : steps;
}

// The schedule's text, as `loadtest explore --replay` reads it. The stock is just enough for both, or, if both read the same
// stock, for one: then the schedule shows what follows from that.
export function scheduleOf(one, other) {
  const [a, b] = one.start <= other.start ? [one, other] : [other, one];
  const stock = a.seen !== null && a.seen === b.seen ? Math.max(a.quantity, b.quantity) : a.quantity + b.quantity;
  const events = [["A", a], ["B", b]].flatMap(([name, order]) => stepsOf(order).map(({ step, end_us: at }, index, all) => ({ name, step: index === all.length - 1 ? "end" : step, at })));
  events.sort((x, y) => x.at - y.at);
  const words = events.filter(({ name }, index) => events[index + 1]?.name !== name).map(({ name, step }) => `${name}>${step}`);

  return `${a.strategy} s=${stock} q=${a.quantity},${b.quantity} ${words.join(" ")}`;
}

// Its address: a space is a plus sign there.
export const stepsAddress = (schedule) => `/steps#${schedule.replaceAll(" ", "+")}`;
