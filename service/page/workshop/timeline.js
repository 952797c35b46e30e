// The timeline: recent orders as bars on their workers' lanes, overlaps and the witness marked, each order's steps on demand.
import { byId, make, makeSvg, micros, plural, setText } from "../shared/dom.js";
import { merge, orderOf, overlapsOf, putTogether } from "./overlaps.js";

// Sizes in pixels, where the page's text has 16; all grow with it.
const SIZES = {
  LANE: 26, // height of a lane, of which …
  BAR: 16, // … a bar has so much
  GAP: 34, // of a pause that is cut out
  AXIS: 22,
  NAME: 20, // above each further process
  LABEL: 13, // above the first lane, for the witness
  WANTED_BAR: 34, // a usual order should be so wide
  TEXT_FROM: 18, // a value read is written into what is as wide
};
let px; // the sizes as they are now
let unit = 1;

function measure() {
  unit = parseFloat(getComputedStyle(document.documentElement).fontSize) / 16;
  px = Object.fromEntries(Object.entries(SIZES).map(([name, size]) => [name, size * unit]));
}

const LEGEND = [
  ["wait", "waits for the lock"],
  ["lock", "takes the lock"],
  ["read", "reads, or waits to read (the number is the stock that it read)"],
  ["write", "think time, write, wait for the row"],
  ["insert", "inserts the order"],
  ["commit", "commits"],
  ["after", "after the COMMIT"],
  ["hold", "holds the lock"],
  ["overlap", "critical sections overlap"],
];

const view = {
  orders: [],
  byKey: new Map(),
  overlaps: new Map(),
  witness: null, // {seen, orders: [id, id]}
  all: [], // as they came; ORDERS are those that are shown, DRAWN those that have a bar
  drawn: [],
  capped: false,
  fresh: false, // a new picture: it starts where it matters
  zoom: null, // pixels a microsecond; null: as fits
  chosen: null, // key of the order that the user has chosen
  told: null, // key of the order whose steps are shown: it, or the one below the pointer
  pinned: false, // the user looks at it: nothing moves
  waiting: null, // what came meanwhile
  scale: null,
};

const LABELS_REM = 8.8; // as timeline.css has it
const fitting = () => Math.max(byId("lanes").clientWidth - LABELS_REM * 16 * unit - 6, 200);

// ---- time to place ----

// Maps times to places with long pauses cut out.
function scaleOf(orders) {
  const busy = merge(orders.map((order) => [order.start, order.end]));
  const total = busy.reduce((sum, [from, to]) => sum + to - from, 0);
  const least = Math.max(total * 0.03, 3000);
  const spans = merge(busy.map(([from, to]) => [from, to + least])).map(([from, to]) => [from, to - least]);
  const length = spans.reduce((sum, [from, to]) => sum + to - from, 0) || 1;
  const placed = orders.filter((order) => order.id !== null);
  const durations = (placed.length > 0 ? placed : orders).map((order) => order.end - order.start).sort((a, b) => a - b);
  const usual = durations[Math.floor(durations.length / 2)] || 1;
  const fit = (fitting() - (spans.length - 1) * px.GAP) / length;
  const perMicro = view.zoom ?? Math.max(fit, Math.min(px.WANTED_BAR / usual, 20000 / length), 1e-5);
  let x = 0;
  const pieces = spans.map(([from, to]) => {
    const piece = { from, to, x };
    x += (to - from) * perMicro + px.GAP;
    return piece;
  });
  const place = (us) => {
    let low = 0;
    let high = pieces.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (pieces[middle].from <= us) low = middle;
      else high = middle - 1;
    }
    const piece = pieces[low];
    return piece.x + Math.min(Math.max(us - piece.from, 0), piece.to - piece.from) * perMicro;
  };
  return { place, pieces, width: Math.max(x - px.GAP, 1), perMicro, fit };
}

// ---- drawing ----

const laneKey = ({ instance, worker }) => `${instance}/${worker}`;

