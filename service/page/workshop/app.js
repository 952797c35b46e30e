// The page: looks at the service a few times a second, and hands what it sees to the parts.
import { call, leaveSandbox } from "../shared/api.js";
import { setUpClass } from "./class.js";
import { alertUser, byId, setText, showPulse, tell } from "../shared/dom.js";
import { showFigures, showSale } from "./figures.js";
import { isRunning, rateOf, runLoad, setUpLoad } from "./load.js";
import { setUpLooks } from "../shared/looks.js";
import { buyMany, buyOne, newSale, setUpOrders } from "./orders.js";
import { completeRun, setUpResults } from "./results.js";
import { setUpStory, showStorySettings } from "./story.js";
import { setUpMap, setUpStrategies, showSettings } from "./strategies.js";
import { goOn, letGo, setUpTimeline, showTraces, showWhole, showWitness } from "../timeline/timeline.js";
import { openView, seesSale, setUpViews } from "./views.js";

const ACTED_MS = 200; // between looks just after the user has done something …
const BUSY_MS = 700; // … while a load goes on …
const GLANCE_MS = 400; // … and while nothing does: then it asks for new traces and changes, without the audit
const AWAY_MS = 2000; // at most, while the service does not answer
const AUDIT_MS = 2500; // after so long it asks for the audit as well
const MANY = 200; // more new traces than this at once are a load
const LIVELY_MS = 4000; // how long the first of these lasts
const TRACES = 1000; // orders in the timeline, of each process
const TRACES_BUSY = 60; // while a load runs, only the newest can be followed by eye

const asked = Number(new URLSearchParams(location.search).get("product")) || null;
const shop = {
  asked, // the product that the address names, or null
  product: asked ?? 1,
  own: false, // it is this page's own, with its own settings
  learner: false, // and all that this page may change
  limits: null, // what its loads and settings may be at most, as GET /classroom has it
  traced: null, // the service's count of traced orders when we got its traces
  wanted: 0, // how many we had asked for
  traces: null, // of this service
  others: { run: null, instances: [] }, // of the processes of the last run
  rate: null, // {run, strategy, value}: orders a second, and which load measured it
  load: null, // {sale, run}: the load that began the sale, as this page last heard of it
  shown: null, // what the timeline shows is of: see sceneOf
  lastBooks: "",
  loaded: false, // a run goes on
  look,
};

let timer;
let looking = false;
let again = false;
let failures = 0; // looks in a row that the service has not answered
let livelyUntil = 0;
let audited = 0; // when we last asked for the audit
let state = null; // what the service said last, of what can change without a new order

// The traces of a run's other processes are fetched once, when it has ended.
async function fetchOthers(run) {
  if (!run || run.state === "running" || run.product_id !== shop.product || shop.others.run === run.id) return;
  shop.others = { run: run.id, instances: (await call("GET", `/runs/${run.id}/traces`)).instances };
}

// The load that began the sale of this product, or null: a sale that a user began belongs to no load.
function loadOf(live) {
  const run = live.run?.product_id === shop.product ? live.run : null;
  const began = run && (run.state === "running" || (run.started_us <= live.sale_us && live.sale_us <= run.ended_us));
  if (began || shop.load?.sale !== live.sale_us) shop.load = { sale: live.sale_us, run: began ? run : null };
  return shop.load.run;
}

// Identifies the sale and the strategy that a picture belongs to: after a change of either, an old picture would be wrong.
const sceneOf = (live) => `${live.sale_us} ${live.settings.name}`;

// The rate that this load has measured for the strategy whose orders are shown.
function rateOfLoad(load, books) {
  if (!load) return null;
  const now = load.state === "running" ? load.load : null;
  const measured = now?.phase === "throughput" ? rateOf(now) : null;
  if (measured !== null) shop.rate = { run: load.id, strategy: now.strategy, value: measured };
  const strategy = now?.strategy ?? books?.strategies[0];
  return shop.rate?.run === load.id && shop.rate.strategy === strategy ? shop.rate.value : null;
}

// Adds the traces that are new to those that the page has; false where the service is another process than before.
function addTraces(news, whole) {
  if (whole || !shop.traces) {
    shop.traces = news;
    return true;
  }
  if (news.pid !== shop.traces.pid) return false;
  const known = new Set(shop.traces.traces.map(keyOf));
  const traces = [...shop.traces.traces, ...news.traces.filter((trace) => !known.has(keyOf(trace)))];
  traces.sort((a, b) => a.started_us - b.started_us);
  shop.traces = { ...news, traces: traces.slice(-shop.wanted) };
  return true;
}

const keyOf = (trace) => `${trace.worker} ${trace.started_us} ${trace.request_id}`;

