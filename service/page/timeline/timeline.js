// The timeline: recent orders as bars on their workers' lanes, overlaps and the witness marked, each order's steps on demand.
import { byId, make, makeSvg, plural, setText, whole } from "../shared/dom.js";
import { noteWaits, orderOf, overlapsOf, putTogether, QUEUED_US } from "../workshop/overlaps.js";
import { bars, canvas, drawBars, dropCanvas, makeCanvas, refocusing } from "./bars.js";
import { drawTable, showDetail } from "./detail.js";
import { lanesOf } from "./lanes.js";
import { drawAxis, drawWitness } from "./marks.js";
import { setUpDrag, setUpWheel } from "./pointer.js";
import { scaleOf } from "./scale.js";
import { px, setUnit, LARGEST, SMALLEST, unit } from "./size.js";
import { isWitness, leads, view, witnessPair } from "./view.js";

// kind, what it means, and what the projector view has no room for
const LEGEND = [
  ["queue", "waits for a worker or its turn"],
  ["wait", "waits for the lock"],
  ["lock", "takes the lock"],
  ["row", "waits for the row", ", which another order has locked"],
  ["read", "reads (the number is the stock that it read)"],
  ["think", "pauses", " (think time)"],
  ["write", "writes"],
  ["insert", "inserts the order"],
  ["commit", "commits", ", with all that it sends together with COMMIT"],
  ["after", "after the COMMIT"],
  ["hold", "holds the lock"],
  ["overlap", "critical sections overlap"],
];

// ---- drawing ----

// The picture uses the font size of the page. The projector view cannot scroll, so there the picture shrinks until all lanes are visible.
function measure() {
  const place = byId("lanes");
  const size = parseFloat(getComputedStyle(document.documentElement).fontSize) / 16;
  if (!px || view.orders.length === 0 || getComputedStyle(place).overflowY !== "auto") return setUnit(size);
  const scrollbar = canvas ? canvas.scroll.offsetHeight - canvas.scroll.clientHeight : 0;
  const most = (place.clientHeight - scrollbar) / (lanesOf(view.orders).height / unit);
  setUnit(Math.min(Math.max(Math.floor(most * 50) / 50, SMALLEST * size), LARGEST * size));
}

// The witness is offered until it is shown.
function offerWitness() {
  const pair = witnessPair();
  byId("timeline-witness").hidden = !pair || pair.some(({ key }) => key === view.chosen);
}

// The projector view explains only what is drawn.
function markLegend(orders) {
  const used = new Set();
  for (const order of orders) {
    for (const { kind, from, to } of order.shown) if (to > from) used.add(kind);
    if (order.holds.length > 0) used.add("hold");
    if (order.queued > QUEUED_US) used.add("queue");
    if (view.overlaps.get(order.key)?.ranges.length > 0) used.add("overlap");
  }
  for (const item of byId("legend").children) item.classList.toggle("is-unused", used.size > 0 && !used.has(item.dataset.kind));
}

function draw() {
  const place = byId("lanes");
  const { orders } = view;
  offerWitness();
  markLegend(orders);
  if (orders.length === 0) {
    dropCanvas();
    place.replaceChildren(make("p", { class: "empty" }, "No orders yet. Buy one, or run a load."));
    drawTable();
    return;
  }
  const before = canvas?.scroll;
  const atEnd = !before || before.scrollLeft + before.clientWidth >= before.scrollWidth - 40;
  const offset = before?.scrollLeft ?? 0;
  measure();
  view.scale = scaleOf(orders);
  const { lanes, height } = lanesOf(orders);
  const { svg, back, front, scroll } = makeCanvas();
  svg.setAttribute("width", view.scale.width);
  svg.setAttribute("height", height);
  back.replaceChildren();
  [...lanes.values()].forEach((lane, index) => {
    if (index % 2 === 1) back.append(makeSvg("rect", { class: "lane", x: 0, y: lane.y - 5 * unit, width: view.scale.width, height: px.LANE }));
  });
  drawAxis(back, height);
  drawBars(lanes);
  front.replaceChildren();
  drawWitness(front, lanes, view.scale.place);

  const labels = [...lanes.values()].map((lane) => {
    const name = lane.first ? make("strong", { title: lane.instance }, lane.instance) : null;
    const label = make("div", { class: "lane-label" }, name, `worker ${lane.worker}`);
    label.style.top = `${lane.y - 3 * unit}px`;
    return label;
  });
  canvas.labels.replaceChildren(...labels);
  const witness = view.fresh && orders.find((order) => isWitness(order));
  if (view.fresh && !witness) place.scrollTop = 0;
  if (witness) reveal(witness);
  else if (view.fresh && !view.pinned) scroll.scrollLeft = view.capped ? view.scale.width : 0;
  else scroll.scrollLeft = atEnd && !view.pinned ? view.scale.width : offset;
  view.fresh = false;
  markChosen();
  drawTable();
}