// The lanes that have orders, process by process: key → {instance, worker, y, first}, in their order.
function lanesOf(orders) {
  const lanes = new Map();
  let y = px.AXIS + px.LABEL;
  for (const instance of [...new Set(orders.map((order) => order.instance))]) {
    const workers = new Set(orders.filter((order) => order.instance === instance).map((order) => order.worker));
    [...workers].sort((a, b) => a - b).forEach((worker, index) => {
      if (index === 0 && lanes.size > 0) y += px.NAME;
      lanes.set(laneKey({ instance, worker }), { instance, worker, y, first: index === 0 });
      y += px.LANE;
    });
  }
  return { lanes, height: y + 6 };
}

function describe(order) {
  const overlap = view.overlaps.get(order.key);
  const parts = [
    order.id ? `order ${order.id}${others(order) > 1 ? ` and ${others(order) - 1} more in one transaction` : ""}` : `an order that was not placed: ${order.outcome}`,
    `worker ${order.worker} of ${order.instance}`,
    order.seen === null ? null : `read ${order.seen}`,
    micros(order.end - order.start),
    overlap ? `overlaps ${plural(overlap.others.length, "order", "orders")}` : null,
    overlap?.same.length ? `${overlap.same.length} of them read the same ${order.seen}` : null,
    isWitness(order) ? "witness of the oversell" : null,
  ];
  return parts.filter(Boolean).join(", ");
}

/* Written, or accepted and to be written later. */
const isOrder = (order) => order.outcome === "created" || order.outcome === "accepted";
const isWitness = (order) => view.witness !== null && view.witness.orders.includes(order.id) && order.outcome === "created";

function drawOrder(order, y, place) {
  const overlap = view.overlaps.get(order.key);
  const group = makeSvg("g", {
    class: ["order", isOrder(order) ? "" : "is-refused", isWitness(order) ? "is-witness" : "", overlap?.same.length ? "is-same" : ""].join(" "),
    role: "button",
    tabindex: "-1",
    "aria-label": describe(order),
    "aria-pressed": "false",
    "data-key": order.key,
  });
  const at = (us) => place(us);
  const left = at(order.start);
  for (const [from, to] of order.holds)
    group.append(makeSvg("rect", { class: "hold", x: at(from), y: y - 3 * unit, width: Math.max(at(to) - at(from), 1), height: 3 * unit }));
  for (const { kind, from, to } of order.segments)
    if (to > from) group.append(makeSvg("rect", { class: `segment is-${kind}`, x: at(from), y, width: Math.max(at(to) - at(from), 0.4), height: px.BAR }));
  for (const [from, to] of overlap?.ranges ?? [])
    group.append(makeSvg("rect", { class: "overlap", x: at(from), y: y + px.BAR, width: Math.max(at(to) - at(from), 1.5), height: 5 * unit }));
  group.append(makeSvg("rect", { class: "outline", x: left, y, width: Math.max(at(order.end) - left, 2), height: px.BAR, rx: 3 }));
  const width = at(order.end) - left;
  const text = `${order.seen}${others(order) > 1 ? ` ×${others(order)}` : ""}`;
  if (order.seen !== null && width >= px.TEXT_FROM)
    group.append(makeSvg("text", { class: "seen", x: Math.min(at(order.readEnd) + 3, left + width - (4 + 7 * text.length) * unit), y: y + px.BAR - 4 * unit }, text));
  return group;
}

