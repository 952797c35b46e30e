// One order of a step-through: a column with its steps, its buttons, and the reason why it cannot continue.
import { make, setText } from "../shared/dom.js";
import { edge, failedTries, hasFailed, requestsOf, shortAnswer, shortRequest, wholeRequest } from "./requests.js";
import { outcomeWords, shortOutcome, stepWords, valueWords } from "./steps_words.js";

const STATES = { ready: "paused", waiting: "waits", ended: "done", crashed: "crashed" };
const FAULTS = ["expire", "crash", "restart", "cut"];

// A button that cannot be pressed keeps the focus, and its reason can be read.
export function enable(button, enabled) {
  if (enabled) button.removeAttribute("aria-disabled");
  else button.setAttribute("aria-disabled", "true");
}

// A request with its answer. WHOLE: as it was sent; else shortened.
function requestLine({ request, inTransaction }, product, whole) {
  const answer = whole ? (request.answer ?? "no answer yet") : shortAnswer(request, product);
  const says = !request.text.startsWith(request.answer ?? "BEGIN"); // BEGIN is answered by BEGIN, and its answer read with the next one
  const bracket = inTransaction ? `in-transaction ${edge(request) ?? ""}` : "";
  return make(
    "li",
    { class: `${bracket} ${hasFailed(request) ? "is-refused" : ""}`, title: wholeRequest(request) },
    make("code", {}, whole ? wholeRequest(request) : shortRequest(request, product)),
    says ? make("span", { class: `got${request.answer === null ? " is-open" : ""}` }, `→ ${answer}`) : null,
  );
}

const refusalWords = ({ value }) => `refused: ${value === null ? "the row has a newer token" : `the row has token ${value}`}`;

// WORDS: the step's name. REFUSED: why it was refused, else "". SENT: the step's requests, as lines.
function programLine(step, words, did, isNext, refused, sent) {
  const kind = refused ? "is-refused" : did ? "is-done" : isNext ? "is-next" : "is-ahead";
  const sign = refused ? "✗" : did ? "✓" : isNext ? "▶" : "·";
  const value = refused || (did ? valueWords(did) : "");
  return make(
    "li",
    { class: kind, "data-step": step, "aria-current": isNext ? "step" : null },
    make("span", { class: "sign", "aria-hidden": "true" }, sign),
    make("span", {}, words),
    value ? make("b", { class: "value" }, value) : null,
    sent.length > 0 ? make("ul", { class: "sent", "aria-label": "Sent to the servers" }, ...sent) : null,
  );
}

function stateWords(order) {
  if (order.state === "ended") return shortOutcome(order.outcome);
  if (order.state === "ready" && !order.begun) return "not started";
  return STATES[order.state] + (order.tries > 1 ? `, try ${order.tries}` : "");
}

function reasonOf(order) {
  if (order.reason) return `${order.name} ${order.reason}.`;
  if (order.state === "ended") return `${order.name} is done: ${outcomeWords(order.outcome)}.`;
  if (order.state === "crashed") return `${order.name} has crashed.`;
  return "";
}

// The column of the order NAME: {box, question, step, draw(state, isTurn, sent)}. SENT: "none", "short" or "whole" requests. ACT is called with the order's name, and "step",
// "end", "expire", "crash", "restart" or "cut".
export function makeLane(name, prefix, act) {
  const index = name.charCodeAt(0) - 64;
  const id = (what) => `${prefix}${what}-${name}`;
  const small = (what, text, title) => make("button", { type: "button", class: "small", id: id(what), title, onclick: () => act(name, what) }, text);
  const badge = make("span", { class: "state" });
  const earlier = make("div", { class: "earlier", hidden: "" });
  const program = make("ol", { class: "program" });
  const step = make("button", { type: "button", class: "primary go", id: id("step"), "aria-describedby": id("reason"), onclick: () => act(name, "step") });
  const reason = make("p", { class: "reason", id: id("reason") });
  const question = make("div", { class: "question", id: id("question"), role: "group", hidden: "" });
  const wants = make("span", { class: "quiet" });
  const more = {
    end: small("end", "Run until it waits", "Run all steps that this order can make now"),
    expire: small("expire", "End its lease", "Its lease or session ends now, as after a timeout; the order does not notice"),
    crash: small("crash", "Crash it", "The order crashes here: its connections close, and it releases nothing"),
    restart: small("restart", "Restart a lock server", "One of the lock's servers restarts, and is empty"),
    cut: small("cut", "Cut off a lock server", "From its start, the order cannot reach one of the lock's servers"),
  };
  const box = make(
    "section",
    { class: `card lane of-${name}`, id: id("lane"), "aria-label": `Order ${name}` },
    make("div", { class: "heading" }, make("h2", {}, `Order ${name} `, wants), badge),
    earlier,
    program,
    step,
    reason,
    question,
    make("div", { class: "group faults" }, ...Object.values(more)),
  );

  // What the order was answered before it started again.
  function drawEarlier(state, sent) {
    const tries = failedTries(state, name);
    earlier.hidden = tries.length === 0;
    earlier.replaceChildren(
      make("p", {}, `${name} started again, because the row had changed:`),
      make("ul", { class: "sent" }, ...tries.map((request) => requestLine(request, state.row.id, sent === "whole"))),
    );
  }

  function drawProgram(order, state, sent) {
    const { steps } = state;
    const requests = sent === "none" ? new Map() : requestsOf(state, name);
    const lines = (one) => (requests.get(one) ?? []).map((request) => requestLine(request, state.row.id, sent === "whole"));
    const did = new Map(order.did.map((one) => [one.step, one]));
    const refusal = did.get("refuse");
    const soldOut = did.size === 0 && order.outcome === "sold-out"; // its first step has refused it
    const refused = refusal ? refusalWords(refusal) : soldOut ? "sold out" : "";
    const refusedStep = steps.find((one) => !did.has(one));
    program.replaceChildren(
      ...steps.map((one) => programLine(one, stepWords(one, steps), did.get(one), one === order.next && order.state !== "crashed", one === refusedStep ? refused : "", lines(one))),
    );
  }

  function draw(state, isTurn, sent) {
    const order = state.orders.find((one) => one.name === name);
    const over = order.state === "ended" || order.state === "crashed";
    setText(wants, order.wants === 1 ? "" : `wants ${order.wants}`);
    setText(badge, stateWords(order));
    badge.className = `state is-${order.state}${order.outcome ? ` is-${order.outcome}` : ""}`;
    drawEarlier(state, sent);
    drawProgram(order, state, sent);
    box.classList.toggle("is-turn", isTurn);
    step.replaceChildren(
      over ? `${name} is ${order.state === "ended" ? "done" : "crashed"}` : `${name}: ${stepWords(order.next ?? "go on", state.steps)}`,
      ...(over ? [] : [make("kbd", {}, isTurn ? `${index} · Space` : String(index))]),
    );
    enable(step, order.can.step);
    setText(reason, reasonOf(order));
    enable(more.end, order.can.step);
    more.end.hidden = over;
    for (const what of FAULTS) more[what].hidden = !order.can[what];
    setText(more.expire, order.state === "waiting" ? "End its place in the queue" : "End its lease");
  }

  return { box, question, step, draw };
}
