// The step-through: the learner chooses whose step is next, the explorer plays the schedule, and the address keeps it.
import { call } from "./api.js";
import { alertUser, byId, make, setText } from "./dom.js";
import { setUpLooks } from "./looks.js";
import { GUARANTEES } from "./strategies.js";
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
    byId("pulse").classList.add("is-away");
    setText(byId("pulse"), problem.status ? "refused" : "the service does not answer");
    alertUser(problem.status ? problem.message : "The service does not answer.");
    return null;
  } finally {
    clearTimeout(late);
    busy = false;
    document.body.removeAttribute("aria-busy");
  }
}

const every = () => byId("every").checked;

// Shows where SCHEDULE leads.
async function load(schedule) {
  const next = await ask("/steps", { schedule, every_step: every() });
  if (next) show(next);
  return next;
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
  if (next) show(next);
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
  if (asking && state?.orders.some(({ name }) => name === asking)) questionOf(asking).hidden = true;
  asking = null;
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
  const choice = (text, act) => make("button", { type: "button", onclick: act }, text);
  box.setAttribute("aria-label", `What will ${name} read?`);
  box.replaceChildren(
    make("p", {}, `What will ${name} read?`),
    make(
      "div",
      { class: "group" },
      ...readable(state, name).map((number) => choice(String(number), () => answer(name, number))),
      choice("it waits", () => answer(name, null)),
      make("button", { type: "button", class: "small", onclick: () => makeMove(name, "step") }, "just show me"),
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
      setText(byId("found"), "The explorers are busy; yours is next …");
      await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
    }
  }
}

async function find() {
  if (busy || !state) return;
  busy = true;
  stop();
  const settings = settingsOf(state.schedule);
  setText(byId("found"), "Playing all schedules …");
  let result = null;
  try {
    result = await search({ schedule: settings, faults: byId("faults").value });
    setText(byId("found"), found(result));
  } catch (problem) {
    setText(byId("found"), "");
    alertUser(`Not searched: ${problem.message}`);
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
      .map((row) => make("option", { value: row.name, disabled: row.available ? null : "" }, row.name + (row.available ? "" : " (not available)")));
    byId("strategy").append(make("optgroup", { label: title }, ...options));
  }
}

function setUpControls() {
  byId("strategy").addEventListener("change", (event) => {
    byId("faults").value = faultsFor(rows.get(event.target.value));
    change({ strategy: event.target.value });
  });
  byId("stock").addEventListener("change", (event) => event.target.reportValidity() && change({ stock: event.target.valueAsNumber }));
  byId("actors").addEventListener("change", (event) => {
    const { quantities } = setting(state.schedule);
    change({ quantities: Array.from({ length: Number(event.target.value) }, (_, i) => quantities[i] ?? quantities.at(-1)) });
  });
  for (const [id, press] of [["next", step], ["undo", undo], ["restart", restart], ["find", find], ["play", play]]) byId(id).addEventListener("click", press);
  byId("copy").addEventListener("click", async () => {
    await navigator.clipboard.writeText(location.href);
    setText(byId("copy"), "Copied");
  });
  addEventListener("hashchange", async () => {
    forgetPlan();
    if (!(await load(addressed())) && state) keepInAddress();
  });
}

const stepOf = (index) => () => state?.orders[index] && act(state.orders[index].name, "step");
setUpLooks({
  " ": step, ".": step, ArrowRight: step, PageDown: step, ArrowLeft: undo, PageUp: undo, u: undo, r: restart, f: find, p: play,
  1: stepOf(0), 2: stepOf(1), 3: stepOf(2), 4: stepOf(3),
}); // prettier-ignore
setUpControls();
try {
  fillStrategies((await call("GET", "/strategies")).strategies);
  const first = addressed();
  if (!(await load(first)) && first !== FIRST) {
    const why = byId("alert").textContent;
    await load(FIRST);
    alertUser(`The address was not understood: ${why}`);
  }
} catch (problem) {
  alertUser(`The strategies cannot be read: ${problem.message}`);
}
