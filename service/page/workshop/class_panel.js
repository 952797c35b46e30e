// The teacher's panel of the class: the learners, the places, the load run, and the buttons that end a place or the run, or
// replace the class code.
import { adminToken, call } from "../shared/api.js";
import { byId, make, plural, setText, tell, whole } from "../shared/dom.js";

const LOOK_MS = 3000; // between two lists, while the panel is open and the page is visible
const NOW_MS = 10000; // a page that is open calls more often than this

// The learner's name on the class board, if there is one, and the number of the place.
const named = ({ name, number }) => (name ? `${name} (place ${number})` : `Sandbox ${number}`);

const rows = new Map(); // a learner's line, by product
let timer;
let latest = null; // the list that is shown

// The text for a failed call. GONE: the text for a 404.
function sentence(problem, gone) {
  switch (problem.status) {
    case 401:
      return "The service does not accept this page's token any more. Reload the page, and enter the teacher's token that the service printed at its start.";
    case 403:
      return "The service refuses calls from a page at this address. Open the page at an address that the service printed at its start.";
    case 404:
      return gone;
    case 503:
      return "The service is too busy to answer. Try again in a moment.";
    default:
      return problem.message;
  }
}

const fail = (text) => setText(byId("class-error"), text ?? "");

// Calls as the teacher. Never asks for the token in a dialog, since a list that updates by itself must not open one.
const ask = (method, path) => call(method, path, undefined, adminToken() ?? "");

function ago(ms) {
  if (ms < NOW_MS) return "seen just now";
  if (ms < 120000) return `seen ${Math.round(ms / 1000)} s ago`;
  return `seen ${Math.round(ms / 60000)} min ago`;
}

const isRunning = (list, product) => list.run?.state === "running" && (product === undefined || list.run.product_id === product);

function newRow(product) {
  const parts = Object.fromEntries(["name", "product", "address", "seen", "orders", "run"].map((name) => [name, make("span", { class: `learner-${name}` })]));
  const button = make("button", { type: "button", class: "small", onclick: () => evict(product) }, "Evict");
  const row = { ...parts, button, item: make("li", {}, ...Object.values(parts), button) };
  rows.set(product, row);
  return row;
}

function showLearner(list, learner) {
  const row = rows.get(learner.product_id) ?? newRow(learner.product_id);
  const name = named(learner);
  setText(row.name, learner.teacher ? `${name} (yours)` : name);
  setText(row.product, `product ${learner.product_id}`);
  setText(row.address, learner.address);
  row.address.title = learner.address;
  setText(row.seen, learner.expired ? `${ago(learner.idle_ms)}; counts as free` : ago(learner.idle_ms));
  setText(row.orders, plural(learner.orders, "order", "orders"));
  setText(row.run, isRunning(list, learner.product_id) ? `load run ${list.run.id}` : "");
  row.button.setAttribute("aria-label", `Evict ${name}`);
  return row.item;
}

function placesOf({ learners, teacher, taken }) {
  const beyond = taken - learners;
  if (beyond > 0) return `all ${learners} places taken, and ${beyond} of the ${teacher} kept for the teacher`;
  return `${taken} of ${learners} places taken, ${teacher} kept for the teacher`;
}

function showRun(list) {
  byId("class-run").hidden = !isRunning(list);
  if (!isRunning(list)) return;
  const { id, product_id: product, load } = list.run;
  const owner = list.sandboxes.find((learner) => learner.product_id === product);
  const whose = owner ? `${named(owner)}, product ${product},` : `product ${product}`;
  const what = load ? `: ${load.strategy}, ${whole(load.created)} orders` : "";
  setText(byId("class-run-text"), `Load run ${id} of ${whose} is in progress${what}.`);
}

function show(list) {
  latest = list;
  setText(byId("class-places"), placesOf(list.places));
  showRun(list);
  showAddresses(list.sandboxes);
  const limit = byId("class-limit");
  if (document.activeElement !== limit) limit.value = list.places.per_address || "";
  byId("class-empty").hidden = list.sandboxes.length > 0;
  const place = byId("learners");
  const items = list.sandboxes.map((learner) => showLearner(list, learner));
  const gone = new Set(rows.keys());
  for (const { product_id: product } of list.sandboxes) gone.delete(product);
  for (const product of gone) {
    rows.get(product).item.remove();
    rows.delete(product);
  }
  // A line that stays where it is keeps the focus.
  items.forEach((item, index) => place.children[index] === item || place.insertBefore(item, place.children[index] ?? null));
}

// The addresses that have several places, each with a button that ends them all.
function showAddresses(sandboxes) {
  const counts = Map.groupBy(sandboxes.filter(({ teacher }) => !teacher), ({ address }) => address);
  const many = [...counts].filter(([, places]) => places.length > 1).sort(([, one], [, other]) => other.length - one.length);
  const key = many.map(([address, places]) => `${address} ${places.length}`).join();
  const list = byId("class-addresses");
  if (list.dataset.key === key) return; // so that a button keeps the focus
  list.dataset.key = key;
  list.replaceChildren(
    ...many.map(([address, places]) => make("li", {}, make("span", {}, `${address}: ${places.length} places`), make("button", { type: "button", class: "small", onclick: () => evictAddress(address) }, `End all of ${address}`))),
  );
}

