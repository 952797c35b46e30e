// Draws a step-through: a column for each order, the state of the servers between them, the story, and the result.
import { make, setText } from "../shared/dom.js";
import { drawArrows } from "./arrows.js";
import { makeLane } from "./lane.js";
import { shortNames } from "./requests.js";
import { sentences, verdict } from "./steps_words.js";

const joined = (list) => list.join(" and ");

// The versions of the product's row: the committed one, and those that only their orders see.
function rowTable(row, was) {
  const cells = (...texts) => texts.map((text) => make("td", {}, text));
  const changed = was && (was.stock !== row.stock || was.version !== row.version);
  return make(
    "table",
    { class: "versions" },
    make("caption", {}, "The product's row"),
    make("thead", {}, make("tr", {}, make("th"), make("th", { scope: "col" }, "stock"), make("th", { scope: "col" }, "version"))),
    make(
      "tbody",
      {},
      make("tr", { class: changed ? "is-new" : null }, make("th", { scope: "row" }, "committed"), ...cells(String(row.stock), String(row.version))),
      ...row.uncommitted.map(({ order, stock }) => make("tr", { class: `uncommitted of-${order}` }, make("th", { scope: "row" }, `${order}, not committed`), ...cells(String(stock), String(row.version + 1)))),
    ),
  );
}

function databaseParts({ database, row, stock: initial }, before, id) {
  const wasLeft = before ? before.database.left : null;
  const tooMany = database.sold > initial;
  const changed = wasLeft !== null && wasLeft !== database.left;
  const token = database.fence === 0 ? ["the row has no token yet"] : ["the row's token is ", make("b", {}, String(database.fence))];
  return [
    make("h3", {}, "Database"),
    make(
      "dl",
      { class: "held" },
      make("div", { class: changed ? "is-new" : null }, make("dt", {}, "stock, as others see it"), make("dd", { class: "big-number", id: id("stock-left") }, String(database.left))),
      make("div", { class: tooMany ? "is-bad" : null }, make("dt", {}, `sold, of ${initial}`), make("dd", { class: "big-number", id: id("sold") }, String(database.sold))),
    ),
    rowTable(row, before?.row),
    make(
      "ul",
      { class: "holds" },
      ...database.uncommitted.map(({ order, stock }) => make("li", {}, make("b", {}, order), ` wrote ${stock}, not committed: no other order sees it`)),
      database.fence === null ? null : make("li", { id: id("row-fence") }, ...token),
      database.row_locked_by.length > 0 ? make("li", {}, "the product's row is locked by ", make("b", {}, joined(database.row_locked_by))) : make("li", { class: "quiet" }, "the row is not locked"),
    ),
  ];
}

function holderLine({ order, fence, held, crashed }) {
  const token = fence === null ? "" : `, token ${fence}`;
  const text = crashed ? ` crashed while holding it${token}` : held ? ` has it${token}` : ` believes that it has it${token}. The server has no such lock`;
  return make("li", { class: held && !crashed ? null : "is-bad" }, make("b", {}, order), text);
}

// What the lock's server holds.
function heldLine({ key, value, ttl_ms: ttl }, product) {
  const words = [`key ${shortNames(key, product)}`, value ? `value ${shortNames(value, product)}` : null, ttl ? `expires in ${Math.round(ttl / 1000).toLocaleString("en")} s` : null];
  return make("li", { class: "quiet" }, words.filter(Boolean).join(", "));
}

function lockParts(lock, product) {
  return [
    make("h3", {}, "Lock ", make("span", { class: "quiet" }, lock.server ? `kept by ${lock.server}` : "in the process")),
    make("ul", { class: "holds" }, ...(lock.holders.length > 0 ? lock.holders.map(holderLine) : [make("li", { class: "quiet" }, "free")]), lock.key ? heldLine(lock, product) : null),
  ];
}

// What the database refused, where that is why all is right.
const refusals = (state) => sentences(state.told).filter((text, index) => state.told[index].step === "refuse" && text);

