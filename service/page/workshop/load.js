// Load runs: started here, run by the service, watched until they end.
import { call } from "../shared/api.js";
import { alertUser, byId, make, plural, setText, short, tell, whole } from "../shared/dom.js";
import { addRun } from "./results.js";
import { GUARANTEES } from "../shared/strategy_words.js";
import { allStrategies, currentStrategy } from "./strategies.js";

const LOOK_MS = 400;
const AGAIN_MS = 1500; // while another run is in progress
const RUN_KEY = "oversell.run"; // so that a reloaded page finds its run again
const PHASES = { throughput: "measuring speed", "sell-out": "selling out" };

let mine = null; // the id of this page's run, while it goes on
let waiting = false; // for another's run to end
let onEnd = () => {};

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

const namesOf = (which) =>
  allStrategies()
    .filter((row) => row.available && (which === "all" || row.guarantee === which))
    .map((row) => row.name);

function chosen() {
  const which = byId("load-which").value;
  return which === "this" ? [currentStrategy().name] : namesOf(which);
}

function showRunning(running) {
  byId("load-start").hidden = running;
  byId("load-cancel").hidden = !running;
  byId("load-progress").hidden = !running;
}

function describe(load) {
  if (!load) return "starting …";
  const place = load.steps > 1 ? `${load.step + 1} of ${load.steps}: ` : "";
  const think = load.think_ms > 0 ? `, think time ${load.think_ms} ms` : "";
  return `${place}${load.strategy}, ${PHASES[load.phase]}${think}: ${whole(load.created)} orders`;
}

function showLoad(load) {
  byId("load-bar").value = load ? (load.step + load.share) / load.steps : 0;
  setText(byId("load-text"), describe(load));
}

// Orders a second of the phase that runs; null where it is too young to tell.
export function rateOf(load) {
  return load && load.elapsed_ms >= 200 ? (load.created * 1000) / load.elapsed_ms : null;
}

function tellRow(row) {
  const speed = row.orders_per_s === null ? "" : `, ${short(row.orders_per_s)} orders/s`;
  const bad = row.oversold > 0 || row.drift > 0;
  if (row.verdict === "unavailable") tell(`${row.strategy} is not available: ${row.reason ?? "its server does not answer"}`);
  else
    tell(
      `${row.strategy}: sold ${whole(row.sold)} of ${whole(row.stock)}, oversold ${whole(row.oversold)}${speed}.` +
        (row.witness ? ` Witness: ${row.witness}.` : ""),
      bad ? "is-bad" : "",
    );
}

async function watch(id) {
  mine = id;
  sessionStorage.setItem(RUN_KEY, id);
  showRunning(true);
  let told = 0;
  let run;
  do {
    run = await call("GET", `/runs/${id}`);
    showLoad(run.load);
    for (; told < run.rows.length; told++) {
      tellRow(run.rows[told]);
      addRun(run, run.rows[told]);
    }
    if (run.state === "running") await sleep(LOOK_MS);
  } while (run.state === "running");
  if (run.state === "failed") alertUser(run.error);
  if (run.state === "cancelled") tell("The run was cancelled.");
  return run;
}

async function start(shop) {
  for (const id of ["load-connections", "load-seconds", "stock", "think"])
    if (!byId(id).reportValidity()) return null;
  const order = {
    strategies: chosen(),
    product_id: shop.product,
    instances: Number(byId("load-instances").value),
    connections: byId("load-connections").valueAsNumber,
    stock: Math.max(1, byId("stock").valueAsNumber),
    duration_ms: Math.round(byId("load-seconds").valueAsNumber * 1000),
    think_ms: Math.min(shop.limits?.run.think_ms ?? 0, byId("think").valueAsNumber),
  };
  if (order.stock > (shop.limits?.run.stock ?? order.stock)) {
    alertUser(`A load may have a stock of ${whole(shop.limits.run.stock)} at most. Enter a smaller stock, and run it again.`);
    return null;
  }
  waiting = true;
  showRunning(true);
  while (waiting) {
    try {
      const run = await call("POST", "/runs", order);
      mine = run.id;
      if (!waiting) await cancel(); // it was pressed while this call was on its way
      const names = order.strategies.length === 1 ? order.strategies[0] : plural(order.strategies.length, "strategy", "strategies");
      const think = order.think_ms < byId("think").valueAsNumber ? ` Its think time is ${order.think_ms} ms, the most that a load may have.` : "";
      tell(`Load: ${names}, ${plural(order.connections, "connection", "connections")}, ${plural(order.instances, "process", "processes")}.${think}`);
      return run.id;
    } catch (problem) {
      if (problem.name !== "run-in-progress") throw problem;
      setText(byId("load-text"), "another run is in progress; this one starts after it …");
      await sleep(AGAIN_MS);
    }
  }
  return null;
}

async function attend(shop, getId) {
  try {
    const id = await getId();
    if (id !== null) await onEnd(await watch(id));
  } catch (problem) {
    alertUser(`The load run did not start. ${problem.message}`);
  }
  mine = null;
  waiting = false;
  sessionStorage.removeItem(RUN_KEY);
  showRunning(false);
  shop.look();
}

export const runLoad = (shop) => (mine === null && !waiting ? attend(shop, () => start(shop)) : undefined);
export const isRunning = () => mine !== null;

async function cancel() {
  waiting = false;
  if (mine === null) return;
  byId("load-cancel").disabled = true;
  try {
    await call("DELETE", `/runs/${mine}`);
  } catch (problem) {
    alertUser(`The run was not cancelled. ${problem.message}`);
  }
  byId("load-cancel").disabled = false;
}

// ENDED is called with a run of this page when it is over.
export function setUpLoad(shop, ended) {
  onEnd = ended;
  const which = byId("load-which");
  which.append(make("option", { value: "this" }, "this strategy"));
  const most = shop.limits?.run.strategies ?? 64;
  const offer = (value, text) => {
    const count = namesOf(value).length;
    which.append(make("option", { value, disabled: count > most ? "" : null }, count > most ? `${text} (${count}; a load may have ${most})` : text));
  };
  for (const [name, { title }] of Object.entries(GUARANTEES)) offer(name, `all strategies: ${title.toLowerCase()}`);
  offer("all", "all strategies");
  byId("load-start").disabled = false; // from now on a click starts a run
  byId("load-start").addEventListener("click", () => runLoad(shop));
  byId("load-cancel").addEventListener("click", cancel);
  const before = sessionStorage.getItem(RUN_KEY);
  if (before !== null) attend(shop, () => Number(before));
}
