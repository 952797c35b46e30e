// The timeline: recent orders as bars on their workers' lanes, overlaps and the witness marked, each order's steps on demand.
import { byId, make, makeSvg, micros, plural, setText } from "../shared/dom.js";
import { merge, noteWaits, orderOf, overlapsOf, putTogether } from "./overlaps.js";
import { AMPLE } from "./figures.js";
import { scheduleOf } from "./pair.js";
import { call } from "../shared/api.js";
import { walkAddress } from "../steps/schedule_text.js";

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
const SMALLEST = 0.5; // of the page's text; below this the lanes scroll
let px; // the sizes as they are now
let unit = 1;

function setUnit(size) {
  if (px && size === unit) return;
  unit = size;
  px = Object.fromEntries(Object.entries(SIZES).map(([name, size]) => [name, size * unit]));
  byId("lanes").style.fontSize = `${16 * unit}px`;
}

// The picture uses the font size of the page. The projector view cannot scroll, so there the picture shrinks until all lanes are visible.
function measure() {
  const place = byId("lanes");
  const size = parseFloat(getComputedStyle(document.documentElement).fontSize) / 16;
  if (!px || view.orders.length === 0 || getComputedStyle(place).overflowY !== "auto") return setUnit(size);
  const scrollbar = canvas ? canvas.scroll.offsetHeight - canvas.scroll.clientHeight : 0;
  const most = (place.clientHeight - scrollbar) / (lanesOf(view.orders).height / unit);
  setUnit(Math.min(Math.max(Math.floor(most * 50) / 50, SMALLEST * size), size));
}

// kind, what it means, and what the projector view has no room for
const LEGEND = [
  ["wait", "waits for the lock"],
  ["lock", "takes the lock"],
  ["row", "waits for the row", ", which another order has locked"],
  ["read", "reads (the number is the stock that it read)"],
  ["think", "think time"],
  ["write", "writes"],
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
  second: null, // key of a second one, chosen with Shift, to make a pair
  told: null, // key of the order whose steps are shown: it, or the one below the pointer
  pinned: false, // the user looks at it: nothing moves
  waiting: null, // what came meanwhile
  scale: null,
};

const LABELS_EM = 8.8; // as timeline.css has it
const fitting = () => Math.max(byId("lanes").clientWidth - LABELS_EM * 16 * unit - 6, 200);

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
  const wanted = Math.max(fit, Math.min(px.WANTED_BAR / usual, 20000 / length), 1e-5);
  // A new order hardly changes the scale. Keep the scale while it is nearly the same, so that the drawn bars need not change. Do not keep it
  // if the picture would then be wider than its place although it could fit.
  const last = view.scale && !view.fresh && px === view.scale.px ? view.scale.perMicro : 0;
  const stays = wanted > fit && wanted > last * 0.7 && wanted < last * 1.4 && last >= fit;
  const perMicro = view.zoom ?? (stays ? last : wanted);
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
  // The other way: the time at a place. Within a cut it is where the cut begins.
  const timeAt = (at) => {
    const piece = pieces.findLast((one) => one.x <= at) ?? pieces[0];
    return Math.min(piece.from + Math.max(at - piece.x, 0) / perMicro, piece.to);
  };
  return { place, timeAt, pieces, width: Math.max(x - px.GAP, 1), perMicro, fit, px };
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
  return { lanes, height: y + 6 * unit };
}

