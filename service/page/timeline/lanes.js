// Where each worker's lane lies.
import { px, unit } from "./size.js";
import { laneKey } from "./view.js";

// The workers of ORDERS, from top to bottom.
function sequence(orders) {
  const workers = [...new Set(orders.map((order) => order.worker))];
  const isSingle = workers.length === orders.length;
  if (!isSingle) return workers.sort((a, b) => a - b);
  return orders.toSorted((a, b) => (a.commitEnd ?? a.end) - (b.commitEnd ?? b.end)).map((order) => order.worker);
}

// The lanes that have orders, process by process: key → {instance, worker, y, first}, in their order. Where each worker has one order, the
// lanes are in the sequence in which the orders ended, else by the worker's number.
export function lanesOf(orders) {
  const lanes = new Map();
  let y = px.AXIS + px.LABEL;
  for (const instance of [...new Set(orders.map((order) => order.instance))]) {
    sequence(orders.filter((order) => order.instance === instance)).forEach((worker, index) => {
      if (index === 0 && lanes.size > 0) y += px.NAME;
      lanes.set(laneKey({ instance, worker }), { instance, worker, y, first: index === 0 });
      y += px.LANE;
    });
  }
  return { lanes, height: y + 6 * unit };
}
