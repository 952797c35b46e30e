// The guided story: a sale that oversells, the two orders that prove it, and three ways to fix it.
import { call, getToken } from "../shared/api.js";
import { byId, make, plural, setText, tell } from "../shared/dom.js";
import { sellOnce } from "./one_sale.js";
import { pairOf } from "./proof.js";
import { walkAddress } from "../steps/schedule_text.js";
import { GUARANTEES, guaranteeBadge, whyAway } from "../shared/strategy_words.js";
import { allStrategies, changeSettings, refreshStrategies, strategyNamed } from "./strategies.js";
import { showWitness } from "../timeline/timeline.js";
import { isProjected } from "./views.js";

const BEFORE_KEY = "oversell.before"; // keeps what was set while this tab is reloaded
const SALE = { stock: 3, buyers: 6, think: 20 };
const SELL = `Sell ${SALE.stock} tickets to ${SALE.buyers} buyers`;
const UNSAFE = "read-write";
const OLD_MS = 1000; // an answer to a question that was asked earlier after a sale may have its books before its end

// The fixes to choose from; the last one takes the place of a fix whose server is missing.
const FIXES = [
  { name: "atomic-statement", title: "One statement", code: "UPDATE … WHERE count >= 1", text: "The database checks and subtracts in one step." },
  { name: "select-for-update", title: "Lock the row", code: "SELECT … FOR UPDATE", text: "The next order waits until this one has committed." },
  { name: "redis-fenced", title: "A lock in Redis", code: "SET … NX PX; fencing token", text: "One order has the lock, and the row checks its token." },
  { name: "mutex", title: "A lock in the process", code: "lock … COMMIT … unlock", text: "One order has it. A second process has a separate lock." },
];

let shop;
let openMap; // opens all controls and the map of strategies
let needsToken = false;
let before = null; // what was set when the story changed it for the first time: {product, name, think, stock, kind}
let now = null; // what is set: {name, think, stock}
let shown = null; // the books of the sale that the figures show
let last = null; // the last sale without protection: what sellOnce returned
let told = null; // the books of the sale that the story tells of; null while one runs
let toldAt = 0; // when this sale ended
let pair = null;
const fixed = new Map(); // name of a fix → what its sale gave

const button = (id, text, act, primary = false) => make("button", { type: "button", id, class: primary ? "primary" : null, onclick: act }, text);
const steps = (name, moves, text) => make("a", { class: "button", id: "story-steps", href: walkAddress(`${name} s=1 q=1,1 ${moves}`.trim()) }, text);

const place = () => (shop.own ? `your product ${shop.product} alone` : shop.product === 1 ? "everybody's product" : `product ${shop.product}`);
const settingsText = ({ name, think, stock }) => `${name}, a pause of ${think} ms, stock ${stock}`;
const wordsOf = (words) => [...words].sort(([a], [b]) => (b === "bought") - (a === "bought")).map(([word, count]) => `${count} ${word}`).join(", ");

function keepBefore(settings) {
  before = settings;
  if (settings) sessionStorage.setItem(BEFORE_KEY, JSON.stringify(settings));
  else sessionStorage.removeItem(BEFORE_KEY);
}

function keptBefore() {
  try {
    const kept = JSON.parse(sessionStorage.getItem(BEFORE_KEY));
    return kept?.product === shop.product ? kept : null;
  } catch {
    return null;
  }
}

// What the service says is set now, which others may have changed; BOOKS may be null. ASKED: when the page asked (ms).
export function showStorySettings({ name, think_ms: think }, books, asked) {
  now = { name, think, stock: books?.initial ?? now?.stock ?? SALE.stock };
  if (books && asked >= toldAt + OLD_MS) shown = books;
  if (shop) showSettingsLine();
}

function showSettingsLine() {
  setText(
    byId("story-settings"),
    before && now ? `Set for ${place()}: ${settingsText(now)}. Before the story: ${before.name}, ${before.think} ms, ${before.stock}.`
      : `For ${place()}, the button sets ${settingsText({ name: UNSAFE, ...SALE })}.${needsToken ? " The service allows this only with its admin token, which the button asks for." : ""}`,
  );
  byId("story-restore").hidden = before === null;
  showWhichSale();
}

// The figures and the timeline show the newest sale of the product, which may not be the one that the story tells of.
function showWhichSale() {
  const begins = byId("story").dataset.state === "start";
  const goesOn = !begins && shown && told && ["initial", "sold", "orders"].some((name) => shown[name] !== told[name]);
  byId("story-before").hidden = !(begins && shown?.orders > 0) && !goesOn;
  setText(byId("story-before"), begins ? "The figures and the timeline still show the previous sale." : "Somebody has ordered or begun another sale since: the figures and the timeline show that.");
}