function drawWitness(svg, lanes, place) {
  const pair = (view.witness?.orders ?? []).map((id) => view.orders.find((order) => order.id === id && order.outcome === "created"));
  const known = pair.length === 2 && pair.every((order) => order?.readEnd);
  byId("timeline-witness").hidden = !known;
  if (!known) return;
  const middle = (order) => lanes.get(laneKey(order)).y + px.BAR / 2;
  const [a, b] = pair.toSorted((one, other) => middle(one) - middle(other));
  const x = [place(a.readEnd), place(b.readEnd)];
  const text = `both read ${view.witness.seen}`;
  const width = (text.length * 7.4 + 12) * unit;
  const left = Math.max(Math.min(x[0] - width / 2, view.scale.width - width), 0);
  const top = middle(a) - px.BAR / 2 - 17 * unit;
  svg.append(
    makeSvg(
      "g",
      { class: "witness", "aria-hidden": "true" },
      makeSvg("path", { d: `M${x[0]} ${middle(a)} C${x[0]} ${(middle(a) + middle(b)) / 2}, ${x[1]} ${(middle(a) + middle(b)) / 2}, ${x[1]} ${middle(b)}` }),
      makeSvg("circle", { cx: x[0], cy: middle(a), r: 4 }),
      makeSvg("circle", { cx: x[1], cy: middle(b), r: 4 }),
      makeSvg("rect", { x: left, y: top, width, height: 15 * unit, rx: 7 * unit }),
      makeSvg("text", { x: left + width / 2, y: top + 11.5 * unit, "text-anchor": "middle" }, text),
    ),
  );
}

// A round step of time that is about SIZE pixels wide.
function tickOf(perMicro, size) {
  const raw = size / perMicro;
  const power = 10 ** Math.floor(Math.log10(raw));
  return [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= raw);
}

function drawAxis(svg, height) {
  const { pieces, place, perMicro } = view.scale;
  const zero = pieces[0].from;
  const tick = tickOf(perMicro, 110 * unit);
  pieces.forEach((piece, index) => {
    if (index > 0) {
      const from = pieces[index - 1];
      const x = place(from.to);
      svg.append(
        makeSvg("rect", { class: "cut", x, y: px.AXIS, width: px.GAP, height: height - px.AXIS }),
        makeSvg("text", { class: "tick", x: x + px.GAP / 2, y: 14 * unit, "text-anchor": "middle" }, micros(piece.from - from.to)),
      );
    }
    for (let us = piece.from; us <= piece.to; us += tick) {
      const x = place(us);
      svg.append(makeSvg("line", { class: "grid", x1: x, x2: x, y1: px.AXIS, y2: height }));
      if (x + 60 * unit < place(piece.to) || us === piece.from)
        svg.append(makeSvg("text", { class: "tick", x: x + 3, y: 14 * unit }, micros(us - zero)));
    }
  });
}

const pattern = (id, line) =>
  makeSvg("pattern", { id, width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
    makeSvg("rect", { class: `${line}-ground`, width: 6, height: 6 }),
    makeSvg("rect", { class: line, width: 3, height: 6 }));

function draw() {
  const place = byId("lanes");
  const { orders } = view;
  byId("timeline-witness").hidden = true;
  if (orders.length === 0) {
    place.replaceChildren(make("p", { class: "empty" }, "No orders yet. Buy one, or run a load."));
    drawTable();
    return;
  }
  const before = place.querySelector(".lanes-scroll");
  const atEnd = !before || before.scrollLeft + before.clientWidth >= before.scrollWidth - 40;
  const offset = before?.scrollLeft ?? 0;
  measure();
  view.scale = scaleOf(orders);
  const { lanes, height } = lanesOf(orders);
  const svg = makeSvg("svg", { width: view.scale.width, height, role: "group", "aria-label": "Orders on their workers' lanes" });
  svg.append(makeSvg("defs", {}, pattern("hatch-overlap", "hatch-overlap"), pattern("hatch-wait", "hatch-wait")));
  [...lanes.values()].forEach((lane, index) => {
    if (index % 2 === 1) svg.append(makeSvg("rect", { class: "lane", x: 0, y: lane.y - 5 * unit, width: view.scale.width, height: px.LANE }));
  });
  drawAxis(svg, height);
  for (const order of view.drawn) svg.append(drawOrder(order, lanes.get(laneKey(order)).y, view.scale.place));
  drawWitness(svg, lanes, view.scale.place);

  const labels = [...lanes.values()].map((lane) => {
    const name = lane.first ? make("strong", { title: lane.instance }, lane.instance) : null;
    const label = make("div", { class: "lane-label" }, name, `worker ${lane.worker}`);
    label.style.top = `${lane.y - 3 * unit}px`;
    return label;
  });
  const scroll = make("div", { class: "lanes-scroll", tabindex: "0", role: "region", "aria-label": "Timeline, scrolls sideways" }, svg);
  place.replaceChildren(make("div", { class: "lane-labels", "aria-hidden": "true" }, ...labels), scroll);
  const witness = view.fresh && orders.find((order) => isWitness(order));
  if (witness) reveal(witness);
  else scroll.scrollLeft = (atEnd || view.fresh) && !view.pinned ? view.scale.width : offset;
  view.fresh = false;
  svg.querySelector(`[data-key="${CSS.escape(view.chosen ?? "")}"]`)?.setAttribute("aria-pressed", "true");
  (svg.querySelector(".order[aria-pressed=true]") ?? svg.querySelector(".order:last-of-type"))?.setAttribute("tabindex", "0");
  drawTable();
}

// ---- the same in words ----

function drawTable() {
  const details = byId("timeline-table");
  if (!details.open) return;
  const head = ["Order", "Process, worker", "Outcome", "Read", "Took", "Overlaps", "Read the same"].map((title) => make("th", { scope: "col" }, title));
  const rows = view.orders.map((order) => {
    const overlap = view.overlaps.get(order.key);
    return make("tr", {}, ...[
      order.id ?? "–",
      `${order.instance}, ${order.worker}`,
      order.outcome,
      order.seen ?? "–",
      micros(order.end - order.start),
      overlap?.others.map((other) => other.id).join(" ") ?? "",
      overlap?.same.map((other) => other.id).join(" ") ?? "",
    ].map((text) => make("td", {}, String(text))));
  });
  details.querySelector("div").replaceChildren(make("table", {}, make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...rows)));
}

