// The step-through: the learner chooses whose step is next, the explorer plays the schedule, and the address keeps it.
import { call } from "../shared/api.js";
import { alertUser, byId, chooseDeliberately, copy, make, setText } from "../shared/dom.js";
import { setUpLooks } from "../shared/looks.js";
import { GUARANTEES } from "../workshop/strategies.js";
import { faultsFor, found, goal, readable, whyRead } from "./steps_words.js";
import { draw, questionOf, setUpLanes } from "./steps_view.js";

const FIRST = "read-write s=1 q=1,1";
const PLAY_MS = 1400;
const AGAIN_MS = 1000; // while all explorers search

const rows = new Map(); // the strategies, by name
let state = null; // what the service said last
let plan = null; // schedules to walk along, of what was found or undone; and where we are
let planAt = 0;
let lastMover = null;
let busy = false;
let asking = null; // whose reading is asked for
let playing = null; // a timer
let misread = null; // why the address cannot be shown; it then stays as it is, to be corrected
const score = { right: 0, asked: 0 };

// ---- the schedule ----

const words = (schedule) => schedule.split(" ").filter(Boolean);
const isSetting = (word) => !/[>!]/.test(word);
const settingsOf = (schedule) => words(schedule).filter(isSetting).join(" ");

function setting(schedule) {
  const [strategy, ...rest] = words(schedule);
  const find = (key, preset) => rest.find((word) => word.startsWith(key))?.slice(2) ?? preset;
  return { strategy, stock: Number(find("s=", "1")), quantities: find("q=", "1,1").split(",").map(Number) };
}

const compose = ({ strategy, stock, quantities }) => `${strategy} s=${stock} q=${quantities.join(",")}`;

// What stands behind the #, with + for spaces.
function addressed() {
  try {
    return decodeURIComponent(location.hash.slice(1).replaceAll("+", " ")).trim() || FIRST;
  } catch {
    return FIRST;
  }
}

function keepInAddress() {
  if (misread) return;
  history.replaceState(null, "", `#${state.schedule.replaceAll(" ", "+")}`);
  document.title = `${state.strategy} · step by step · oversell`;
}

// ---- what is shown ----

const canStep = (name) => state?.orders.find((order) => order.name === name)?.can.step ?? false;

// Whose step the space bar is: along the plan, else the same order's as before, else the first that can.
function turn() {
  if (!state) return null;
  if (plan && planAt + 1 < plan.length) return words(plan[planAt + 1].schedule).at(-1)?.[0] ?? null;
  if (lastMover && canStep(lastMover)) return lastMover;
  return state.orders.find((order) => order.can.step)?.name ?? null;
}

function showSetting() {
  const now = setting(state.schedule);
  const row = rows.get(state.strategy);
  if (byId("strategy").value !== now.strategy) {
    byId("strategy").value = now.strategy;
    byId("faults").value = faultsFor(row);
  }
  if (document.activeElement !== byId("stock")) byId("stock").value = now.stock;
  byId("actors").value = now.quantities.length;
  setText(byId("goal"), goal(row, now.stock, now.quantities));
  setText(byId("why"), `${row.title}. ${GUARANTEES[row.guarantee].title}: ${GUARANTEES[row.guarantee].means}.`);
}

function enable(id, enabled) {
  if (enabled) byId(id).removeAttribute("aria-disabled");
  else byId(id).setAttribute("aria-disabled", "true");
}

function show(next) {
  const before = state;
  state = next;
  setUpLanes(
    state.orders.map(({ name }) => name),
    (name, what) => act(name, what),
  );
  closeQuestion();
  showSetting();
  draw(state, before, turn(), { go: goTo, again });
  enable("next", turn() !== null);
  enable("undo", state.history.length > 1);
  byId("play").hidden = plan === null || planAt + 1 >= plan.length;
  keepInAddress();
}

// ---- asking the service ----

let failure = null; // of the last question

// What went wrong, and what to do.
function inWords(problem, schedule = "") {
  const name = words(schedule)[0] ?? "this strategy";
  if (problem.name === "backend-unavailable")
    return `${name} cannot be stepped through, because ${problem.body.backend} does not answer. Start ${problem.body.backend} and reload the page, or choose another strategy.`;
  if (problem.name === "explorer-unavailable") return `The steps cannot be run. ${problem.message} Reload the page afterwards.`;
  return problem.message;
}

// One question at a time; what comes meanwhile is not meant. Returns the answer, or null.
async function ask(path, question) {
  if (busy) return null;
  busy = true;
  document.body.setAttribute("aria-busy", "true");
  const late = setTimeout(() => setText(byId("pulse"), "working …"), 300);
  try {
    const answer = await call("POST", path, question);
    setText(byId("pulse"), "ready");
    byId("pulse").classList.remove("is-away");
    return answer;
  } catch (problem) {
    stop();
    failure = problem;
    byId("pulse").classList.add("is-away");
    setText(byId("pulse"), problem.name === "backend-unavailable" ? `${problem.body.backend} does not answer` : problem.status ? "refused" : "no answer");
    alertUser(inWords(problem, question.schedule));
    return null;
  } finally {
    clearTimeout(late);
    busy = false;
    document.body.removeAttribute("aria-busy");
  }
}