// ---- choosing ----

// Marks the chosen orders. One bar can be reached by Tab: the chosen one, else the last.
function markChosen() {
  offerWitness();
  for (const group of canvas?.bars.querySelectorAll('[aria-pressed="true"], [tabindex="0"]') ?? []) {
    group.setAttribute("aria-pressed", "false");
    group.setAttribute("tabindex", "-1");
  }
  for (const key of [view.chosen, view.second]) bars.get(key)?.group.setAttribute("aria-pressed", "true");
  (bars.get(view.chosen)?.group ?? canvas?.bars.lastChild)?.setAttribute("tabindex", "0");
}

// SECOND: the order makes a pair with the one that is chosen.
function choose(key, pin, second = false) {
  if (pin) setPinned(true);
  if (second && view.chosen !== null && view.chosen !== key) view.second = key;
  else Object.assign(view, { chosen: key, second: null });
  markChosen();
  if (view.second !== null) {
    showDetail(view.byKey.get(view.chosen));
    return null;
  }
  const group = bars.get(key)?.group;
  showDetail(view.byKey.get(key));
  if (pin) keepInAddress(view.byKey.get(key));
  return group;
}

// ---- an order's address: /#order=184, or with the key of one that was not placed ----

const ANCHOR = "#order=";
let sought = null; // of the address, and not shown yet

function keepInAddress(order) {
  sought = null;
  history.replaceState(null, "", order ? `${ANCHOR}${encodeURIComponent(order.id ?? order.key)}` : location.pathname + location.search);
}

function readAddress() {
  try {
    sought = location.hash.startsWith(ANCHOR) ? decodeURIComponent(location.hash.slice(ANCHOR.length)) : null;
  } catch {
    sought = null;
  }
}

function showSought() {
  const order = sought !== null && view.orders.find(({ id, key }) => String(id) === sought || key === sought);
  if (!order) return;
  byId("timeline").scrollIntoView({ block: "nearest" });
  choose(order.key, true);
  reveal(order);
}

function setPinned(pinned) {
  view.pinned = pinned;
  byId("timeline-resume").hidden = !pinned;
  tellWaiting();
}

// While the picture stands still the figures do not: how many orders it lacks is on the button that shows them.
function tellWaiting() {
  const known = new Set(view.all.map(({ key }) => key));
  const newer = view.waiting ? view.waiting.orders.filter(({ key }) => !known.has(key)).length : 0;
  setText(byId("timeline-resume"), newer > 0 ? `Go on: ${plural(newer, "newer order", "newer orders")}` : "Go on");
}

// What is pinned belongs to another sale, strategy or load than the figures now: the next showTraces shows theirs.
export function letGo() {
  if (!view.pinned) return;
  setPinned(false);
  view.chosen = null;
  view.second = null;
  view.waiting = null;
  showDetail(null);
  keepInAddress(null);
}

// Lets the picture move again.
export function goOn() {
  if (!view.pinned) return;
  setPinned(false);
  view.chosen = null;
  view.second = null;
  showDetail(null);
  keepInAddress(null);
  if (view.waiting) showOrders(view.waiting);
  else draw();
}

