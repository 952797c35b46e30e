// The page /steps: one step-through, whose schedule the address keeps.
import "../class/news.js";
import { alertUser, byId, showPulse } from "../shared/dom.js";
import { setUpLooks } from "../shared/looks.js";
import { mountBeside } from "./beside_view.js";
import { keepLevel } from "./level.js";
import { liveSource } from "./live_source.js";
import { mountStepper } from "./stepper.js";

const FIRST = "read-write s=1 q=1,1";

const source = liveSource();
let misread = null; // why the address cannot be shown; it then stays as it is, to be corrected
let reading = false; // the address is being read
let walking = false; // after a page with from=start, until the first step: the address stays, so that a reload shows the beginning again
let failure = null; // of the last call
let beside = null; // {strategy, follow, level, stop}: the second strategy, on the same schedule

const stepper = mountStepper(byId("stepper"), {
  source,
  onChange(state) {
    if (!reading) {
      misread = null;
      walking = false;
    }
    followBeside(state);
    keepInAddress();
  },
  onBeside: compareWith,
  onProblem(text, problem) {
    failure = { text, problem };
    alertUser(text);
  },
  onStatus: showPulse,
  addressOf: () => location.href,
});

// "SCHEDULE", with + for spaces, and perhaps "&with=STRATEGY".
function keepInAddress() {
  const state = stepper.state();
  if (misread || !state) return;
  if (!walking) history.replaceState(null, "", `#${state.schedule.replaceAll(" ", "+")}${beside ? `&with=${beside.strategy}` : ""}`);
  document.title = `${state.strategy} · step by step · oversell`;
}

// What the address says: the schedule, the strategy to compare with, or "", and whether the schedule is shown from its beginning.
function addressed() {
  try {
    const [schedule, ...parts] = decodeURIComponent(location.hash.slice(1).replaceAll("+", " ")).split(/&(?=(?:with|from)=)/);
    const strategy = parts.find((part) => part.startsWith("with="))?.slice("with=".length).trim() ?? "";
    return { schedule: schedule.trim() || FIRST, strategy, fromStart: parts.includes("from=start") };
  } catch {
    return { schedule: FIRST, strategy: "", fromStart: false };
  }
}

async function followBeside(state) {
  const followed = beside;
  await followed?.follow(state);
  if (followed === beside) followed?.level();
}

function mountSecond(strategy) {
  const [first, second] = [byId("stepper"), byId("beside-stepper")];
  const follow = mountBeside(second, { source, row: stepper.row(strategy), onProblem: alertUser });
  return { strategy, follow, ...keepLevel(first, second) };
}

// STRATEGY: the second one; "": none.
function compareWith(strategy) {
  beside?.stop();
  beside = strategy ? mountSecond(strategy) : null;
  byId("both").classList.toggle("is-double", beside !== null);
  byId("beside-stepper").hidden = beside === null;
  if (stepper.state()) followBeside(stepper.state());
  keepInAddress();
}

// Shows what the address says. Where that cannot be done the address stays, so that it can be corrected.
async function loadAddressed() {
  const { schedule, strategy, fromStart } = addressed();
  const canCompare = strategy === "" || stepper.row(strategy)?.explorable;
  failure = null;
  misread = canCompare ? null : `'${strategy}' after with= is not a strategy that you can step through.`;
  reading = true;
  walking = fromStart;
  const shown = await (fromStart ? stepper.walk(schedule) : stepper.load(schedule));
  if (!shown && failure) await explainAddress(schedule);
  else if (misread) alertUser(`The address was not understood: ${misread} Correct it in the address bar.`, true);
  const second = canCompare ? strategy : "";
  if (second !== (beside?.strategy ?? "")) stepper.setBeside(second);
  reading = false;
}

async function explainAddress(schedule) {
  const { text, problem } = failure;
  const away = problem.name !== "invalid-schedule";
  misread = text;
  if (!stepper.state() && !away) await stepper.load(FIRST);
  if (stepper.state()) stepper.showSetting();
  else stepper.showUnavailable(schedule);
  alertUser(away ? text : `The address was not understood: ${text} Correct it in the address bar, or choose a strategy.`, true);
}

const answers = Object.fromEntries([..."0123456789w"].map((key) => [key, () => stepper.press(key)]));
const { step, undo, restart, find, play, closeQuestion } = stepper;
const fold = () => (byId("settings").open = !document.documentElement.classList.contains("is-big"));
setUpLooks({
  " ": step, ".": step, ArrowRight: step, PageDown: step, ArrowLeft: undo, PageUp: undo, u: undo, r: restart, f: find, p: play,
  ...answers, Escape: closeQuestion,
}); // prettier-ignore
fold();
byId("big").addEventListener("click", fold); // after looks.js has switched it
addEventListener("hashchange", loadAddressed);
try {
  stepper.fillStrategies(await source.strategies());
  await loadAddressed();
} catch (problem) {
  alertUser(`The page could not load the strategies. ${problem.message}`);
}