// One state of the story. The title gets the focus, unless the user has asked for nothing yet.
function show(state, { title, text, more = [], actions, bad = false }, focus = true) {
  const section = byId("story");
  section.dataset.state = state;
  setText(byId("story-title"), title);
  byId("story-title").classList.toggle("is-bad", bad);
  setText(byId("story-text"), text);
  setText(byId("story-problem"), "");
  byId("story-more").replaceChildren(...more);
  byId("story-actions").replaceChildren(...actions);
  showSettingsLine();
  byId("story-restore").disabled = false;
  if (focus) byId("story-title").focus({ preventScroll: isProjected() });
}

function showStart(focus = true) {
  show(
    "start",
    {
      title: `${SALE.stock} tickets, ${SALE.buyers} buyers`,
      text: `Each order reads the stock, waits ${SALE.think} ms, and writes the new stock. How many tickets does the shop sell?`,
      actions: [button("story-sell", SELL, sell, true)],
    },
    focus,
  );
}

function showBusy(text) {
  setText(byId("story-title"), text);
  setText(byId("story-problem"), "");
  for (const each of byId("story").querySelectorAll("button")) each.disabled = true;
}

// What failed, with the buttons as they were before.
function showProblem(title, problem) {
  setText(byId("story-title"), title);
  setText(byId("story-problem"), problem.message);
  for (const each of byId("story").querySelectorAll("button")) each.disabled = false;
}

async function remember() {
  if (before) return;
  const [settings, product] = await Promise.all([call("GET", `/strategy?product_id=${shop.product}`), call("GET", `/products/${shop.product}`)]);
  keepBefore({ product: shop.product, name: settings.name, think: settings.think_ms, stock: product.initial, kind: product.kind });
}

// Runs the sale with the strategy NAME; null if the user has no token.
async function run(name) {
  if (needsToken && !(await getToken())) throw new Error("The service changes its settings only with the admin token. Press the button again, and enter the token.");
  needsToken = false;
  await remember();
  told = null;
  const sale = await sellOnce(shop, { strategy: name, ...SALE });
  told = shown = sale.books;
  toldAt = Date.now();
  now = { name, think: SALE.think, stock: SALE.stock };
  const { books } = sale;
  tell(`Story: ${name} sold ${books.sold} of ${books.initial}: ${wordsOf(sale.words)}.`, books.oversold > 0 ? "is-bad" : "");
  shop.look();
  return sale;
}

async function sell() {
  const title = byId("story-title").textContent;
  showBusy(`${SALE.buyers} buyers order …`);
  try {
    last = await run(UNSAFE);
    pair = null;
    if (last.books.witness) pair = await pairOf(shop.product, last.books.witness);
    showSold();
  } catch (problem) {
    showProblem(title, problem);
  }
}

function showSold() {
  const { books, words } = last;
  const others = books.orders > SALE.buyers ? " Other buyers ordered at the same time." : "";
  const again = (primary) => button("story-sell", primary ? `${SELL} again` : "Again", sell, primary);
  const title = `Sold ${books.sold} of ${books.initial}`;
  if (books.oversold === 0) {
    const lost = books.drift > 0 ? `${plural(books.drift, "ticket was", "tickets were")} sold and not subtracted, so the next buyers would get too many.` : "The orders did not overlap enough.";
    show("sold", { title, text: `No oversell this time: ${wordsOf(words)}. ${lost} Try again.${others}`, actions: [again(true)] });
    return;
  }
  const bought = words.get("bought") ?? 0;
  const rest = bought < SALE.buyers ? ` All answers: ${wordsOf(words)}.` : "";
  const text = `${plural(books.oversold, "ticket was", "tickets were")} sold that did not exist: ${plural(bought, "buyer", "buyers")} got a confirmation.${rest}${others}`;
  const why = pair ? button("story-why", "Why?", showWhy, true) : button("story-fix", "Fix it", showFix, true);
  show("sold", { title: `${title} ▲`, bad: true, text, actions: [why, again(false)] });
}

const DONE = { read: (value) => `reads ${value}`, write: (value, seen) => `writes ${seen} − 1 = ${seen - 1}`, commit: () => "commits" };

// The two orders as columns, one line for each step.
function pairTable() {
  const head = [...pair.ids.map((id, index) => make("th", { scope: "col" }, `${"AB"[index]}: order ${id}`)), make("th", { scope: "col", class: "number" }, "time")];
  const lines = pair.steps.map(({ order, step, ms, value }) => {
    const seen = pair.steps.findLast((one) => one.order === order && one.step === "read").value;
    const cells = [0, 1].map((column) => make("td", { class: `pair-${step}` }, column === order ? DONE[step](value, seen) : ""));
    return make("tr", {}, ...cells, make("td", { class: "number quiet" }, `${ms.toFixed(1)} ms`));
  });
  return make("table", { class: "pair" }, make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...lines));
}