const every = () => byId("every").checked;

// Shows where SCHEDULE leads.
async function load(schedule, keepsAddress = false) {
  const next = await ask("/steps", { schedule, every_step: every() });
  if (next) {
    if (!keepsAddress) misread = null;
    show(next);
  }
  return next;
}

// Shows what the address says. Where that cannot be done the address stays, so that it can be corrected.
async function loadAddressed() {
  const schedule = addressed();
  failure = null;
  if ((await load(schedule)) || !failure) return;
  misread = failure;
  const away = failure.name !== "invalid-schedule";
  const why = inWords(failure, schedule);
  if (!state && !away) await load(FIRST, true);
  if (state) showSetting();
  else {
    byId("strategy").value = words(schedule)[0];
    setText(byId("goal"), `${words(schedule)[0]} cannot be stepped through now.`);
  }
  alertUser(away ? why : `The address was not understood: ${why} Correct it in the address bar, or choose a strategy.`, true);
}

// ---- the plan: what was found, or undone ----

// Where an order's rows follow there is no stop before them, unless every step is wanted.
function stopsOf(full) {
  const inserts = new Set(full.told.filter(({ step }) => step === "insert").map(({ move }) => move));
  return full.history.map((schedule, move) => ({ schedule, move })).filter(({ move }) => every() || !inserts.has(move + 1));
}

function follow(full, move) {
  plan = stopsOf(full);
  planAt = plan.findLastIndex((stop) => stop.move <= move);
}

function forgetPlan() {
  plan = null;
  stop();
}

async function goAlong(at) {
  planAt = at;
  const next = await load(plan[at].schedule);
  return next !== null;
}

// ---- moves ----

async function makeMove(name, what) {
  forgetPlan();
  lastMover = name;
  const move = what === "step" ? name : what === "end" ? `${name}>end` : `${name}!${what}`;
  const next = await ask("/steps", { schedule: state.schedule, move, every_step: every() });
  if (next) {
    misread = null;
    show(next);
  }
  return next;
}

async function act(name, what) {
  const order = state.orders.find((one) => one.name === name);
  const allowed = what === "step" || what === "end" ? order.can.step : order.can[what];
  if (!allowed || busy) return;
  stop();
  const others = state.orders.some((one) => one.name !== name && one.begun);
  if (what === "step" && order.next === "read" && others && byId("ask").checked && asking !== name) askWhatItReads(name);
  else await makeMove(name, what);
}

// The space bar, and what a presenter sends.
async function step() {
  if (busy || !state) return;
  if (asking) {
    await makeMove(asking, "step");
  } else if (plan && planAt + 1 < plan.length) {
    await goAlong(planAt + 1);
  } else if (turn()) {
    await act(turn(), "step");
  }
}

async function undo() {
  if (busy || !state || state.history.length < 2) return;
  stop();
  if (!plan) follow(state, state.history.length - 1);
  if (planAt > 0) await goAlong(planAt - 1);
}

async function goTo(move) {
  if (busy) return;
  stop();
  if (!plan) follow(state, state.history.length - 1);
  await goAlong(plan.findLastIndex((stop) => stop.move <= move));
}

// From the beginning, along the same steps.
async function again() {
  if (busy) return;
  stop();
  if (!plan) follow(state, state.history.length - 1);
  await goAlong(0);
  byId("next").focus();
}

async function restart() {
  if (busy || !state) return;
  forgetPlan();
  lastMover = null;
  setText(byId("found"), "");
  setText(byId("answer"), "");
  await load(settingsOf(state.schedule));
}

// ---- playing ----

function stop() {
  clearTimeout(playing);
  playing = null;
  setText(byId("play"), "Play");
}

function play() {
  if (playing !== null || !plan) {
    stop();
    return;
  }
  setText(byId("play"), "Stop");
  const go = async () => {
    if (planAt + 1 >= plan.length || !(await goAlong(planAt + 1))) stop();
    else if (playing !== null) playing = setTimeout(go, PLAY_MS);
    if (plan && planAt + 1 >= plan.length) stop();
  };
  playing = setTimeout(go, 0);
}

// ---- what will it read? ----

function closeQuestion() {
  if (asking && state?.orders.some(({ name }) => name === asking)) {
    const box = questionOf(asking);
    const hadFocus = box.contains(document.activeElement);
    box.hidden = true;
    if (hadFocus) byId(`step-${asking}`).focus(); // and not the page's beginning
  }
  asking = null;
}

// Key N answers the question, where one is asked, with its choice N.
function answerByKey(index) {
  const choices = questionOf(asking).querySelectorAll("button");
  choices[index]?.click();
}