function describe(order) {
  const overlap = view.overlaps.get(order.key);
  const parts = [
    order.id ? `order ${order.id}${others(order) > 1 ? ` and ${others(order) - 1} more in one transaction` : ""}` : `an order that was not placed: ${order.outcome}`,
    `worker ${order.worker} of ${order.instance}`,
    order.seen === null ? null : `read ${order.seen}`,
    order.waited ? `${order.waited.step} for ${micros(order.waited.to - order.waited.from)}` : null,
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

// What a bar shows apart from its place, as text: while this is the same, the bar need not be drawn again.
function lookOf(order) {
  const overlap = view.overlaps.get(order.key);
  const waited = order.waited ? `${order.waited.from} ${order.waited.to}` : "";
  return `${describe(order)}|${isOrder(order)}|${overlap?.ranges.join(" ") ?? ""}|${waited}|${view.scale.perMicro}|${unit}`;
}

// The bar of an order at the place 0, 0; draw() moves it. An order never lies across a cut, so all its times have one scale.
function drawOrder(order) {
  const y = 0;
  const overlap = view.overlaps.get(order.key);
  const group = makeSvg("g", {
    class: ["order", isOrder(order) ? "" : "is-refused", isWitness(order) ? "is-witness" : "", overlap?.same.length ? "is-same" : ""].join(" "),
    role: "button",
    tabindex: "-1",
    "aria-label": describe(order),
    "aria-pressed": "false",
    "data-key": order.key,
  });
  const at = (us) => (us - order.start) * view.scale.perMicro;
  const left = 0;
  for (const [from, to] of order.holds)
    group.append(makeSvg("rect", { class: "hold", x: at(from), y: y - 3 * unit, width: Math.max(at(to) - at(from), 1), height: 3 * unit }));
  for (const { kind, from, to } of order.shown)
    if (to > from) group.append(makeSvg("rect", { class: `segment is-${kind}`, x: at(from), y, width: Math.max(at(to) - at(from), 0.4), height: px.BAR }));
  for (const [from, to] of overlap?.ranges ?? [])
    group.append(makeSvg("rect", { class: "overlap", x: at(from), y: y + px.BAR, width: Math.max(at(to) - at(from), 1.5), height: 5 * unit }));
  group.append(makeSvg("rect", { class: "outline", x: left, y, width: Math.max(at(order.end) - left, 2), height: px.BAR, rx: 3 }));
  const width = at(order.end) - left;
  const text = `${order.seen}${others(order) > 1 ? ` ×${others(order)}` : ""}`;
  if (order.seen !== null && order.seen < AMPLE && width >= px.TEXT_FROM)
    group.append(makeSvg("text", { class: "seen", x: Math.min(at(order.readEnd) + 3, left + width - (4 + 7 * text.length) * unit), y: y + px.BAR - 4 * unit }, text));
  return group;
}

// The two orders of the witness, if the picture has both.
function witnessPair() {
  const pair = (view.witness?.orders ?? []).map((id) => view.orders.find((order) => order.id === id && order.outcome === "created"));
  return pair.length === 2 && pair.every((order) => order?.readEnd) ? pair : null;
}

// The witness is offered until it is shown.
function offerWitness() {
  const pair = witnessPair();
  byId("timeline-witness").hidden = !pair || pair.some(({ key }) => key === view.chosen);
}

function drawWitness(svg, lanes, place) {
  const pair = witnessPair();
  if (!pair) return;
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

const pattern = (id, line, turn = 45) =>
  makeSvg("pattern", { id, width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: `rotate(${turn})` },
    makeSvg("rect", { class: `${line}-ground`, width: 6, height: 6 }),
    makeSvg("rect", { class: line, width: 3, height: 6 }));

// The parts that stay while the picture changes, so that neither the focus nor a bar is lost: {svg, back, bars, front, labels, scroll}
let canvas = null;
let bars = new Map(); // key of an order → {group, look, place}: what is drawn

function makeCanvas() {
  const [back, all, front] = [makeSvg("g"), makeSvg("g"), makeSvg("g")];
  const svg = makeSvg("svg", { role: "group", "aria-label": "Orders on their workers' lanes" },
    makeSvg("defs", {}, pattern("hatch-overlap", "hatch-overlap"), pattern("hatch-wait", "hatch-wait"), pattern("hatch-row", "hatch-row", -45)), back, all, front);
  const labels = make("div", { class: "lane-labels", "aria-hidden": "true" });
  const scroll = make("div", { class: "lanes-scroll", tabindex: "0", role: "region", "aria-label": "Timeline, scrolls sideways" }, svg);
  byId("lanes").replaceChildren(labels, scroll);
  bars = new Map();
  return { svg, back, bars: all, front, labels, scroll };
}

// Draws what is new or looks different, moves what has another place, and removes the rest.
// The projector view explains only what is drawn.
function markLegend(orders) {
  const used = new Set();
  for (const order of orders) {
    for (const { kind, from, to } of order.shown) if (to > from) used.add(kind);
    if (order.holds.length > 0) used.add("hold");
    if (view.overlaps.get(order.key)?.ranges.length > 0) used.add("overlap");
  }
  for (const item of byId("legend").children) item.classList.toggle("is-unused", used.size > 0 && !used.has(item.dataset.kind));
}

let refocusing = false; // a bar that was drawn again gets its focus back, which does not choose it

function drawBars(lanes) {
  const next = new Map();
  const wanted = new Set(view.drawn.map(({ key }) => key));
  for (const [key, { group }] of bars) if (!wanted.has(key)) group.remove();
  let cursor = canvas.bars.firstChild;
  for (const order of view.drawn) {
    const look = lookOf(order);
    let bar = bars.get(order.key);
    if (bar?.look !== look) {
      const group = drawOrder(order);
      if (bar && bar.group === cursor) cursor = cursor.nextSibling;
      const focused = bar?.group === document.activeElement;
      bar?.group.replaceWith(group);
      bar = { group, look, place: "", focused };
    }
    if (bar.group === cursor) cursor = cursor.nextSibling;
    else canvas.bars.insertBefore(bar.group, cursor);
    const place = `translate(${view.scale.place(order.start)} ${lanes.get(laneKey(order)).y})`;
    if (bar.place !== place) bar.group.setAttribute("transform", place);
    if (bar.focused) {
      refocusing = true;
      bar.group.focus({ preventScroll: true });
      refocusing = false;
    }
    next.set(order.key, { group: bar.group, look, place });
  }
  bars = next;
}

function draw() {
  const place = byId("lanes");
  const { orders } = view;
  offerWitness();
  markLegend(orders);
  if (orders.length === 0) {
    canvas = null;
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
  canvas ??= makeCanvas();
  const { svg, back, front, scroll } = canvas;
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
  else scroll.scrollLeft = (atEnd || view.fresh) && !view.pinned ? view.scale.width : offset;
  view.fresh = false;
  markChosen();
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
  const steps = order.shown.map((segment) =>
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
    queued > 1000 ? `waited ${micros(queued)} in the queue, for its turn or a worker` : null,
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
  if (view.chosen === order.key) offerSteps(order);
}

// ---- the pair in steps ----

let explorable = null; // a promise of the names of the strategies that /steps can run, asked for when first needed

function explorableNames() {
  explorable ??= call("GET", "/strategies").then(({ strategies }) => new Set(strategies.filter((row) => row.explorable).map(({ name }) => name)));
  explorable.catch(() => (explorable = null));
  return explorable;
}

// The order that makes a pair with ORDER: the one chosen second; of the witness the other; one that read the same; one that it
// waited for; one whose critical section overlaps.
function partnerOf(order) {
  const created = (other) => other && other !== order && other.outcome === "created" && other.strategy === order.strategy;
  const overlap = view.overlaps.get(order.key);
  const witness = isWitness(order) ? view.orders.find((other) => other !== order && isWitness(other)) : null;
  return [view.byKey.get(view.second), witness, overlap?.same[0], order.waited?.for, overlap?.others[0]].find(created) ?? null;
}

// Puts a link to /steps below what is told of ORDER, if it makes a pair that the explorer can run.
async function offerSteps(order) {
  const other = order.outcome === "created" ? partnerOf(order) : null;
  if (!other || order.instance !== other.instance) return; // the explorer has one process
  const names = await explorableNames().catch(() => new Set());
  if (!names.has(order.strategy) || view.chosen !== order.key || view.told !== order.key || byId("timeline-pair")) return;
  byId("detail").append(make("p", {}, make("a", { id: "timeline-pair", href: walkAddress(scheduleOf(order, other)) }, `Open orders ${order.id} and ${other.id} in steps`)));
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

// ---- wheel and drag ----

// A wheel zooms with Ctrl, and alone once the timeline has the focus: before that it scrolls the page.
function setUpWheel(lanes) {
  let factor = 1;
  let at = 0;
  lanes.addEventListener("wheel", (event) => {
    if (!canvas || event.deltaY === 0 || event.shiftKey || !(event.ctrlKey || lanes.contains(document.activeElement))) return;
    event.preventDefault();
    if (factor === 1) requestAnimationFrame(() => {
      zoomBy(factor, at);
      factor = 1;
    });
    factor *= Math.exp(-Math.max(-100, Math.min(event.deltaY * (event.deltaMode ? 33 : 1), 100)) * 0.003);
    at = event.clientX - canvas.scroll.getBoundingClientRect().left;
  }, { passive: false });
}

const DRAG_FROM = 5; // pixels; less is a click

// A mouse drags the picture sideways. A finger does so anyway. Returns whether the click that comes now ends a drag.
function setUpDrag(lanes) {
  let from = null; // {x, left}, while a button is down
  let dragged = false;
  lanes.addEventListener("pointerdown", (event) => {
    dragged = false;
    if (event.button === 0 && event.pointerType === "mouse" && canvas?.scroll.contains(event.target))
      from = { x: event.clientX, left: canvas.scroll.scrollLeft };
  });
  lanes.addEventListener("pointermove", (event) => {
    if (!from || !canvas) return;
    if (!dragged && Math.abs(event.clientX - from.x) < DRAG_FROM) return;
    if (!dragged) canvas.scroll.setPointerCapture(event.pointerId);
    dragged = true;
    canvas.scroll.classList.add("is-dragged");
    canvas.scroll.scrollLeft = from.left - (event.clientX - from.x);
  });
  const end = () => {
    from = null;
    canvas?.scroll.classList.remove("is-dragged");
  };
  lanes.addEventListener("pointerup", end);
  lanes.addEventListener("pointercancel", end);
  return () => dragged;
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
  byId("legend").replaceChildren(
    ...LEGEND.map(([kind, text, more = ""]) => make("li", { "data-kind": kind }, make("span", { class: `swatch is-${kind}` }), text, make("span", { class: "more" }, more))),
  );
  const lanes = byId("lanes");
  new ResizeObserver(() => {
    const before = unit;
    measure();
    if (unit !== before) draw();
  }).observe(lanes);
  let pressed = false; // a button is down: then the click chooses, and not the focus that comes before it
  const keyAt = (event) => event.target.closest?.("[data-key]")?.dataset.key;
  const isDragged = setUpDrag(lanes);
  setUpWheel(lanes);
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
  addEventListener("resize", () => view.orders.length > 0 && draw());
}
