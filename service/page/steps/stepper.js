// A step-through: the learner chooses whose step is next, a source runs the schedule, and the state is drawn. A page can have several.
import { copy, make, setText } from "../shared/dom.js";
import { openMap } from "../shared/strategy_map.js";
import { GUARANTEES } from "../shared/strategy_words.js";
import { codeOf } from "./code.js";
import { enable } from "./lane.js";
import { makeNote } from "./note.js";
import { makePrediction } from "./prediction.js";
import { compose, lastMover, setting, settingsOf, stepsAddress } from "./schedule_text.js";
import { makeFrame } from "./stepper_frame.js";
import { makeView } from "./stepper_view.js";
import { faultsFor, found, goal, problemWords } from "./steps_words.js";

const FIRST = "read-write s=1 q=1,1";
const PLAY_MS = 1400;
const LATE_MS = 300; // an answer that takes longer is announced

// Makes a step-through in ELEMENT. Nothing is shown before load(). Options:
// - source: as live_source.js has it
// - prefix: of the ids of its elements, so that a page can have several
// - tools: whether the learner can change strategy, stock and orders, and search
// - onChange(state): a state is shown
// - onGuess({name, guess, read, right}): the learner has predicted a reading; null: that the order waits
// - onProblem(text, problem, schedule): a call failed; TEXT says why and what to do
// - onBeside(strategy): the learner wants to compare with this strategy; "": with none
// - onStatus(text, problem): "working …", "ready", or "no answer" or "refused" with the reason
// - addressOf(schedule): the address that the learner can copy
export function mountStepper(element, options) {
  const { source, prefix = "", tools = true } = options;
  const { onChange = () => {}, onGuess = () => {}, onProblem = () => {}, onBeside = () => {}, onStatus = () => {} } = options;
  const addressOf = options.addressOf ?? ((schedule) => new URL(stepsAddress(schedule), location.href).href);
  const ui = makeFrame(element, prefix, tools);
  const view = makeView(ui, prefix, { act, go: goTo, again });
  const rows = new Map(); // the strategies, by name
  const notes = { found: makeNote(ui.found), answer: makeNote(ui.answer), copied: makeNote(ui["copy-note"]) };
  const prediction = makePrediction({
    lane: view.lane,
    state: () => state,
    move: (name) => makeMove(name, "step"),
    onAnswer(told, text) {
      const at = state.schedule;
      notes.answer.say(text, ({ history }) => history.includes(at));
      onGuess(told);
    },
  });
  let state = null; // what the source said last
  let plan = null; // schedules to walk along, of what was found or undone; and where we are
  let planAt = 0;
  let mover = null; // whose move the last one was
  let busy = false;
  let working = null; // a promise of the answer that is awaited
  let searching = null; // identifies the search that is in progress
  let playing = null; // a timer
  let beside = ""; // the strategy to compare with

  // ---- what is shown ----

  const orderOf = (name) => state?.orders.find((order) => order.name === name);
  const canGoOn = () => plan !== null && planAt + 1 < plan.length;

  // Whose step the space bar is: along the plan, else the same order's as before, else the first that can.
  function turn() {
    if (!state) return null;
    if (canGoOn()) return lastMover(plan[planAt + 1].schedule) ?? null;
    if (mover && orderOf(mover)?.can.step) return mover;
    return state.orders.find((order) => order.can.step)?.name ?? null;
  }

  function showSetting() {
    const { strategy, stock, quantities } = setting(state.schedule);
    const row = rows.get(strategy);
    if (ui.strategy.textContent !== strategy) ui.faults.value = faultsFor(row); // the address names another one
    setText(ui.strategy, strategy);
    if (document.activeElement !== ui.stock) ui.stock.value = stock;
    ui.actors.value = quantities.length;
    setText(ui.goal, goal(row, stock, quantities));
    setText(ui.why, `${row.title}. ${GUARANTEES[row.guarantee].title}: ${GUARANTEES[row.guarantee].means}.`);
  }

  // Each line with the names of the orders whose next step it is.
  function drawCode() {
    const lines = codeOf(rows.get(state.strategy), state.steps, ui.language.value);
    ui.listing.replaceChildren(
      ...lines.map(({ step: one, text }, i) => {
        const at = lines[i - 1]?.step === one ? [] : state.orders.filter(({ next }) => next === one);
        return make("li", { class: at.length > 0 ? "is-next" : null }, make("span", { class: "marks" }, ...at.map(({ name }) => make("b", { class: `mark of-${name}` }, name))), make("code", {}, text));
      }),
    );
  }

  function redraw(before = state) {
    view.draw(state, before, turn());
    drawCode();
  }

  function show(next) {
    const before = state;
    state = next;
    prediction.close();
    for (const note of Object.values(notes)) note.check(state);
    showSetting();
    redraw(before);
    enable(ui.next, turn() !== null);
    enable(ui.undo, state.history.length > 1);
    ui.play.hidden = !canGoOn();
    onChange(state);
  }

  // ---- asking the source ----

  function failed(problem, schedule) {
    stop();
    const words = problemWords(problem, schedule);
    onStatus(problem.status && problem.name !== "backend-unavailable" ? "refused" : "no answer", words);
    onProblem(words, problem, schedule);
  }

  // One question at a time; further ones are ignored until it is answered. Returns the answer, or null.
  async function ask(question) {
    if (busy) return null;
    busy = true;
    element.setAttribute("aria-busy", "true");
    const late = setTimeout(() => onStatus("working …"), LATE_MS);
    try {
      working = source.steps(question);
      const answer = await working;
      onStatus("ready");
      return answer;
    } catch (problem) {
      failed(problem, question.schedule);
      return null;
    } finally {
      clearTimeout(late);
      busy = false;
      element.removeAttribute("aria-busy");
    }
  }

  // Shows the state after SCHEDULE. Returns it, or null after a call of onProblem.
  async function load(schedule) {
    const next = await ask({ schedule, every_step: ui.every.checked });
    if (next) show(next);
    return next;
  }

  // ---- the plan: what was found, or undone ----

  // Where an order's rows follow there is no stop before them, unless every step is wanted.
  function stopsOf(full) {
    const inserts = new Set(full.told.filter(({ step }) => step === "insert").map(({ move }) => move));
    return full.history.map((schedule, move) => ({ schedule, move })).filter(({ move }) => ui.every.checked || !inserts.has(move + 1));
  }

  function follow(full, move) {
    plan = stopsOf(full);
    planAt = plan.findLastIndex((stopAt) => stopAt.move <= move);
  }

  function forgetPlan() {
    plan = null;
    stop();
  }

  // The plan to here, if there is none yet.
  function remember() {
    stop();
    if (!plan) follow(state, state.history.length - 1);
  }

  async function goAlong(at) {
    planAt = at;
    return (await load(plan[at].schedule)) !== null;
  }

  // ---- moves ----

  async function makeMove(name, what) {
    forgetPlan();
    mover = name;
    const move = what === "step" ? name : what === "end" ? `${name}>end` : `${name}!${what}`;
    const next = await ask({ schedule: state.schedule, move, every_step: ui.every.checked });
    if (next) show(next);
    return next;
  }

  async function act(name, what) {
    const order = orderOf(name);
    const allowed = what === "step" || what === "end" ? order.can.step : order.can[what];
    if (!allowed || busy) return;
    stop();
    const others = state.orders.some((one) => one.name !== name && one.begun);
    if (what === "step" && order.next === "read" && others && ui.ask.checked && prediction.asked() !== name) prediction.ask(name);
    else await makeMove(name, what);
  }

  // The space bar, and what a presenter sends.
  async function step() {
    if (busy || !state) return;
    if (prediction.asked()) await makeMove(prediction.asked(), "step");
    else if (canGoOn()) await goAlong(planAt + 1);
    else if (turn()) await act(turn(), "step");
  }

  // A digit or w: the answer of a question that is open, else a step of the order with this number.
  function press(key) {
    const order = state?.orders[Number(key) - 1];
    if (prediction.asked()) prediction.choose(key);
    else if (order) act(order.name, "step");
  }

  async function undo() {
    if (busy || !state || state.history.length < 2) return;
    remember();
    if (planAt > 0) await goAlong(planAt - 1);
  }

  async function goTo(move) {
    if (busy) return;
    remember();
    await goAlong(plan.findLastIndex((stopAt) => stopAt.move <= move));
  }

  // From the beginning, along the same steps.
  async function again() {
    if (busy) return;
    remember();
    await goAlong(0);
    ui.next.focus();
  }

  async function restart() {
    if (busy || !state) return;
    forgetPlan();
    mover = null;
    await load(settingsOf(state.schedule));
  }

  // ---- playing ----

  function stop() {
    clearTimeout(playing);
    playing = null;
    setText(ui.play, "Play");
  }

  function play() {
    if (playing !== null || !plan) {
      stop();
      return;
    }
    setText(ui.play, "Stop");
    const go = async () => {
      if (!canGoOn() || !(await goAlong(planAt + 1))) stop();
      else if (playing !== null) playing = setTimeout(go, PLAY_MS);
      if (plan && !canGoOn()) stop();
    };
    playing = setTimeout(go, 0);
  }

  // ---- find me an oversell ----

  async function find() {
    if (busy || !state) return;
    const mine = (searching = {});
    busy = true;
    stop();
    const settings = settingsOf(state.schedule);
    const say = (text) => searching === mine && notes.found.say(text);
    say("Running all schedules …");
    let result = null;
    try {
      result = await source.search({ schedule: settings, faults: ui.faults.value }, () => say("All explorers are busy; this search waits …"));
    } catch (problem) {
      say("");
      if (searching === mine) onProblem(problemWords(problem, settings), problem, settings);
    }
    if (searching !== mine) return; // another schedule is shown by now
    endSearch();
    if (!result) return;
    const shown = result.witness ? await walk(result.witness.replay) : state;
    const ofPlan = plan;
    if (!shown) return notes.found.clear();
    // True along the schedule that was found; if there is none, until the next step.
    notes.found.say(found(result, setting(settings)), (now) => (result.witness ? plan === ofPlan : now === shown));
    if (result.witness) ui.next.focus(); // so that the space bar goes on
  }

  function endSearch() {
    searching = null;
    busy = false;
  }

  // What comes from outside, as an address does, ends a search and waits for a step.
  async function interrupt() {
    forgetPlan();
    if (searching) endSearch();
    notes.found.clear();
    while (busy) await working.catch(() => {});
  }

  // Shows the beginning of SCHEDULE, and goes along it with each next step. Returns the state, or null.
  async function walk(schedule) {
    const full = await ask({ schedule });
    if (!full) return null;
    follow(full, 0);
    return (await goAlong(0)) ? state : null;
  }

  // ---- setting up ----

  async function change(part) {
    const next = { ...setting(state?.schedule ?? FIRST), ...part };
    forgetPlan();
    mover = null;
    if (!(await load(compose(next))) && state) showSetting();
  }

  // Rows of GET /strategies. Called before load().
  function fillStrategies(list) {
    for (const row of list) rows.set(row.name, row);
  }

  // Lets the user choose by the map, as OPTIONS of strategy_map.js say.
  function choose(options) {
    openMap({
      rows: () => [...rows.values()].filter((row) => row.explorable),
      first: state?.strategy ?? setting(FIRST).strategy,
      refresh: async () => fillStrategies(await source.strategies()),
      links: false,
      ...options,
    });
  }

  async function chooseStrategy(strategy) {
    if (busy) throw new Error("A search is in progress; try again when it has ended.");
    ui.faults.value = faultsFor(rows.get(strategy));
    await change({ strategy });
  }

  function setBeside(strategy) {
    beside = strategy;
    setText(ui.beside, strategy || "…");
    ui["beside-end"].hidden = !strategy;
    onBeside(strategy);
  }

  // Nothing can be shown of SCHEDULE.
  function showUnavailable(schedule) {
    const { strategy } = setting(schedule);
    setText(ui.strategy, strategy);
    setText(ui.goal, `${strategy} cannot be stepped through now.`);
  }

  if (tools) {
    ui["strategy-open"].addEventListener("click", () => choose({ title: "Strategies", note: "The orders start again.", applied: () => state?.strategy ?? "", verb: "Apply", apply: chooseStrategy }));
    ui["beside-open"].addEventListener("click", () =>
      choose({
        title: "Compare with",
        note: "It runs the same schedule.",
        applied: () => beside,
        obstacle: (row) => (row.name === state?.strategy ? `${row.name} is the strategy that you compare.` : null),
        verb: "Compare with",
        apply: setBeside,
      }),
    );
    ui["beside-end"].addEventListener("click", () => {
      setBeside("");
      ui["beside-open"].focus();
    });
  }
  ui.stock.addEventListener("change", () => ui.stock.reportValidity() && change({ stock: ui.stock.valueAsNumber }));
  ui.actors.addEventListener("change", () => {
    const { quantities } = setting(state.schedule);
    change({ quantities: Array.from({ length: Number(ui.actors.value) }, (_, i) => quantities[i] ?? quantities.at(-1)) });
  });
  for (const name of ["sent", "whole", "language"]) ui[name].addEventListener("change", () => state && redraw());
  for (const [name, pressed] of Object.entries({ next: step, undo, restart, find, play })) ui[name].addEventListener("click", pressed);
  ui.faults.addEventListener("change", notes.found.clear); // the search had another fault
  ui.copy.addEventListener("click", async () => {
    const shown = state;
    const copied = await copy(addressOf(state?.schedule ?? FIRST), ui["copy-text"]);
    notes.copied.say(copied ? "Copied." : "This browser does not let the page copy. The address is selected: press Ctrl+C.", (now) => now === shown);
  });

  return {
    load: (schedule) => interrupt().then(() => load(schedule)),
    walk: (schedule) => interrupt().then(() => walk(schedule)),
    step, undo, restart, find, play, press, closeQuestion: prediction.close, fillStrategies, setBeside, showSetting, showUnavailable,
    row: (strategy) => rows.get(strategy),
    state: () => state,
  }; // prettier-ignore
}
