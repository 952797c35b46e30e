// The timeline in words: one order's steps, the table, and the link that opens a pair of orders in steps.
import { call } from "../shared/api.js";
import { byId, make, micros, plural } from "../shared/dom.js";
import { walkAddress } from "../steps/schedule_text.js";
import { QUEUED_US } from "../workshop/overlaps.js";
import { scheduleOf } from "../workshop/pair.js";
import { isOrder, isWitness, others, view } from "./view.js";

// The orders as a table, while it is open.
export function drawTable() {
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

// The steps of ORDER below the lanes; null: of none.
export function showDetail(order) {
  const place = byId("detail");
  view.told = order?.key ?? null;
  if (!order) {
    place.replaceChildren();
    return;
  }
  const overlap = view.overlaps.get(order.key);
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
    order.queued > QUEUED_US ? `waited ${micros(order.queued)} in the queue, for its turn or a worker` : null,
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

// Puts a link to /steps below the steps of ORDER, if the explorer can run ORDER together with another one.
async function offerSteps(order) {
  const other = order.outcome === "created" ? partnerOf(order) : null;
  if (!other || order.instance !== other.instance) return; // the explorer has one process
  const names = await explorableNames().catch(() => new Set());
  if (!names.has(order.strategy) || view.chosen !== order.key || view.told !== order.key || byId("timeline-pair")) return;
  byId("detail").append(make("p", {}, make("a", { id: "timeline-pair", href: walkAddress(scheduleOf(order, other)) }, `Open orders ${order.id} and ${other.id} in steps`)));
}
