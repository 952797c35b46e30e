// The page: looks at the service about once a second, and hands what it sees to the parts.
import { call } from "./api.js";
import { setUpClass } from "./class.js";
import { alertUser, byId, setText, tell } from "./dom.js";
import { showFigures } from "./figures.js";
import { isRunning, rateOf, runLoad, setUpLoad } from "./load.js";
import { setUpLooks } from "./looks.js";
import { buyMany, buyOne, newSale, setUpOrders } from "./orders.js";
import { completeRun, setUpResults } from "./results.js";
import { setUpStrategies, showSettings } from "./strategies.js";
import { setUpTimeline, showTraces, showWitness } from "./timeline.js";

const BUSY_MS = 700; // between looks while something happens …
const IDLE_MS = 2500; // … and while nothing does
const LIVELY_MS = 4000; // so long after the user has done something
const TRACES = 1000; // orders in the timeline, of each process
const TRACES_BUSY = 60; // while a load runs, only the newest can be followed by eye

const asked = Number(new URLSearchParams(location.search).get("product")) || null;
const shop = {
  asked, // the product that the address names, or null
  product: asked ?? 1,
  own: false, // it is this page's own, with settings of its own
  learner: false, // and all that this page may change
  traced: null, // the service's count of traced orders when we got its traces
  wanted: 0, // how many we had asked for
  traces: null, // of this service
  others: { run: null, instances: [] }, // of the processes of the last run
  lastRate: null,
  lastBooks: "",
  loaded: false, // a run goes on
  look,
};

let timer;
let looking = false;
let again = false;
let livelyUntil = 0;

function pulse(text, good) {
  const place = byId("pulse");
  setText(place, text);
  place.classList.toggle("is-away", !good);
}

// The traces of a run's other processes are fetched once, when it has ended.
async function fetchOthers(run) {
  if (!run || run.state === "running" || run.product_id !== shop.product || shop.others.run === run.id) return;
  shop.others = { run: run.id, instances: (await call("GET", `/runs/${run.id}/traces`)).instances };
}

function showLive(live) {
  const running = live.run?.state === "running" ? live.run : null;
  shop.loaded = running !== null;
  showSettings(live.settings);
  setText(byId("instance"), `this is ${live.instance}`);
  const ours = running && running.product_id === shop.product;
  if (ours) shop.lastRate = running.load?.phase === "throughput" ? (rateOf(running.load) ?? shop.lastRate) : shop.lastRate;
  showFigures(live.books, shop.lastRate);
  if (live.problem === "no-such-product") alertUser(`There is no product ${shop.product}.`);
  pulse(live.problem === "backend-unavailable" ? "the database is away" : running ? "a run goes on" : "live", live.problem !== "backend-unavailable");

  const news = live.traces !== null;
  if (news) shop.traces = live.traces;
  const books = JSON.stringify(live.books);
  if (shop.traces && (news || books !== shop.lastBooks))
    showTraces([shop.traces, ...shop.others.instances], live.sale_us, ours ? null : live.books?.witness, shop.wanted);
  const changed = news || books !== shop.lastBooks;
  shop.lastBooks = books;
  return changed || running !== null;
}

async function lookOnce() {
  const wanted = shop.loaded || isRunning() ? TRACES_BUSY : TRACES;
  const known = shop.wanted === wanted && shop.traced !== null ? `&traced=${shop.traced}` : "";
  try {
    const live = await call("GET", `/live?product_id=${shop.product}&traces=${wanted}${known}`);
    await fetchOthers(live.run);
    shop.wanted = wanted;
    shop.traced = live.traced;
    return showLive(live);
  } catch (problem) {
    pulse(problem.status ? problem.message : "the service does not answer; trying again", false);
    return false;
  }
}

// The user has done something.
function look() {
  livelyUntil = Date.now() + LIVELY_MS;
  keepLooking();
}

// Looks now, and again after a while; one look at a time, and none while nobody looks at the page.
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
  if (!document.hidden) timer = setTimeout(keepLooking, busy || Date.now() < livelyUntil ? BUSY_MS : IDLE_MS);
}

async function onRunEnd(run) {
  completeRun(run);
  shop.lastRate = run.rows.at(-1)?.orders_per_s ?? null;
  shop.traced = null; // the sale's traces, all of them
  if (run.state === "cancelled") await newSale(shop);
}

setUpLooks({
  b: () => buyOne(shop),
  n: () => buyMany(shop),
  l: () => runLoad(shop),
  r: () => newSale(shop),
  w: showWitness,
});
try {
  await setUpClass(shop);
} catch (problem) {
  alertUser(`The service does not say whose product this is: ${problem.message}`);
}
byId("timeline-chrome").href = `/traces?format=chrome&limit=1000&product_id=${shop.product}`;
setUpResults();
setUpTimeline();
setUpOrders(shop);
document.addEventListener("visibilitychange", () => document.hidden || keepLooking());
keepLooking();
try {
  await setUpStrategies(shop, () => {
    shop.lastRate = null;
    return newSale(shop);
  });
  setUpLoad(shop, onRunEnd);
  tell("Ready.");
  look();
} catch (problem) {
  alertUser(`The strategies cannot be read: ${problem.message}`);
}
