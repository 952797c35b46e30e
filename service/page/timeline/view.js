// What the timeline shows now, and what its parts ask about an order.
import { micros, plural } from "../shared/dom.js";

export const view = {
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
  since: null, // when the sale began, in microseconds
  scale: null, // see scale.js
  whole: false, // the picture shows all orders at once, unless the user zooms
};

export const laneKey = ({ instance, worker }) => `${instance}/${worker}`;

// Written, or accepted and to be written later.
export const isOrder = (order) => order.outcome === "created" || order.outcome === "accepted";
export const isWitness = (order) => view.witness !== null && view.witness.orders.includes(order.id) && order.outcome === "created";

// Of orders that were placed together one is drawn, for all.
export const leads = (order, all) => order.together.find((other) => all || other.id !== null) === order;
// How many of them were placed.
export const others = (order) => order.together.filter((other) => other.id !== null).length;

// The two orders of the witness, if the picture has both.
export function witnessPair() {
  const pair = (view.witness?.orders ?? []).map((id) => view.orders.find((order) => order.id === id && order.outcome === "created"));
  return pair.length === 2 && pair.every((order) => order?.readEnd) ? pair : null;
}

// An order in words, for its bar.
export function describe(order) {
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
