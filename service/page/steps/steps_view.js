// The step-through drawn: a column for each order, what the servers hold between them, the story, the result.
import { byId, make, setText } from "../shared/dom.js";
import { outcomeWords, sentences, stepWords, valueWords, verdict } from "./steps_words.js";

const STATES = { ready: "paused", waiting: "waits", ended: "done", crashed: "crashed" };

// ---- an order ----

const lanes = new Map(); // name → the elements of its column

function smallButton(name, what, text, title, act) {
  return make("button", { type: "button", class: "small", id: `${what}-${name}`, title, onclick: () => act(name, what) }, text);
}

// ACT is called with the order's name, and "step", "end", "expire", "crash", "restart" or "cut".
function makeLane(name, act) {
  const index = name.charCodeAt(0) - 64;
  const lane = {
    state: make("span", { class: "state" }),
    program: make("ol", { class: "program" }),
    step: make("button", { type: "button", class: "primary go", id: `step-${name}`, "aria-describedby": `reason-${name}`, onclick: () => act(name, "step") }),
    reason: make("p", { class: "reason", id: `reason-${name}` }),
    question: make("div", { class: "question", id: `question-${name}`, role: "group", hidden: "" }),
    wants: make("span", { class: "quiet" }),
    end: smallButton(name, "end", "Run until it waits", "Run all steps that this order can make now", act),
    expire: smallButton(name, "expire", "End its lease", "Its lease or session ends now, as after a timeout; the order does not notice", act),
    crash: smallButton(name, "crash", "Crash it", "The order crashes here: its connections close, and it releases nothing", act),
    restart: smallButton(name, "restart", "Restart a lock server", "One of the lock's servers restarts, and is empty", act),
    cut: smallButton(name, "cut", "Cut off a lock server", "From its start, the order cannot reach one of the lock's servers", act),
    index,
  };
  lane.box = make(
    "section",
    { class: "card lane", id: `lane-${name}`, "aria-label": `Order ${name}` },
    make("div", { class: "heading" }, make("h2", {}, `Order ${name} `, lane.wants), lane.state),
    lane.program,
    lane.step,
    lane.reason,
    lane.question,
    make("div", { class: "group faults" }, lane.end, lane.expire, lane.crash, lane.restart, lane.cut),
  );
  return lane;
}

// The columns of the orders NAMES, made again if there are other ones.
export function setUpLanes(names, act) {
  if (names.join() === [...lanes.keys()].join()) return;
  for (const { box } of lanes.values()) box.remove();
  lanes.clear();
  for (const name of names) lanes.set(name, makeLane(name, act));
  byId("lanes").prepend(...[...lanes.values()].map(({ box }) => box));
  byId("lanes").dataset.orders = names.length;
}

export const questionOf = (name) => lanes.get(name).question;

// A button that cannot be pressed keeps the focus, and its reason can be read.
function enable(button, enabled) {
  if (enabled) button.removeAttribute("aria-disabled");
  else button.setAttribute("aria-disabled", "true");
}

// REFUSAL: what the row answered where it refused this step, else undefined.
function programLine(step, did, isNext, refusal) {
  const kind = refusal ? "is-refused" : did ? "is-done" : isNext ? "is-next" : "is-ahead";
  const sign = refusal ? "✗" : did ? "✓" : isNext ? "▶" : "·";
  const value = refusal ? `refused: ${refusal.value === null ? "the row has a newer token" : `the row has token ${refusal.value}`}` : did ? valueWords(did) : "";
  return make(
    "li",
    { class: kind, "aria-current": isNext ? "step" : null },
    make("span", { class: "sign", "aria-hidden": "true" }, sign),
    make("span", {}, stepWords(step)),
    value ? make("b", { class: "value" }, value) : null,
  );
}

function drawProgram(lane, order, steps) {
  const did = new Map(order.did.map((one) => [one.step, one]));
  const refusal = did.get("refuse");
  const refused = refusal && steps.find((step) => !did.has(step)); // its first step that was not done
  lane.program.replaceChildren(
    ...steps.map((step) => programLine(step, did.get(step), step === order.next && order.state !== "crashed", step === refused ? refusal : undefined)),
  );
}

function stateWords(order) {
  if (order.state === "ended") return outcomeWords(order.outcome);
  if (order.state === "ready" && !order.begun) return "not started";
  return STATES[order.state] + (order.tries > 1 ? `, try ${order.tries}` : "");
}

function reasonOf(order) {
  if (order.reason) return `${order.name} ${order.reason}.`;
  if (order.state === "ended") return `${order.name} is done: ${outcomeWords(order.outcome)}.`;
  if (order.state === "crashed") return `${order.name} has crashed.`;
  return "";
}