// Left and right go through the orders by time, with Shift to the second order of a pair.
function step(by, second) {
  const at = second ? (view.second ?? view.chosen) : view.chosen;
  const index = view.drawn.findIndex((order) => order.key === at);
  const next = view.drawn[Math.min(Math.max(index + by, 0), view.drawn.length - 1)];
  if (!next) return;
  const group = choose(next.key, true, second);
  group?.focus({ preventScroll: true });
  reveal(next);
}

function reveal(order) {
  const scroll = byId("lanes").querySelector(".lanes-scroll");
  const x = view.scale.place(order.start);
  if (x < scroll.scrollLeft + 20 || x > scroll.scrollLeft + scroll.clientWidth - 80)
    scroll.scrollTo({ left: x - scroll.clientWidth / 3, behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
}

export function showWitness() {
  const first = view.orders.find((order) => isWitness(order));
  if (!first) return;
  byId("timeline").scrollIntoView({ block: "nearest" });
  choose(first.key, true)?.focus({ preventScroll: true });
  reveal(first);
}

// Zooms so that the time at AT pixels from the left edge, else in the middle, stays where it is.
function zoomBy(factor, at = null) {
  if (!view.scale || !canvas) return;
  const { scroll } = canvas;
  const offset = at ?? scroll.clientWidth / 2;
  const time = view.scale.timeAt(scroll.scrollLeft + offset);
  view.zoom = Math.min(Math.max(view.scale.perMicro * factor, view.scale.fit), 1);
  draw();
  scroll.scrollLeft = view.scale.place(time) - offset;
}

function zoomAsAtFirst() {
  if (!view.scale) return;
  view.zoom = null;
  view.scale = null;
  draw();
  const order = view.byKey.get(view.chosen);
  if (order) reveal(order);
}

// ---- what the service sends ----

// Whose orders these are and how many. Orders that were placed are counted as the figures count them.
function note(orders, placed) {
  if (orders.length === 0) return "";
  const names = [...new Set(orders.map((order) => order.strategy))];
  const refused = orders.length - placed;
  const counts = [
    placed > 0 || refused === 0 ? plural(placed, "order", "orders") : null,
    refused > 0 ? `${placed > 0 ? "and " : ""}${plural(refused, "refused order", "refused orders")}` : null,
  ].filter(Boolean).join(" ");
  const overlapping = orders.filter((order) => view.overlaps.has(order.key)).length;
  const overlap = placed === 0 ? ""
    : overlapping > 0 ? `; ${overlapping} overlap`
    : orders.some(({ seen }) => seen !== null) ? "; no critical sections overlap" : "; none reads before it writes";
  const hidden = view.all.length - orders.length;
  const more = hidden > 0 ? `; ${whole(hidden)} refused hidden` : "";
  return `${new Intl.ListFormat("en").format(names)}: ${view.capped ? "the newest " : ""}${counts}${overlap}${more}`;
}

// The orders that are shown: those that were placed, unless all are wanted or none was.
function pick() {
  const placed = view.all.filter((order) => order.id !== null);
  putTogether(view.all);
  const orders = byId("timeline-all").checked || placed.length === 0 ? view.all : placed;
  noteWaits(view.all);
  view.orders = orders;
  view.drawn = orders.filter((order) => leads(order, orders === view.all));
  view.byKey = new Map(orders.map((order) => [order.key, order]));
  view.overlaps = overlapsOf(orders, view.witness?.orders);
  if (view.told !== null && !view.byKey.has(view.told)) showDetail(null); // it is of a sale that is over
  setText(byId("timeline-note"), note(orders, placed.length));
  draw();
}

function showOrders({ orders, witness, capped }) {
  view.fresh = !orders.some(({ key }) => key === view.all.at(-1)?.key) || witness?.orders[0] !== view.witness?.orders[0];
  view.waiting = null;
  view.all = orders;
  view.witness = witness;
  view.capped = capped;
  pick();
  showSought();
}

// INSTANCES: [{instance, traces}…], of which only what began after SINCE (µs) counts. BOOKS: as GET /audit has them, or null
// while they change. MOST: how many traces were asked for; if all MOST of them count, there may have been more.
export function showTraces(instances, since, books, most) {
  if (since !== view.since) Object.assign(view, { since, whole: false });
  const witness = books?.witness;
  const capped = instances.some(({ traces }) => traces.length >= most && traces[0].started_us >= since);
  const orders = instances
    .flatMap(({ instance, traces }) => traces.filter((trace) => trace.started_us >= since).map((trace) => orderOf(trace, instance)))
    .sort((a, b) => a.start - b.start);
  const next = { orders, witness: witness ? { seen: witness.stock_seen, orders: witness.orders } : null, capped };
  if (!view.pinned) showOrders(next);
  else {
    view.waiting = next;
    tellWaiting();
  }
}

// The load that made this sale is over: the picture shows all its orders at once.
export function showWhole() {
  Object.assign(view, { whole: true, zoom: null });
}

export function setUpTimeline() {
  byId("legend").replaceChildren(
    ...LEGEND.map(([kind, text, more = ""]) => make("li", { "data-kind": kind }, make("span", { class: `swatch is-${kind}` }), text, make("span", { class: "more" }, more))),
  );
  const lanes = byId("lanes");
  let width = 0; // 0 where it is hidden
  new ResizeObserver(() => {
    const before = [unit, width];
    measure();
    width = lanes.clientWidth;
    if (view.orders.length > 0 && String([unit, width]) !== String(before)) draw();
  }).observe(lanes);
  let pressed = false; // a button is down: then the click chooses, and not the focus that comes before it
  const keyAt = (event) => event.target.closest?.("[data-key]")?.dataset.key;
  const isDragged = setUpDrag(lanes);
  setUpWheel(lanes, zoomBy);
  lanes.addEventListener("click", (event) => {
    if (isDragged()) return;
    if (keyAt(event)) choose(keyAt(event), true, event.shiftKey);
    else if (view.pinned) goOn();
  });
  lanes.addEventListener("dblclick", zoomAsAtFirst);
  lanes.addEventListener("pointerover", (event) => {
    if (!view.pinned && keyAt(event)) showDetail(view.byKey.get(keyAt(event)));
  });
  lanes.addEventListener("pointerdown", () => (pressed = true));
  addEventListener("pointerup", () => (pressed = false));
  addEventListener("pointercancel", () => (pressed = false));
  lanes.addEventListener("focusin", (event) => keyAt(event) && keyAt(event) !== view.chosen && keyAt(event) !== view.second && !pressed && !refocusing && choose(keyAt(event), true));
  lanes.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const enter = () => keyAt(event) && choose(keyAt(event), true);
    const larger = () => zoomBy(1.6);
    const act = { ArrowRight: () => step(1, event.shiftKey), ArrowLeft: () => step(-1, event.shiftKey), Escape: goOn, Enter: enter, " ": enter, "+": larger, "=": larger, "-": () => zoomBy(1 / 1.6), "−": () => zoomBy(1 / 1.6), 0: zoomAsAtFirst }[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });
  byId("timeline-all").addEventListener("change", pick);
  byId("timeline-witness").addEventListener("click", showWitness);
  byId("timeline-resume").addEventListener("click", goOn);
  byId("zoom-in").addEventListener("click", () => zoomBy(1.6));
  byId("zoom-out").addEventListener("click", () => zoomBy(1 / 1.6));
  byId("zoom-fit").addEventListener("click", () => {
    if (!view.scale) return;
    view.zoom = view.scale.fit;
    draw();
  });
  byId("timeline-table").addEventListener("toggle", drawTable);
  readAddress();
  addEventListener("hashchange", () => {
    readAddress();
    showSought();
  });
}