function showDetail(order) {
  const place = byId("detail");
  view.told = order?.key ?? null;
  if (!order) {
    place.replaceChildren();
    return;
  }
  const overlap = view.overlaps.get(order.key);
  const queued = order.start - order.received;
  const steps = order.segments.map((segment) =>
    make("li", {},
      make("span", { class: `swatch is-${segment.kind}` }),
      segment.step,
      segment.value === null ? null : make("b", {}, ` ${segment.value}`),
      make("span", { class: "quiet" }, ` ${micros(segment.to - segment.from)}`)));
  const facts = [
    `${order.strategy}, worker ${order.worker} of ${order.instance}`,
    isOrder(order) ? null : `not placed: ${order.outcome}`,
    order.seen === null ? null : `read ${order.seen}`,
    others(order) > 1 ? `in one transaction with ${order.together.filter((other) => other !== order && other.id !== null).map((other) => other.id).join(" ")}` : null,
    queued > 1000 ? `waited ${micros(queued)} for a worker` : null,
    order.tries > 1 ? `${order.tries} tries` : null,
    order.fence === null ? null : `fencing token ${order.fence}`,
  ];
  const sentence = !overlap ? "No other critical section overlapped this one."
    : overlap.same.length > 0 ? `Overlaps the critical sections of ${plural(overlap.others.length, "order", "orders")}; ${overlap.same.map((other) => other.id).join(", ")} read the same ${order.seen}.`
    : `Overlaps the critical sections of ${plural(overlap.others.length, "order", "orders")}: ${overlap.others.slice(0, 12).map((other) => other.id).join(", ")}${overlap.others.length > 12 ? " …" : ""}.`;
  place.replaceChildren(
    make("h3", {}, order.id ? `Order ${order.id}` : "Not placed", make("span", { class: "quiet" }, ` ${facts.filter(Boolean).join(" · ")}`)),
    make("p", { class: overlap?.same.length ? "is-bad" : null }, order.outcome === "created" ? sentence : ""),
    make("ol", { class: "flow", "aria-label": "Its steps" }, ...steps),
  );
}

// ---- choosing ----

