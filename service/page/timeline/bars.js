// The bars of the timeline, one for each order, and the elements that stay while the picture changes.
import { byId, make, makeSvg } from "../shared/dom.js";
import { AMPLE } from "../workshop/figures.js";
import { QUEUED_US } from "../workshop/overlaps.js";
import { px, unit } from "./size.js";
import { describe, isOrder, isWitness, laneKey, others, view } from "./view.js";

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
  if (order.queued > QUEUED_US) group.append(makeSvg("rect", { class: "queue", x: at(order.first), y: y + px.BAR + 5 * unit, width: at(order.start) - at(order.first), height: 2 * unit }));
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

const pattern = (id, line, turn = 45) =>
  makeSvg("pattern", { id, width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: `rotate(${turn})` },
    makeSvg("rect", { class: `${line}-ground`, width: 6, height: 6 }),
    makeSvg("rect", { class: line, width: 3, height: 6 }));

// The parts that stay while the picture changes, so that neither the focus nor a bar is lost: {svg, back, bars, front, labels, scroll}
export let canvas = null;
export let bars = new Map(); // key of an order → {group, look, place}: what is drawn

export function dropCanvas() {
  canvas = null;
}

// Makes the parts, unless they are there.
export function makeCanvas() {
  if (canvas) return canvas;
  const [back, all, front] = [makeSvg("g"), makeSvg("g"), makeSvg("g")];
  const svg = makeSvg("svg", { role: "group", "aria-label": "Orders on their workers' lanes" },
    makeSvg("defs", {}, pattern("hatch-overlap", "hatch-overlap"), pattern("hatch-wait", "hatch-wait"), pattern("hatch-row", "hatch-row", -45)), back, all, front);
  const labels = make("div", { class: "lane-labels", "aria-hidden": "true" });
  const scroll = make("div", { class: "lanes-scroll", tabindex: "0", role: "region", "aria-label": "Timeline, scrolls sideways" }, svg);
  byId("lanes").replaceChildren(labels, scroll);
  bars = new Map();
  canvas = { svg, back, bars: all, front, labels, scroll };
  return canvas;
}

export let refocusing = false; // a bar that was drawn again gets its focus back, which does not choose it

// Draws what is new or looks different, moves what has another place, and removes the rest.
export function drawBars(lanes) {
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
