// Shows learners, on every page, what the teacher has sent to all (a question, a strategy or a schedule), and reports solved lessons.
import { adminToken, call, sandbox } from "../shared/api.js";
import { make, setText } from "../shared/dom.js";
import { onSolved, solvedAt } from "../lessons/progress.js";
import { stepsAddress } from "../steps/schedule_text.js";

const POLL_MS = 2500; // while the page is visible
const SEEN_KEY = "oversell.news"; // {push, question}: the ids that the learner has closed

let following = false;
let version = 0;
let news = { question: null, vote: null, push: null };
let timer;
let bar = null;
let voting = Promise.resolve(); // one vote after the other, so that the last one counts
let votesCast = 0;

const ask = (method, path, body) => call(method, path, body, sandbox()?.token ?? "");

function seen() {
  try {
    return JSON.parse(sessionStorage.getItem(SEEN_KEY)) ?? {};
  } catch {
    return {};
  }
}

function closeNews(what, id) {
  sessionStorage.setItem(SEEN_KEY, JSON.stringify({ ...seen(), [what]: id }));
  show();
}

async function attempt(act) {
  try {
    await act();
  } catch (problem) {
    setText(bar.querySelector("[role=alert]"), problem.message);
  }
}

function vote(question, answer) {
  voting = voting.then(() =>
    attempt(async () => {
      await ask("PUT", "/class/vote", { question, answer });
      votesCast++;
      if (news.question?.id !== question) return; // the teacher has asked another one meanwhile
      news.vote = answer;
      show();
    }),
  );
}

// Sets the strategy for the learner's product. A new strategy starts a new sale, with the kind of stock that it needs.
async function setStrategy(name) {
  const { product } = sandbox();
  const [{ strategies }, { initial: stock }] = await Promise.all([ask("GET", "/strategies"), ask("GET", `/products/${product}`)]);
  const kind = strategies.find((row) => row.name === name)?.stock_kind ?? "counter";
  await ask("PUT", `/strategy?product_id=${product}`, { name });
  await ask("POST", `/products/${product}/reset`, { stock, kind });
}

// The address of all controls, because the guided story would set another strategy.
const go = () =>
  attempt(async () => {
    const { id, kind, text } = news.push;
    if (kind === "strategy") await setStrategy(text);
    closeNews("push", id);
    location.assign(kind === "strategy" ? "/#controls" : stepsAddress(text));
  });

const closer = (what, id) => make("button", { type: "button", class: "small", "aria-label": `Close the ${what}`, onclick: () => closeNews(what === "question" ? "question" : "push", id) }, "Close");

function pushLine({ id, text }) {
  return make("p", {}, "Your teacher opened ", make("strong", {}, text), ". ", make("button", { type: "button", class: "primary", "data-key": "go", onclick: go }, "Go there"), " ", closer("message", id));
}

function outcome({ right, answers }) {
  if (right === null) return "The teacher has closed the question.";
  const yours = news.vote === null ? "" : news.vote === right ? " Your answer is right." : " Your answer is wrong.";
  return `The right answer: ${answers[right]}.${yours}`;
}

function questionLine(question) {
  if (!question.open) return make("p", {}, make("strong", {}, question.text), ` ${outcome(question)} `, closer("question", question.id));
  const answers = question.answers.map((answer, index) =>
    make("button", { type: "button", "data-key": `answer-${index}`, "aria-pressed": String(news.vote === index), onclick: () => vote(question.id, index) }, answer),
  );
  return make("div", { class: "group", role: "group", "aria-label": "Your answer" }, make("strong", {}, question.text), ...answers);
}

// The bar is the first thing on the page. A screen reader hears what is new.
function makeBar() {
  document.head.append(make("link", { rel: "stylesheet", href: "/page/class/news.css" }));
  bar = make("aside", { id: "class-news", class: "class-news", "aria-label": "From your teacher" }, make("div", { "aria-live": "polite" }), make("p", { class: "is-bad", role: "alert" }));
  document.body.prepend(bar);
}

function show() {
  if (!bar) makeBar();
  const { question, push } = news;
  const closed = seen();
  const key = document.activeElement?.closest?.("#class-news [data-key]")?.dataset.key;
  const lines = [question && closed.question !== question.id && questionLine(question), push && closed.push !== push.id && pushLine(push)].filter(Boolean);
  bar.firstChild.replaceChildren(...lines);
  setText(bar.lastChild, "");
  bar.hidden = lines.length === 0;
  if (key) bar.querySelector(`[data-key="${key}"]`)?.focus();
}

async function poll() {
  clearTimeout(timer);
  try {
    const votesBefore = votesCast;
    const told = await ask("GET", `/class/news?version=${version}`);
    // What was asked before a vote may not contain it: the next poll does.
    if (told.version !== version && votesCast === votesBefore) {
      ({ version } = told);
      news = told;
      show();
    }
  } catch (problem) {
    if (problem.status === 401 || problem.status === 404) {
      stop();
      return;
    }
  }
  clearTimeout(timer); // of another poll, which began meanwhile
  if (following && !document.hidden) timer = setTimeout(poll, POLL_MS);
}

function stop() {
  following = false;
  version = 0;
  if (bar) bar.hidden = true;
}

function report() {
  // The service has seen the exercises of this place alone.
  const lessons = solvedAt(sandbox()?.product).filter((lesson) => /^\d/.test(lesson));
  if (following && lessons.length > 0) ask("PUT", "/class/solved", { lessons }).catch(() => {}); // the next one reports all again
}

// Starts to follow the class, if this browser has a place in one. Calling it again does no harm.
export async function followClass() {
  if (following || !sandbox() || adminToken()) return;
  following = true;
  try {
    const { classroom, owns } = await ask("GET", "/classroom");
    following = classroom && owns !== null;
  } catch {
    following = false;
  }
  if (!following) return;
  report();
  await poll();
}

document.addEventListener("visibilitychange", () => following && !document.hidden && poll());
onSolved(report);
followClass();
