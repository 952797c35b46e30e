// From time to place in the timeline's picture, and back.
import { merge } from "../workshop/overlaps.js";
import { fitting, px } from "./size.js";
import { view } from "./view.js";

// Maps times to places with long pauses cut out.
export function scaleOf(orders) {
  const busy = merge(orders.map((order) => [order.first, order.end]));
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
  const perMicro = view.zoom ?? (view.whole ? fit : stays ? last : wanted);
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
