// One sale of the story: a new stock, many buyers at once, and what was sold in the end.
import { call } from "../shared/api.js";
import { buy } from "./orders.js";
import { changeSettings } from "./strategies.js";

const AUDIT_MS = 150;
const AUDITS_MAX = 40; // about 6 s for orders that are still in progress

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// The audit after all orders have ended, or the last one if they take too long.
async function auditOf(product) {
  for (let i = 1; ; i++) {
    const books = await call("GET", `/audit?product_id=${product}`);
    if (books.in_flight === 0 || i === AUDITS_MAX) return books;
    await sleep(AUDIT_MS);
  }
}

// Sets STRATEGY and THINK (ms), starts a sale of STOCK units, and lets BUYERS buy one each. Returns the audit, and how many buyers
// got which answer: a Map from words to counts. Throws as call does.
export async function sellOnce(shop, { strategy, think, stock, buyers }) {
  await changeSettings(shop, { name: strategy, think_ms: think });
  await call("POST", `/products/${shop.product}/reset`, { stock, kind: "counter" });
  const answers = await Promise.allSettled(Array.from({ length: buyers }, () => buy(shop.product)));
  const failed = answers.find(({ status }) => status === "rejected");
  if (failed) throw failed.reason;
  const words = new Map();
  for (const { value } of answers) words.set(value.word, (words.get(value.word) ?? 0) + 1);
  return { books: await auditOf(shop.product), words };
}
