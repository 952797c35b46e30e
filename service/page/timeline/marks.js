// The time axis above the lanes, and the witness across them.
import { makeSvg, micros } from "../shared/dom.js";
import { px, unit } from "./size.js";
import { laneKey, view, witnessPair } from "./view.js";

// The two orders of the witness, joined, and what they read, above all lanes.
export function drawWitness(svg, lanes, place) {
  const pair = witnessPair();
  if (!pair) return;
  const middle = (order) => lanes.get(laneKey(order)).y + px.BAR / 2;
  const [a, b] = pair.toSorted((one, other) => middle(one) - middle(other));
  const x = [place(a.readEnd), place(b.readEnd)];
  const text = `both read ${view.witness.seen}`;
  const width = (text.length * 7.4 + 12) * unit;
  const left = Math.max(Math.min(x[0] - width / 2, view.scale.width - width), 0);
  const top = px.AXIS - unit;
  svg.append(
    makeSvg(
      "g",
      { class: "witness", "aria-hidden": "true" },
      makeSvg("path", { d: `M${x[0]} ${top + 15 * unit} V${middle(a)} C${x[0]} ${(middle(a) + middle(b)) / 2}, ${x[1]} ${(middle(a) + middle(b)) / 2}, ${x[1]} ${middle(b)}` }),
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

export function drawAxis(svg, height) {
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
