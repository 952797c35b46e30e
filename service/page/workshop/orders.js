// Buying by hand: one order, or many at once, and starting the sale again.
import { call } from "../shared/api.js";
import { alertUser, byId, plural, setText, tell } from "../shared/dom.js";
import { currentStrategy, kindOf } from "./strategies.js";

// What an order's answer means, in words.
const ANSWERS = {
  "sold-out": "sold out",
  "lock-busy": "no lock in time",
  conflict: "another order won every attempt",
  "lock-lost": "its lock was lost, nothing sold",
  overloaded: "too many orders wait",
  "wrong-stock-kind": "the stock is of another kind (start a new sale)",
  "outcome-unknown": "unknown whether it was placed",
  "backend-unavailable": "a server does not answer",
};

// {word, order}: what a buyer of one unit is told, and the order or null. Throws if there is no answer.
export async function buy(product) {
  try {
    const order = await call("POST", "/orders", { product_id: product, quantity: 1 });
    return { word: "bought", order };
  } catch (problem) {
    if (problem.status === undefined) throw problem;
    return { word: ANSWERS[problem.name] ?? problem.body.title ?? "refused", order: null };
  }
}

export async function buyOne(shop) {
  try {
    const { word, order } = await buy(shop.product);
    if (!order) tell(`Not bought: ${word}.`);
    else tell(`Order ${order.id}${order.stock_seen == null ? "" : ` read ${order.stock_seen}, and`} bought 1.`);
  } catch (problem) {
    alertUser(problem.message);
  }
  shop.look();
}

export async function buyMany(shop) {
  const input = byId("buyers");
  if (!input.reportValidity()) return;
  const button = byId("buy-many");
  button.disabled = true;
  const answers = await Promise.allSettled(Array.from({ length: input.valueAsNumber }, () => buy(shop.product)));
  button.disabled = false;
  const words = new Map();
  for (const { value } of answers) {
    const word = value?.word ?? "no answer";
    words.set(word, (words.get(word) ?? 0) + 1);
  }
  const seen = answers.map(({ value }) => value?.order?.stock_seen).filter((read) => Number.isInteger(read));
  const twice = seen.length - new Set(seen).size;
  tell(
    `${plural(answers.length, "buyer", "buyers")} at once: ${[...words].map(([word, count]) => `${count} ${word}`).join(", ")}.` +
      (twice > 0 ? ` ${plural(twice, "of them read", "of them read")} the same count as another order.` : ""),
    twice > 0 ? "is-bad" : "",
  );
  shop.look();
}

export async function newSale(shop) {
  const input = byId("stock");
  if (!input.reportValidity()) return;
  const kind = kindOf(currentStrategy());
  try {
    await call("POST", `/products/${shop.product}/reset`, {
      stock: input.valueAsNumber,
      ...(kind === "counter" ? {} : { kind }),
    });
    tell(`A new sale: ${plural(input.valueAsNumber, "unit", "units")}.`);
  } catch (problem) {
    alertUser(`The new sale did not start. ${problem.message}`);
  }
  shop.look();
}

export function setUpOrders(shop) {
  byId("buy-one").addEventListener("click", () => buyOne(shop));
  byId("buy-many").addEventListener("click", () => buyMany(shop));
  byId("reset").addEventListener("click", () => newSale(shop));
  byId("buyers").addEventListener("input", (event) => setText(byId("buy-count"), event.target.value || "…"));
}