function drawOrder(order, steps, isTurn) {
  const lane = lanes.get(order.name);
  const over = order.state === "ended" || order.state === "crashed";
  setText(lane.wants, order.wants === 1 ? "" : `wants ${order.wants}`);
  setText(lane.state, stateWords(order));
  lane.state.className = `state is-${order.state}${order.outcome ? ` is-${order.outcome}` : ""}`;
  drawProgram(lane, order, steps);
  lane.box.classList.toggle("is-turn", isTurn);
  lane.step.replaceChildren(
    over ? `${order.name} is ${order.state === "ended" ? "done" : "crashed"}` : `${order.name}: ${stepWords(order.next ?? "go on")}`,
    ...(over ? [] : [make("kbd", {}, isTurn ? `${lane.index} · Space` : String(lane.index))]),
  );
  enable(lane.step, order.can.step);
  setText(lane.reason, reasonOf(order));
  enable(lane.end, order.can.step);
  for (const what of ["expire", "crash", "restart", "cut"]) lane[what].hidden = !order.can[what];
  lane.end.hidden = over;
  setText(lane.expire, order.state === "waiting" ? "End its place in the queue" : "End its lease");
}

// ---- what they share ----

const names = (list) => list.join(" and ");

function drawDatabase({ database, stock: initial }, wasLeft) {
  const tooMany = database.sold > initial;
  const changed = wasLeft !== null && wasLeft !== database.left;
  byId("database").replaceChildren(
    make("h3", {}, "Database"),
    make(
      "dl",
      { class: "held" },
      make("div", { class: changed ? "is-new" : null }, make("dt", {}, "stock, as others see it"), make("dd", { class: "big-number", id: "stock-left" }, String(database.left))),
      make("div", { class: tooMany ? "is-bad" : null }, make("dt", {}, `sold, of ${initial}`), make("dd", { class: "big-number", id: "sold" }, String(database.sold))),
    ),
    make(
      "ul",
      { class: "holds" },
      ...database.uncommitted.map(({ order, stock }) => make("li", {}, make("b", {}, order), ` wrote ${stock}, not committed: no other order sees it`)),
      database.fence === null ? null : make("li", { id: "row-fence" }, database.fence === 0 ? "the row has no token yet" : make("span", {}, "the row's token is ", make("b", {}, String(database.fence)))),
      database.row_locked_by.length > 0 ? make("li", {}, "the product's row is locked by ", make("b", {}, names(database.row_locked_by))) : make("li", { class: "quiet" }, "the row is not locked"),
    ),
  );
}

function holderLine({ order, fence, held, crashed }) {
  const token = fence === null ? "" : `, token ${fence}`;
  const text = crashed ? ` crashed while holding it${token}` : held ? ` has it${token}` : ` believes that it has it${token}. The server has no such lock`;
  return make("li", { class: held && !crashed ? null : "is-bad" }, make("b", {}, order), text);
}

function drawLock({ lock }) {
  const place = byId("lock");
  place.hidden = lock === null;
  if (lock === null) return;
  place.replaceChildren(
    make("h3", {}, "Lock ", make("span", { class: "quiet" }, lock.server ? `kept by ${lock.server}` : "in the process")),
    make("ul", { class: "holds" }, ...(lock.holders.length > 0 ? lock.holders.map(holderLine) : [make("li", { class: "quiet" }, "free")])),
  );
}

// ---- the story ----

let toldBefore = []; // the sentences that stand there

// GO is called with the number of moves after which the chosen line was.
function drawStory(state, go) {
  const list = byId("told");
  const every = byId("every").checked;
  const texts = sentences(state.told);
  const lines = state.told
    .map((event, index) => ({ move: event.move, actor: event.actor, step: event.step, text: texts[index] }))
    .filter(({ step, text }) => text && (every || step !== "insert"));
  let same = 0;
  while (same < lines.length && toldBefore[same] === lines[same].text) same++;
  while (list.children.length > same) list.lastChild.remove();
  for (const { move, actor, text } of lines.slice(same))
    list.append(make("li", { class: `by-${actor}` }, make("button", { type: "button", class: "line", title: "Go back to here", onclick: () => go(move) }, text)));
  toldBefore = lines.map(({ text }) => text);
  byId("told-empty").hidden = lines.length > 0;
  list.scrollTop = list.scrollHeight;
}

// ---- the result ----

// What the database refused, where that is why all is right.
const refusals = (state) => sentences(state.told).filter((text, index) => state.told[index].step === "refuse" && text);

function drawResult(state, again) {
  const box = byId("result");
  const show = state.over || state.bad;
  const key = show ? state.schedule : "";
  if (box.dataset.key === key) return;
  box.dataset.key = key;
  box.hidden = !show;
  box.className = `result ${state.bad ? "is-bad" : "is-good"}`;
  box.replaceChildren(
    ...(show
      ? [
          make("h2", {}, make("span", { "aria-hidden": "true" }, state.bad ? "▲ " : "✓ "), verdict(state)),
          make("p", {}, [...refusals(state), state.explanation ?? ""].join(" ")),
          make("div", { class: "group" }, make("button", { type: "button", onclick: again }, state.bad ? "Watch it again, step by step" : "Try another schedule")),
        ]
      : []),
  );
}

// Draws STATE. TURN: whose step the space bar is; BEFORE: the state before, or null.
export function draw(state, before, turn, { go, again }) {
  for (const order of state.orders) drawOrder(order, state.steps, order.name === turn);
  drawDatabase(state, before?.strategy === state.strategy ? before.database.left : null);
  drawLock(state);
  drawStory(state, go);
  drawResult(state, again);
  setText(byId("command"), `loadtest explore --replay '${state.schedule}'`);
}