// Below the verdict. Of a good end the explanation only says what was sold, as the verdict does.
function explanationOf(state) {
  const text = [...refusals(state), state.bad ? (state.explanation ?? "") : ""].join(" ").trim();
  return text ? [make("p", {}, text)] : [];
}

// Draws in the elements UI of stepper_frame.js. ACT: see lane.js; GO is called with the number of moves after which the chosen line of
// the story was; AGAIN runs the schedule from its start.
export function makeView(ui, prefix, { act, go, again }) {
  const lanes = new Map(); // by the order's name
  const id = (name) => prefix + name;
  let toldBefore = []; // the sentences that stand there
  let orders = []; // as drawn last

  new ResizeObserver(() => drawArrows(ui.lanes, orders)).observe(ui.lanes); // the columns have moved

  function setUpLanes(names) {
    if (names.join() === [...lanes.keys()].join()) return;
    for (const { box } of lanes.values()) box.remove();
    lanes.clear();
    for (const name of names) lanes.set(name, makeLane(name, prefix, act));
    ui.lanes.prepend(...[...lanes.values()].map(({ box }) => box));
    ui.lanes.dataset.orders = names.length;
  }

  function drawStory(state) {
    const every = ui.every.checked;
    const texts = sentences(state.told);
    const lines = state.told
      .map((event, index) => ({ move: event.move, actor: event.actor, step: event.step, text: texts[index] }))
      .filter(({ step, text }) => text && (every || step !== "insert"));
    let same = 0;
    while (same < lines.length && toldBefore[same] === lines[same].text) same++;
    while (ui.told.children.length > same) ui.told.lastChild.remove();
    for (const { move, actor, text } of lines.slice(same))
      ui.told.append(make("li", { class: `by-${actor}` }, make("button", { type: "button", class: "line", title: "Go back to here", onclick: () => go(move) }, text)));
    toldBefore = lines.map(({ text }) => text);
    ui["told-empty"].hidden = lines.length > 0;
    ui.told.scrollTop = ui.told.scrollHeight;
  }

  function drawResult(state, before) {
    const show = state.over || state.bad;
    const key = show ? state.schedule : "";
    if (ui.result.dataset.key === key) return;
    const appears = show && before !== null && ui.result.hidden && !ui.result.closest(".is-following");
    ui.result.dataset.key = key;
    ui.result.hidden = !show;
    ui.result.className = `result ${state.bad ? "is-bad" : "is-good"}`;
    ui.result.replaceChildren(
      ...(show
        ? [
            make("h2", {}, make("span", { "aria-hidden": "true" }, state.bad ? "▲ " : "✓ "), verdict(state)),
            ...explanationOf(state),
            make("div", { class: "group" }, make("button", { type: "button", onclick: again }, state.bad ? "Watch it again, step by step" : "Try another schedule")),
          ]
        : []),
    );
    if (appears) ui.result.scrollIntoView({ block: "nearest" }); // the user has perhaps scrolled to the orders
  }

  // BEFORE: the state before, or null; TURN: whose step the space bar is.
  function draw(state, before, turn) {
    const sent = !ui.sent.checked ? "none" : ui.whole.checked ? "whole" : "short";
    setUpLanes(state.orders.map(({ name }) => name));
    for (const { name } of state.orders) lanes.get(name).draw(state, name === turn, sent);
    ui.database.replaceChildren(...databaseParts(state, before?.strategy === state.strategy ? before : null, id));
    ui.lock.hidden = state.lock === null;
    ui.lock.replaceChildren(...(state.lock ? lockParts(state.lock, state.row.id) : []));
    orders = state.orders;
    drawArrows(ui.lanes, orders);
    drawStory(state);
    drawResult(state, before);
    setText(ui.command, `loadtest explore --replay '${state.schedule}'`);
  }

  return { draw, lane: (name) => lanes.get(name) };
}