let round = 0;

// Lists the class now, and again after a while.
async function look() {
  clearTimeout(timer);
  const mine = ++round;
  let again = true;
  try {
    const list = await ask("GET", "/sandboxes");
    if (mine !== round) return; // a later list is on its way
    show(list);
    if (byId("class-error").dataset.from === "list") fail(null);
  } catch (problem) {
    if (mine !== round) return;
    byId("class-error").dataset.from = "list";
    fail(sentence(problem, problem.message));
    again = problem.status !== 401;
  }
  if (again && byId("class-details").open && !document.hidden) timer = setTimeout(look, LOOK_MS);
}

// Runs a button's ACT, then lists the class again. GONE: the text for a 404.
async function change(act, gone) {
  byId("class-error").dataset.from = "button";
  fail(null);
  try {
    await act();
  } catch (problem) {
    fail(sentence(problem, gone));
  }
  await look();
}

const WHAT_FOLLOWS =
  "waiting orders are refused, load runs end, and the places are free. The learner's page says so, and asks for the class code. " +
  "With the code the learner gets another product; to prevent that, make a new class code first.";

function confirmed(title, text) {
  const dialog = byId("evict-dialog");
  setText(byId("evict-title"), title);
  setText(byId("evict-text"), text);
  dialog.returnValue = "";
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "ok"), { once: true });
    dialog.showModal();
    byId("evict-keep").focus();
  });
}

async function evict(product) {
  const learner = latest.sandboxes.find((one) => one.product_id === product);
  const index = latest.sandboxes.indexOf(learner);
  if (!learner || !(await confirmed(`Evict ${named(learner)}?`, `The learner at ${learner.address} loses product ${learner.product_id} at once: ${WHAT_FOLLOWS}`))) return;
  await change(async () => {
    await ask("DELETE", `/sandboxes/${product}`);
    tell(`${named(learner)} with product ${product} was evicted; the place is free.`);
  }, `${named(learner)} was not evicted, because no learner has product ${product} any more.`);
  // The line was removed together with the button that had the focus.
  const lines = byId("learners").querySelectorAll("button");
  if (document.activeElement === document.body) (lines[Math.min(index, lines.length - 1)] ?? byId("class-details").querySelector("summary")).focus();
}

async function evictAddress(address) {
  const places = latest.sandboxes.filter((one) => one.address === address && !one.teacher);
  const names = new Intl.ListFormat("en").format(places.map(named));
  if (!(await confirmed(`End all places of ${address}?`, `${names} lose their products at once: ${WHAT_FOLLOWS}`))) return;
  await change(async () => {
    const { product_ids: ended } = await ask("DELETE", `/sandboxes?address=${encodeURIComponent(address)}`);
    tell(`${plural(ended.length, "place", "places")} of ${address} ended.`);
  });
  if (document.activeElement === document.body) byId("class-details").querySelector("summary").focus();
}

// How many places one address may have.
async function setLimit() {
  const field = byId("class-limit");
  if (!field.reportValidity()) return;
  await change(async () => {
    await call("PUT", "/classroom/limit", { per_address: field.valueAsNumber }, adminToken() ?? "");
    tell(`One address may have ${field.value} places.`);
  });
}

async function endRun() {
  const { id } = latest.run;
  const button = byId("class-run-end");
  button.disabled = true;
  await change(async () => {
    const run = await ask("DELETE", `/runs/${id}`);
    tell(run.state === "cancelled" ? `Load run ${id} was ended.` : `Load run ${id} had already ended.`);
  }, `Load run ${id} has already ended, and the service does not keep it any more.`);
  button.disabled = false;
  if (document.activeElement === document.body) byId("class-details").querySelector("summary").focus();
}

// Replaces the class code, and opens the dialog that shows the class code.
async function newCode() {
  const button = byId("class-new-code");
  button.disabled = true;
  await change(async () => {
    const { code } = await call("POST", "/classroom/code", {}, adminToken() ?? "");
    setText(byId("class-code"), code);
    byId("class-open").click();
    tell("The class code was replaced.");
  }, "There is no class.");
  button.disabled = false;
}

// Shows the panel. Call it only for the teacher of a class.
export function setUpClassPanel() {
  byId("class-panel").hidden = false;
  byId("class-run-end").addEventListener("click", endRun);
  byId("class-new-code").addEventListener("click", newCode);
  byId("class-limit").addEventListener("change", setLimit);
  const lookIfSeen = () => byId("class-details").open && !document.hidden && look();
  byId("class-details").addEventListener("toggle", lookIfSeen);
  document.addEventListener("visibilitychange", lookIfSeen);
  byId("class-learners").addEventListener("click", () => {
    byId("class-dialog").close();
    byId("class-details").open = true;
    byId("class-panel").scrollIntoView();
    byId("class-details").querySelector("summary").focus();
  });
}