// ASKED: when the page asked for it (ms).
function showLive(live, asked) {
  const running = live.run?.state === "running" ? live.run : null;
  const load = loadOf(live);
  shop.loaded = running !== null;
  showSettings(live.settings);
  showStorySettings(live.settings, live.books, asked);
  setText(byId("instance"), `this is ${live.instance}`);
  const ours = running && running.product_id === shop.product;
  showFigures(live.books, rateOfLoad(load, live.books));
  showSale(live.books, live.settings.name, load);
  const scene = sceneOf(live);
  if (shop.shown !== null && shop.shown !== scene) letGo();
  const moved = shop.shown !== scene;
  shop.shown = scene;
  if (live.problem === "no-such-product") alertUser(`There is no product ${shop.product}.`);
  if (live.problem === "backend-unavailable") showPulse("no answer", "The database does not answer.");
  else showPulse(running ? "load run" : "live");

  const news = live.traces !== null;
  const books = JSON.stringify(live.books);
  const changed = news || moved || books !== shop.lastBooks;
  if (shop.traces && changed)
    showTraces([shop.traces, ...shop.others.instances], live.sale_us, ours ? null : live.books, shop.wanted);
  shop.lastBooks = books;
}

// The look that costs the service nothing but the call. Returns whether there is something new, which the next look fetches.
async function glance() {
  try {
    const asked = `/live?product_id=${shop.product}&traces=${shop.wanted}&traced=${shop.traced}&since=${shop.traced}&audit=0`;
    const live = await call("GET", asked);
    if (live.traces?.traces.length === 0) shop.traced = live.traced; // of other products
    return (live.traces?.traces.length ?? 0) > 0 || stateOf(live) !== state;
  } catch {
    return true;
  }
}

const stateOf = ({ sale_us, settings, run, owns, instance }) => JSON.stringify([sale_us, settings, run?.id, run?.state, owns, instance]);

async function lookOnce() {
  const idle = failures === 0 && Date.now() < audited + AUDIT_MS && Date.now() >= livelyUntil && !shop.loaded && !isRunning() && shop.traced !== null;
  if (idle && shop.wanted === TRACES && !(await glance())) return null;
  audited = Date.now();
  const wanted = shop.loaded || isRunning() ? TRACES_BUSY : TRACES;
  const whole = shop.wanted !== wanted || shop.traced === null;
  // Under load all pages of a product want the same few traces, which are made once for all of them.
  const since = wanted === TRACES_BUSY ? "" : `&since=${shop.traced}`;
  const known = whole ? "" : `&traced=${shop.traced}${since}`;
  try {
    const live = await call("GET", `/live?product_id=${shop.product}&traces=${wanted}${known}`);
    failures = 0;
    if (shop.learner && live.owns !== shop.product) await leaveSandbox(shop.product);
    await fetchOthers(live.run);
    shop.wanted = wanted;
    shop.traced = live.traced;
    state = stateOf(live);
    const many = (live.traces?.traces.length ?? 0) >= MANY;
    if (live.traces && !addTraces(live.traces, whole || since === "")) shop.traced = null;
    showLive(live, audited);
    return shop.loaded || many;
  } catch (problem) {
    failures++;
    if (problem.status) showPulse("refused", problem.message);
    else showPulse("no answer", "The service does not answer. The page tries again.");
    return false;
  }
}

// The user has done something.
function look() {
  livelyUntil = Date.now() + LIVELY_MS;
  keepLooking();
}

// Looks now, and again after a pause. There is one look at a time, and none while the page is hidden.
async function keepLooking() {
  clearTimeout(timer);
  if (looking) {
    again = true;
    return;
  }
  looking = true;
  let busy;
  do {
    again = false;
    busy = await lookOnce();
  } while (again);
  looking = false;
  const pause = failures > 0 ? Math.min(ACTED_MS * 2 ** failures, AWAY_MS) : Date.now() < livelyUntil ? ACTED_MS : busy ? BUSY_MS : GLANCE_MS;
  if (!document.hidden) timer = setTimeout(keepLooking, pause);
}

async function onRunEnd(run) {
  completeRun(run);
  const last = run.rows.at(-1);
  if (last) shop.rate = { run: run.id, strategy: last.strategy, value: last.orders_per_s };
  shop.traced = null; // the sale's traces, all of them
  showWhole();
  if (run.state === "cancelled") await newSale(shop);
}

// The dialog that had the focus is gone: the keyboard goes on with the first control of the page.
function focusFirst() {
  const canBeUsed = (control) => !control.disabled && control.checkVisibility();
  if (document.activeElement === document.body) [...byId("main").querySelectorAll("button, input")].find(canBeUsed)?.focus();
}

// Where a sale is not shown, no key changes it.
const onSale = (act) => () => seesSale() && act();
setUpLooks({
  b: onSale(() => buyOne(shop)),
  n: onSale(() => buyMany(shop)),
  l: onSale(() => runLoad(shop)),
  r: onSale(() => newSale(shop)),
  w: onSale(showWitness),
  Escape: onSale(goOn),
});
setUpViews();
let joined = false;
try {
  joined = await setUpClass(shop);
} catch (problem) {
  alertUser(`The page could not find out whose product this is. ${problem.message}`);
}
byId("timeline-chrome").href = `/traces?format=chrome&limit=1000&product_id=${shop.product}`;
setUpResults();
setUpTimeline();
setUpOrders(shop);
document.addEventListener("visibilitychange", () => document.hidden || keepLooking());
keepLooking();
try {
  await setUpStrategies(shop);
  const openMap = setUpMap(shop, () => newSale(shop));
  setUpLoad(shop, onRunEnd);
  await setUpStory(shop, () => {
    openView("all");
    openMap();
  });
  tell("Ready.");
  look();
  if (joined) focusFirst();
} catch (problem) {
  alertUser(`The page could not load the strategies. ${problem.message}`);
}