function showWhy() {
  const [a, b] = pair.ids;
  const left = pair.seen - 1;
  show("why", {
    title: `Why? Both orders read ${pair.seen}`,
    text: `Orders ${a} and ${b} both read ${pair.seen}, and each wrote ${left}. The second write erased the first, so two sales took one ticket from the stock.`,
    more: pair.steps.length > 0 ? [pairTable()] : [],
    actions: [
      button("story-fix", "Fix it", showFix, true),
      steps(UNSAFE, pair.schedule, "Step by step: this race for one unit"),
      button("story-back", "Back", showSold),
    ],
  });
  if (!isProjected()) return;
  showWitness();
  document.querySelector("#lanes .is-witness")?.scrollIntoView({ block: "center" });
}

function fixCard(fix) {
  const row = strategyNamed(fix.name);
  const sale = fixed.get(fix.name);
  const bad = sale && sale.books.oversold > 0;
  const result = sale
    ? [
        make("p", { class: `fix-result ${bad ? "is-bad" : "is-good"}` }, `${bad ? "▲" : "✓"} `, make("span", { class: "more" }, "Sold "), `${sale.books.sold} of ${sale.books.initial}`),
        make("p", { class: "fix-words" }, `${wordsOf(sale.words)}. `, guaranteeBadge(row.guarantee, "short")),
      ]
    : [];
  return make(
    "li",
    { class: "fix", "data-fix": fix.name },
    make("h3", {}, fix.title),
    make("p", { class: "fix-about" }, fix.text),
    make("p", { class: "fix-about" }, make("code", {}, fix.code)),
    make("button", { type: "button", class: sale ? null : "primary", onclick: () => tryFix(fix) }, `Run ${fix.name}`),
    make("div", { class: "fix-done" }, ...result),
  );
}

function showFixes() {
  const offered = FIXES.filter(({ name }) => strategyNamed(name)?.available);
  const away = FIXES.filter(({ name }) => strategyNamed(name)?.available === false).map(({ name }) => whyAway(strategyNamed(name)));
  const tried = [...fixed.keys()].at(-1);
  const row = strategyNamed(tried);
  const sale = fixed.get(tried);
  show("fix", {
    title: sale ? `${tried} sold ${sale.books.sold} of ${sale.books.initial}` : "Fix it: the same sale, protected",
    bad: sale?.books.oversold > 0,
    text: row ? `${tried}: ${GUARANTEES[row.guarantee].means}.` : "Choose a way. The same six buyers come for the same three tickets.",
    more: [make("ul", { class: "fixes" }, ...offered.slice(0, 3).map(fixCard)), ...away.map((text) => make("p", { class: "notice" }, text))],
    actions: [
      ...(row?.explorable ? [steps(tried, "", `Step by step: ${tried}`)] : []),
      make("a", { class: "button", href: "/lessons/" }, "Lessons"),
      button("story-all", `All ${allStrategies().length} strategies`, openMap),
      button("story-start", "Start again", () => showStart()),
    ],
  });
}

async function showFix() {
  await refreshStrategies().catch(() => {}); // the header says that the service is away
  showFixes();
}

async function tryFix({ name }) {
  const title = byId("story-title").textContent;
  showBusy(`${name}: ${SALE.buyers} buyers order …`);
  try {
    const sale = await run(name);
    fixed.delete(name); // the newest is the last
    fixed.set(name, sale);
    showFixes();
  } catch (problem) {
    showProblem(title, problem);
  }
}

async function restore() {
  const { name, think, stock, kind } = before;
  try {
    await changeSettings(shop, { name, think_ms: think });
    await call("POST", `/products/${shop.product}/reset`, { stock, kind });
    tell(`The story restored ${settingsText(before)}.`);
    keepBefore(null);
    fixed.clear();
    shop.look();
    showStart();
  } catch (problem) {
    setText(byId("story-problem"), `Not everything was restored. ${problem.message}`);
  }
}

// OPEN_MAP opens the map of all strategies.
export async function setUpStory(theShop, openMapOfAll) {
  shop = theShop;
  openMap = openMapOfAll;
  before = keptBefore();
  const { classroom, teacher, owns } = await call("GET", "/classroom");
  needsToken = !classroom && !teacher && owns === null;
  byId("story-restore").addEventListener("click", restore);
  showStart(false);
}
