// Keeps two step-throughs next to each other level: the parts that correspond begin at the same height.
import { counterpart } from "./beside.js";

const tops = (pair) => pair.map((element) => element.getBoundingClientRect().top);

// The steps of two columns that correspond, from top to bottom: [[row, row]…].
function stepPairs(one, other) {
  const rows = [...other.querySelectorAll(".program > li")];
  const steps = rows.map((row) => row.dataset.step);
  let next = 0; // a pair is below the pair before it
  const pairs = [];
  for (const row of one.querySelectorAll(".program > li")) {
    const index = steps.indexOf(counterpart(row.dataset.step, steps), next);
    if (index < 0) continue;
    pairs.push([row, rows[index]]);
    next = index + 1;
  }
  return pairs;
}

// The parts of the halves that correspond, from top to bottom.
function pairsOf(halves) {
  const both = (selector) => halves.map((half) => half.querySelector(selector));
  const columns = [...halves[0].querySelectorAll(".lane")].map(({ id }) => both(`[id$="${id}"]`));
  const pairs = [both(".stage"), ...columns.flatMap((pair) => [pair, ...(pair[1] ? stepPairs(...pair) : [])]), both(".servers"), both(".story")];
  return pairs.filter((pair) => pair.every((element) => element?.checkVisibility()));
}

// Levels ONE and OTHER now, and whenever one of them changes its size. Returns {level(), stop()}; LEVEL is for a change that keeps the size.
export function keepLevel(one, other) {
  const halves = [one, other];
  let moved = []; // has a margin or height from the last time
  let frame = 0;

  function level() {
    for (const { style } of moved) style.marginTop = style.minHeight = "";
    moved = [];
    const tasks = halves.map((half) => half.querySelector(".task"));
    if (tasks.includes(null) || tops(tasks)[0] !== tops(tasks)[1]) return; // one half is below the other
    const height = Math.max(...tasks.map(({ offsetHeight }) => offsetHeight));
    for (const task of tasks) task.style.minHeight = `${height}px`;
    moved.push(...tasks);
    for (const pair of pairsOf(halves)) {
      const [first, second] = tops(pair);
      if (Math.abs(first - second) < 0.5) continue;
      const higher = pair[first < second ? 0 : 1];
      higher.style.marginTop = `${Math.abs(first - second)}px`;
      moved.push(higher);
    }
  }

  // Not in the observer's own call, since a level changes sizes, too.
  const observer = new ResizeObserver(() => {
    cancelAnimationFrame(frame);
    frame = requestAnimationFrame(level);
  });
  for (const half of halves) observer.observe(half);
  return {
    level,
    stop() {
      observer.disconnect();
      cancelAnimationFrame(frame);
      for (const { style } of moved) style.marginTop = style.minHeight = "";
    },
  };
}
