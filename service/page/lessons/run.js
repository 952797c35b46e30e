// The runs of a lesson: each command that the page can run instead of a terminal gets a button next to it.
import { call, sandbox } from "../shared/api.js";
import { make, plural, setText, short, whole } from "../shared/dom.js";
import { liveSource } from "../steps/live_source.js";
import { faultWords } from "../steps/steps_words.js";
import { walkAddress } from "../steps/schedule_text.js";
import { mountStepper } from "../steps/stepper.js";
import { goalWords, missed } from "./goal.js";
import { markFound, onProgress, progressOf } from "./progress.js";

const LOOK_MS = 400;
const AGAIN_MS = 1500; // while another load runs
const MEASURED_MS = 500; // as in the lessons' commands
const STOCK = 100;
const SCENARIO = "s=1 q=1,1"; // what `loadtest explore --strategies` searches

const source = liveSource();
let asked = null;
const strategies = () => (asked ??= source.strategies());
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// ---- steps ----

const KEYS = { " ": "step", ".": "step", ArrowRight: "step", PageDown: "step", ArrowLeft: "undo", PageUp: "undo", u: "undo", r: "restart", p: "play", Escape: "closeQuestion" };

// The keys of /steps, while the focus is in this step-through.
function listen(box, stepper) {
  box.addEventListener("keydown", (event) => {
    const { key, target } = event;
    const presses = key === " " && target.closest("button:not([aria-disabled=true]), a, summary");
    if (event.ctrlKey || event.metaKey || event.altKey || presses || target.closest("input, select, pre")) return;
    if (KEYS[key]) stepper[KEYS[key]]();
    else if (/^[0-9w]$/.test(key)) stepper.press(key);
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
}

// Opens a step-through of SCHEDULE in BOX. JUDGE(state, isEnd) is called for each state; a schedule may end while an order could go on.
// Returns whether it could be opened.
async function openSteps(box, prefix, schedule, judge, failed) {
  const isWhole = /[>!]/.test(schedule); // else the learner makes the moves
  let moves = Infinity; // of the whole schedule
  const counting = {
    ...source,
    async steps(question) {
      const answer = await source.steps(question);
      if (question.schedule === schedule && !question.move && isWhole) moves = answer.history.length;
      return answer;
    },
  };
  const stepper = mountStepper(box, {
    source: counting,
    prefix,
    tools: false,
    onChange: (state) => judge(state, state.history.length >= moves || state.orders.every(({ can }) => !can.step)),
    onProblem: failed,
  });
  try {
    stepper.fillStrategies(await strategies());
  } catch (problem) {
    asked = null;
    failed(`The strategies could not be loaded. ${problem.message}`);
    return false;
  }
  listen(box, stepper);
  const state = await (isWhole ? stepper.walk(schedule) : stepper.load(schedule));
  document.getElementById(`${prefix}next`).focus();
  return state !== null;
}

// ---- tables of results ----

const cells = (row, columns) => columns.map(([, value]) => make("td", { class: typeof value(row) === "number" ? "number" : null }, shown(value(row))));
const shown = (value) => (typeof value === "number" ? short(value) : value instanceof Node ? value : (value ?? "–"));

function table(columns) {
  const body = make("tbody");
  const heads = columns.map(([title]) => make("th", { scope: "col" }, title));
  const made = make("div", { class: "scroll", tabindex: "0" }, make("table", {}, make("thead", {}, make("tr", {}, ...heads)), body));
  const add = (row) => {
    const line = cells(row, columns);
    line.forEach(({ className }, index) => className && (heads[index].className = className));
    body.append(make("tr", {}, ...line));
  };
  return { made, add };
}

const VERDICTS = {
  ok: "✓ correct in this run", "oversold-as-expected": "✗ oversold", flawed: "correct in this run, flawed", "not-caught": "correct in this run",
  "nothing-shown": "correct in this run", broken: "✗ oversold", mixed: "both", unavailable: "not available",
}; // prettier-ignore

const verdictOf = (row) => (row.drift > 0 && !row.oversold ? "✗ sold more than it subtracted" : (VERDICTS[row.verdict] ?? row.verdict));
const name = ["strategy", (row) => make("code", {}, row.strategy)];
const LOAD_COLUMNS = {
  "sell-out": [name, [`sold, of ${STOCK}`, (row) => row.sold], ["oversold", (row) => row.oversold], ["result", verdictOf]],
  throughput: [
    name,
    ["orders/s", (row) => row.orders_per_s],
    ["p99 ms", (row) => row.latency_ms?.p99],
    ["round trips", (row) => row.round_trips_per_order],
    ["of the lock", (row) => row.lock_round_trips_per_order],
    ["retries", (row) => row.retries_per_order],
    ["result", verdictOf],
  ],
};

// ---- a search, a load ----

async function search(run, { status, results }, failed) {
  const columns = [
    name,
    ["schedules run", (row) => row.schedules],
    ["oversold", (row) => row.oversold],
    ["simplest", (row) => (row.witness ? make("a", { href: walkAddress(row.witness.replay) }, "step through it") : "none of those run")],
  ];
  const { made, add } = table(columns);
  results.replaceChildren(made);
  const cut = [];
  for (const strategy of run.strategies) {
    setText(status, `Running all schedules of ${strategy} …`);
    try {
      const found = await source.search({ schedule: `${strategy} ${SCENARIO}`, faults: run.faults }, () => setText(status, "All explorers are busy; this search waits …"));
      add(found);
      if (!found.complete) cut.push(strategy);
    } catch (problem) {
      failed(problem.message);
      return false;
    }
  }
  const scope = `2 orders in one process, stock 1, ${faultWords(run.faults)}.`;
  setText(status, cut.length ? `${scope} Ten seconds were not enough for all schedules of ${cut.join(" and ")}.` : `${scope} All schedules were run.`);
  return true;
}

async function started(order, status, isStopped) {
  while (!isStopped()) {
    try {
      return await call("POST", "/runs", order);
    } catch (problem) {
      if (problem.name !== "run-in-progress") throw problem;
      setText(status, "Another load is in progress; this one starts after it …");
      await sleep(AGAIN_MS);
    }
  }
  return null;
}

async function load(run, { status, results, stop }, failed) {
  const { made, add } = table(LOAD_COLUMNS[run.phase]);
  const order = {
    strategies: run.strategies, instances: run.instances, connections: run.connections, stock: STOCK, duration_ms: MEASURED_MS,
    product_id: sandbox()?.product ?? 1,
  }; // prettier-ignore
  let stopped = false;
  let now = null;
  const end = () => call("DELETE", `/runs/${now.id}`).catch((problem) => failed(problem.message));
  stop.onclick = () => {
    stopped = true;
    if (now) end();
  };
  results.replaceChildren(made);
  stop.hidden = false;
  let shownRows = 0;
  try {
    now = await started(order, status, () => stopped);
    if (now && stopped) await end(); // Stop was pressed while the call that starts it was on its way
    while (now) {
      for (; shownRows < now.rows.length; shownRows++) add(now.rows[shownRows]);
      if (now.state !== "running") break;
      setText(status, now.load ? `${now.load.step + 1} of ${now.load.steps}: ${now.load.strategy}, ${whole(now.load.created)} orders` : "The load starts …");
      await sleep(LOOK_MS);
      now = await call("GET", `/runs/${now.id}`);
    }
    if (now?.state === "failed") failed(now.error);
    setText(status, now?.state === "done" ? `${plural(now.rows.length, "strategy", "strategies")}, ${plural(run.instances, "process", "processes")}, ${run.connections} connections.` : "The load was stopped.");
    return now?.state === "done";
  } catch (problem) {
    setText(status, "");
    failed(problem.message);
    return false;
  } finally {
    stop.hidden = true;
  }
}

// ---- a figure of the lesson ----

const BUTTONS = { replay: "Step through it", goal: "Try it", search: "Run all schedules", compare: "Run the load" };
const HINTS = {
  replay: "Now go through the steps, and see.",
  search: "Now run all schedules, and see.",
  compare: "Now run the load, and see.",
  terminal: "See what it prints.",
};

// Sets up FIGURE, the run number INDEX of LESSON, whose data-run says what its command does (make/lesson-pages). Returns {hint, open, whenSeen}, for a prediction.
export function setUpRun(figure, index, lesson) {
  const run = JSON.parse(figure.dataset.run);
  const terminal = figure.querySelector(".terminal");
  const listeners = [];
  const seen = () => listeners.forEach((listener) => listener());
  const ended = () => {
    seen();
    markFound(lesson, index);
  };
  const made = { hint: HINTS[run.kind] ?? "", whenSeen: (listener) => listeners.push(listener), open: () => (terminal.open = true) };
  if (terminal) terminal.addEventListener("toggle", () => terminal.open && (run.kind === "terminal" ? ended() : seen()));
  if (run.kind === "terminal") return made;

  const alert = make("p", { class: "alert", role: "alert", hidden: "" });
  const failed = (text) => {
    alert.hidden = false;
    setText(alert, `${text}${terminal ? " The terminal's output is below." : ""}`);
    if (terminal) terminal.open = true;
    else seen();
  };
  const parts = { status: make("p", { class: "quiet", role: "status" }), results: make("div"), stop: make("button", { type: "button", hidden: "" }, "Stop") };
  const task = () => `${progressOf(lesson).found.includes(index) ? "✓ You have found one before. " : ""}Find a schedule: ${goalWords(run.ends)}.`;
  const goal = run.kind === "goal" ? make("p", { class: "goal-line", role: "status" }, task()) : null;
  const showTask = () => {
    goal.classList.remove("is-right");
    setText(goal, task());
  };
  // The learner has deleted the progress.
  if (goal) onProgress(() => !progressOf(lesson).found.includes(index) && goal.textContent.startsWith("✓") && showTask());
  const judge = (state, isEnd) => {
    if (!isEnd) {
      if (goal) showTask();
      return;
    }
    if (!goal) return ended();
    seen();
    const lacks = missed(run.ends, state);
    if (lacks.length === 0) markFound(lesson, index);
    goal.classList.toggle("is-right", lacks.length === 0);
    setText(goal, lacks.length === 0 ? `✓ You found it: ${goalWords(run.ends)}.` : `✗ Not yet. Missing: ${lacks.join(", ")}. Go back by Undo, or start again.`);
  };
  const begin = async () => {
    alert.hidden = true;
    go.disabled = true;
    let opened = false;
    if (run.kind === "search") opened = await search(run, parts, failed);
    else if (run.kind === "compare") opened = await load(run, parts, failed);
    else opened = await openSteps(parts.results, `run-${index}-`, run.schedule, judge, failed);
    go.disabled = false;
    // Stop had the focus, or nothing had it. In Firefox a button keeps the focus for a moment after it is hidden.
    if (document.activeElement === document.body || !document.activeElement?.checkVisibility()) go.focus({ preventScroll: true });
    const isSteps = run.kind === "replay" || run.kind === "goal";
    go.hidden = isSteps && opened;
    if (!isSteps && opened) ended();
  };
  const go = make("button", { type: "button", class: "go-run primary", onclick: begin }, BUTTONS[run.kind]);
  figure.prepend(...[goal, make("div", { class: "group" }, go, parts.stop, parts.status), alert, parts.results].filter(Boolean));
  made.open = () => (run.kind === "replay" ? go.hidden || begin() : go.focus());
  return made;
}
