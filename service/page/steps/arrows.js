// Arrows above the columns of a step-through, from each order that waits to the one that it waits for.
import { makeSvg } from "../shared/dom.js";

const HEIGHT = 26; // px between the arrows' upper edge and the columns

function arrow(stage, from, to, level) {
  const middle = (lane) => lane.offsetLeft + lane.offsetWidth / 2;
  const [start, end] = [middle(from), middle(to)];
  const top = 4 + level * 4;
  const line = `M ${start} ${HEIGHT} V ${top} H ${end} V ${HEIGHT - 2}`;
  const head = `M ${end - 6} ${HEIGHT - 9} L ${end} ${HEIGHT - 2} L ${end + 6} ${HEIGHT - 9}`;
  return [makeSvg("path", { class: "wait-arrow is-line", d: line }), makeSvg("path", { class: "wait-arrow", d: head })];
}

// Draws them in STAGE, whose columns have the class of-NAME, in place of those that are there. Columns that lie one below the other get none: the order's text says it.
export function drawArrows(stage, orders) {
  stage.querySelector(".arrows")?.remove();
  const lane = (name) => stage.querySelector(`.lane.of-${name}`);
  const waits = orders.flatMap(({ name, waits_for: others = [] }) => others.map((other) => [lane(name), lane(other)])).filter(([from, to]) => to && from !== to);
  stage.classList.toggle("has-arrows", waits.length > 0);
  if (waits.length === 0 || waits.some(([from, to]) => from.offsetTop !== to.offsetTop)) return;
  const picture = makeSvg("svg", { class: "arrows", height: HEIGHT, "aria-hidden": "true" });
  picture.append(...waits.flatMap(([from, to], level) => arrow(stage, from, to, level)));
  stage.append(picture);
}
