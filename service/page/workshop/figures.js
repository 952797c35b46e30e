// The big figures: stock, left, sold, oversold, orders a second; and what they mean in one sentence.
import { byId, plural, setText, short, whole } from "../shared/dom.js";

export const AMPLE = 100000; // a stock that no sale uses: the run is measuring how fast it goes

function sentence(books) {
  if (books.orders === 0) return "Nothing sold yet.";
  const witness = books.witness
    ? ` Orders ${books.witness.orders[0]} and ${books.witness.orders[1]} both read ${books.witness.stock_seen}.`
    : "";
  const mixed = books.mixed ? " Several strategies placed these orders, so no guarantee applies." : "";
  if (books.oversold > 0)
    return `Sold ${whole(books.sold)} of ${whole(books.initial)}: ${plural(books.oversold, "unit", "units")} sold that did not exist.${witness}${mixed}`;
  if (books.negative > 0) return `The stock is below zero.${witness}${mixed}`;
  if (books.drift > 0)
    return `${plural(books.drift, "unit was sold and is", "units were sold and are")} still in the stock: an update was lost.${witness}${mixed}`;
  if (books.drift < 0)
    return `${plural(-books.drift, "unit was", "units were")} taken from the stock without an order.${books.in_flight > 0 ? " Some orders are still in progress." : ""}${mixed}`;
  return `Stock and orders balance: ${whole(books.sold)} sold, ${whole(books.left)} left.${mixed}`;
}

function setFigure(id, text) {
  setText(byId(id), text);
  byId(id).style.setProperty("--length", text.length); // its size in the figure's box
}

function showBar(books) {
  const all = Math.max(books.initial, books.sold, 1);
  const bar = byId("bar");
  bar.querySelector(".bar-sold").style.width = `${(Math.min(books.sold, books.initial) / all) * 100}%`;
  bar.querySelector(".bar-over").style.width = `${(books.oversold / all) * 100}%`;
  bar.setAttribute("aria-label", `${whole(books.sold)} sold of ${whole(books.initial)}, ${whole(books.oversold)} oversold`);
}

// Names the strategy that placed the orders, which may differ from the one that is set, and the load that began the sale.
export function showSale(books, set, load) {
  const names = books?.strategies ?? [];
  const many = load && load.strategies > 1;
  const place = !load ? "" : many && load.state === "running" ? ` Load run ${load.id} is in progress, with ${load.strategies} strategies, one after the other.`
    : many ? ` This is the last sale of load run ${load.id}, which ran ${load.strategies} strategies, one after the other.` : ` Load run ${load.id} made this sale.`;
  const other = names.length > 0 && names.some((name) => name !== set) ? ` The strategy for the next order is ${set}.` : "";
  setText(byId("sale"), names.length > 0 ? `Sold by ${new Intl.ListFormat("en").format(names)}.${place}${other}` : "");
}

// RATE: orders a second where a run tells it, else null.
export function showFigures(books, rate) {
  setFigure("figure-rate", rate === null ? "–" : short(rate));
  byId("figure-rate").parentElement.classList.toggle("is-empty", rate === null);
  if (!books) return;
  const ample = books.initial >= AMPLE;
  setFigure("figure-stock", ample ? "∞" : whole(books.initial));
  setFigure("figure-left", ample ? "∞" : whole(books.left));
  setFigure("figure-sold", whole(books.sold));
  setFigure("figure-oversold", whole(books.oversold));
  const bad = books.oversold > 0 || books.negative > 0 || books.drift > 0;
  byId("oversold-box").classList.toggle("is-bad", books.oversold > 0);
  byId("oversold-box").classList.toggle("is-good", !bad && books.orders > 0);
  // The audit can find a fault although nothing is oversold yet: then the figure that is wrong is shown next to it.
  byId("drift-box").hidden = books.oversold > 0 || !bad;
  setText(byId("drift-name"), books.negative > 0 ? "Below zero" : "Not subtracted");
  setFigure("figure-drift", whole(books.negative > 0 ? books.negative : books.drift));
  setText(byId("verdict"), ample ? "Unlimited stock: this run measures orders per second." : sentence(books));
  byId("verdict").classList.toggle("is-bad", bad && !ample);
  showBar(books);
}