function choose(key, pin) {
  const svg = byId("lanes").querySelector("svg");
  if (pin) setPinned(true);
  view.chosen = key;
  for (const group of svg?.querySelectorAll('[aria-pressed="true"], [tabindex="0"]') ?? []) {
    group.setAttribute("aria-pressed", "false");
    group.setAttribute("tabindex", "-1");
  }
  const group = svg?.querySelector(`[data-key="${CSS.escape(key)}"]`);
  group?.setAttribute("aria-pressed", "true");
  group?.setAttribute("tabindex", "0");
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
  view.waiting = null;
  showDetail(null);
  keepInAddress(null);
}

// Lets the picture move again.
export function goOn() {
  if (!view.pinned) return;
  setPinned(false);
  view.chosen = null;
  showDetail(null);
  keepInAddress(null);
  if (view.waiting) showOrders(view.waiting);
  else draw();
}

// Left and right go through the orders by time.
function step(by) {
  const index = view.drawn.findIndex((order) => order.key === view.chosen);
  const next = view.drawn[Math.min(Math.max(index + by, 0), view.drawn.length - 1)];
  if (!next) return;
  const group = choose(next.key, true);
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

function zoomBy(factor) {
  if (!view.scale) return;
  const scroll = byId("lanes").querySelector(".lanes-scroll");
  const middle = (scroll.scrollLeft + scroll.clientWidth / 2) / view.scale.width;
  view.zoom = Math.min(Math.max(view.scale.perMicro * factor, view.scale.fit / 2), 1);
  draw();
  const now = byId("lanes").querySelector(".lanes-scroll");
  now.scrollLeft = middle * view.scale.width - now.clientWidth / 2;
}

// ---- what the service sends ----

// Of orders that were placed together one is drawn, for all.
const leads = (order, all) => order.together.find((other) => all || other.id !== null) === order;
const others = (order) => order.together.filter((other) => other.id !== null).length;

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
  const overlap = placed === 0 ? "" : overlapping > 0 ? `; ${overlapping} read between the read and the COMMIT of another` : "; no critical sections overlap";
  return `${new Intl.ListFormat("en").format(names)}: ${view.capped ? "the newest " : ""}${counts}${overlap}`;
}

// The orders that are shown: those that were placed, unless all are wanted or none was.
function pick() {
  const placed = view.all.filter((order) => order.id !== null);
  putTogether(view.all);
  const orders = byId("timeline-all").checked || placed.length === 0 ? view.all : placed;
  view.orders = orders;
  view.drawn = orders.filter((order) => leads(order, orders === view.all));
  view.byKey = new Map(orders.map((order) => [order.key, order]));
  view.overlaps = overlapsOf(orders, view.witness?.orders);
  if (view.told !== null && !view.byKey.has(view.told)) showDetail(null); // it is of a sale that is over
  setText(byId("timeline-note"), note(orders, placed.length));
  draw();
}

function showOrders({ orders, witness, capped }) {
  view.fresh = orders.length === 0 || orders[0].key !== view.all[0]?.key || witness?.orders[0] !== view.witness?.orders[0];
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

export function setUpTimeline() {
  byId("legend").replaceChildren(...LEGEND.map(([kind, text]) => make("li", {}, make("span", { class: `swatch is-${kind}` }), text)));
  const lanes = byId("lanes");
  const keyAt = (event) => event.target.closest?.("[data-key]")?.dataset.key;
  lanes.addEventListener("click", (event) => (keyAt(event) ? choose(keyAt(event), true) : view.pinned && goOn()));
  lanes.addEventListener("pointerover", (event) => {
    if (!view.pinned && keyAt(event)) showDetail(view.byKey.get(keyAt(event)));
  });
  lanes.addEventListener("focusin", (event) => keyAt(event) && keyAt(event) !== view.chosen && choose(keyAt(event), true));
  lanes.addEventListener("keydown", (event) => {
    const act = { ArrowRight: () => step(1), ArrowLeft: () => step(-1), Escape: goOn, Enter: () => keyAt(event) && choose(keyAt(event), true), " ": () => keyAt(event) && choose(keyAt(event), true) }[event.key];
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
  addEventListener("resize", () => view.orders.length > 0 && draw());
}