async function answer(name, guess) {
  const before = state;
  const after = await makeMove(name, "step");
  if (!after) return;
  const event = after.told.findLast(({ actor, step }) => actor === name && (step === "read" || step === "waits"));
  const read = event?.step === "read" ? Number(event.text.split(" ")[1]) : null;
  score.asked++;
  if (guess === read) score.right++;
  setText(byId("answer"), `${guess === read ? "✓ Right" : "✗ No"}: ${whyRead(name, before, after, read)} (${score.right} of ${score.asked} right)`);
}

function askWhatItReads(name) {
  closeQuestion();
  asking = name;
  const box = questionOf(name);
  let count = 0;
  const choice = (text, act) => make("button", { type: "button", onclick: act }, text, " ", make("kbd", { "aria-hidden": "true" }, String(++count)));
  box.setAttribute("aria-label", `What will ${name} read?`);
  box.replaceChildren(
    make("p", {}, `What will ${name} read?`),
    make(
      "div",
      { class: "group" },
      ...readable(state, name).map((number) => choice(String(number), () => answer(name, number))),
      choice("it waits", () => answer(name, null)),
      make("button", { type: "button", class: "small", onclick: () => makeMove(name, "step") }, "just show me ", make("kbd", { "aria-hidden": "true" }, "Space")),
    ),
  );
  box.hidden = false;
  box.querySelector("button").focus();
}

// ---- find me an oversell ----

async function search(question) {
  for (;;) {
    try {
      return await call("POST", "/steps/search", question);
    } catch (problem) {
      if (problem.name !== "overloaded") throw problem;
      setText(byId("found"), "All explorers are busy; this search waits …");
      await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
    }
  }
}

async function find() {
  if (busy || !state) return;
  busy = true;
  stop();
  const settings = settingsOf(state.schedule);
  setText(byId("found"), "Running all schedules …");
  let result = null;
  try {
    result = await search({ schedule: settings, faults: byId("faults").value });
    setText(byId("found"), found(result));
  } catch (problem) {
    setText(byId("found"), "");
    alertUser(inWords(problem, settings));
  }
  busy = false;
  if (!result?.witness) return;
  const full = await ask("/steps", { schedule: result.witness.replay });
  if (!full) return;
  follow(full, 0);
  await goAlong(0);
  byId("next").focus(); // so that the space bar goes on
}

// ---- setting up ----

async function change(part) {
  const next = { ...setting(state?.schedule ?? FIRST), ...part };
  forgetPlan();
  lastMover = null;
  setText(byId("found"), "");
  setText(byId("answer"), "");
  if (!(await load(compose(next))) && state) showSetting();
}

function fillStrategies(list) {
  for (const row of list) rows.set(row.name, row);
  for (const [guarantee, { title }] of Object.entries(GUARANTEES)) {
    const options = list
      .filter((row) => row.guarantee === guarantee && row.explorable)
      .map((row) => make("option", { value: row.name, disabled: row.available ? null : "" }, row.name + (row.available ? "" : ` (not available: ${row.reason ?? "its server does not answer"})`)));
    byId("strategy").append(make("optgroup", { label: title }, ...options));
  }
}

function setUpControls() {
  chooseDeliberately(byId("strategy"), byId("strategy-apply"), () => state?.strategy ?? "", (strategy) => {
    byId("faults").value = faultsFor(rows.get(strategy));
    change({ strategy });
  });
  byId("stock").addEventListener("change", (event) => event.target.reportValidity() && change({ stock: event.target.valueAsNumber }));
  byId("actors").addEventListener("change", (event) => {
    const { quantities } = setting(state.schedule);
    change({ quantities: Array.from({ length: Number(event.target.value) }, (_, i) => quantities[i] ?? quantities.at(-1)) });
  });
  for (const [id, press] of [["next", step], ["undo", undo], ["restart", restart], ["find", find], ["play", play]]) byId(id).addEventListener("click", press);
  byId("copy").addEventListener("click", async () => {
    const copied = await copy(location.href, byId("copy-text"));
    setText(byId("copy-note"), copied ? "Copied." : "This browser does not let the page copy. The address is selected: press Ctrl+C.");
  });
  addEventListener("hashchange", () => {
    forgetPlan();
    loadAddressed();
  });
}

const stepOf = (index) => () => (asking ? answerByKey(index) : state?.orders[index] && act(state.orders[index].name, "step"));
setUpLooks({
  " ": step, ".": step, ArrowRight: step, PageDown: step, ArrowLeft: undo, PageUp: undo, u: undo, r: restart, f: find, p: play,
  1: stepOf(0), 2: stepOf(1), 3: stepOf(2), 4: stepOf(3), 5: stepOf(4), 6: stepOf(5), Escape: closeQuestion,
}); // prettier-ignore
setUpControls();
try {
  fillStrategies((await call("GET", "/strategies")).strategies);
  await loadAddressed();
} catch (problem) {
  alertUser(`The page could not load the strategies. ${problem.message}`);
}
