// The class board, which the teacher shows on a projector: learners, solved lessons, a question with its votes, and the address.
import { adminToken, call, getToken } from "../shared/api.js";
import { alertUser, byId, inContainer, make, plural, setText } from "../shared/dom.js";

const POLL_MS = 2000; // while the page is visible
const ORIGIN = new URLSearchParams({ origin: location.origin }); // which a proxy may hide from the service

let timer;
let board = null; // what is shown
let drawn = null; // the address and code of the QR code

// Numbers as ranges: 1–4, 6.
function ranges(numbers) {
  const found = [];
  for (const number of numbers) {
    const last = found.at(-1);
    if (last && last[1] === number - 1) last[1] = number;
    else found.push([number, number]);
  }
  return found.map(([from, to]) => (from === to ? `${from}` : `${from}–${to}`)).join(", ");
}

function nameItem({ name, solved, voted }) {
  const waits = voted && board.question?.open;
  const done = solved.length > 0 ? `${solved.length} ✓ ${ranges(solved)}` : "";
  return make("li", { class: waits ? "has-voted" : null }, make("strong", { title: name }, name), make("span", { title: done }, done));
}

// So few learners get wider places, for longer names.
const FEW_LEARNERS = 20;

function showNames() {
  const { learners } = board;
  byId("names").classList.toggle("is-few", learners.length <= FEW_LEARNERS);
  setText(byId("count"), learners.length > 0 ? plural(learners.length, "learner", "learners") : "No learners yet");
  byId("names").replaceChildren(...learners.map(nameItem));
}

function showQuestion() {
  const { question, votes, learners } = board;
  byId("question").hidden = byId("voted").hidden = !question;
  document.body.classList.toggle("has-question", question !== null);
  byId("close-question").hidden = !question?.open;
  byId("clear-question").hidden = !question || question.open;
  if (!question) return;
  const voted = votes.reduce((sum, count) => sum + count, 0);
  setText(byId("question-text"), question.text);
  byId("votes").replaceChildren(
    ...question.answers.map((answer, index) =>
      make(
        "li",
        { class: question.right === index ? "is-right" : null },
        make("span", {}, question.right === index ? `✓ ${answer}` : answer),
        // While learners vote they must not see what others chose.
        question.open ? null : make("progress", { max: Math.max(voted, 1), value: votes[index], "aria-label": `Votes for ${answer}` }),
        question.open ? null : make("output", {}, String(votes[index])),
      ),
    ),
  );
  const away = learners.filter((learner) => learner.away && !learner.voted).length;
  const absent = away > 0 ? ` (${away} more ${away === 1 ? "is" : "are"} away)` : "";
  setText(byId("voted"), question.open ? `${voted} of ${learners.length - away} have voted${absent}. The votes are shown when the question is closed.` : "The question is closed.");
}

function showAddress() {
  const { address, address_of: source, code } = board;
  setText(byId("code"), code);
  setText(byId("address"), address ?? "");
  byId("reach").hidden = !address;
  byId("alone").hidden = address !== null;
  if (!address) setText(byId("alone"), source === "container" ? inContainer("/class") : `No other computer can reach this service. Start it with --listen 0.0.0.0:${location.port || 80}.`);
  byId("guess").hidden = source !== "interface";
  setText(byId("guess"), `If learners cannot open it, open this page at another address of this computer instead of ${location.hostname}.`);
  const wanted = address && `${address} ${code}`;
  if (wanted && wanted !== drawn) drawAddress(wanted);
}

// The drawing needs the token, so it cannot be the source of an image.
async function drawAddress(wanted) {
  drawn = wanted;
  try {
    const response = await fetch(`/class/address.svg?${ORIGIN}`, { headers: { Authorization: `Bearer ${adminToken()}` }, cache: "no-store" });
    if (!response.ok) throw new Error(String(response.status));
    const svg = new DOMParser().parseFromString(await response.text(), "image/svg+xml").documentElement;
    svg.setAttribute("aria-hidden", "true"); // the element around it has the name
    byId("qr").replaceChildren(document.importNode(svg, true));
  } catch {
    drawn = null; // the next look tries again
  }
}

function show(told) {
  const away = ({ learners }) => learners.map((one) => one.away).join();
  if (board?.version === told.version && away(board) === away(told) && board.address === told.address && board.address_of === told.address_of && board.code === told.code) return;
  board = told;
  showAddress();
  showNames();
  showQuestion();
  byId("sent").hidden = !board.push;
  setText(byId("sent-text"), board.push ? `Sent to all: ${board.push.text}` : "");
}

// Without the teacher's token the page has nothing to show but a button that asks for it.
function showLocked(isLocked) {
  for (const id of ["board", "join"]) byId(id).hidden = isLocked;
  byId("locked").hidden = !isLocked;
  if (isLocked) board = drawn = null;
}

async function look() {
  clearTimeout(timer);
  try {
    show(await call("GET", `/class/board?${ORIGIN}`, undefined, adminToken() ?? "")); // a look never opens a dialog
    showLocked(false);
    alertUser(null);
  } catch (problem) {
    const isOver = problem.status === 401 || problem.status === 404;
    if (isOver) showLocked(true);
    alertUser(problem.status === 401 ? "The service does not accept the teacher's token any more. Enter the new one." : problem.message, true);
    if (isOver) return;
  }
  clearTimeout(timer);
  if (!document.hidden) timer = setTimeout(look, POLL_MS);
}

// Asks for the token until it is the teacher's, then shows the board.
async function unlock() {
  showLocked(true);
  try {
    if (await getToken()) await look();
    else byId("unlock").focus();
  } catch (problem) {
    alertUser(problem.message, true);
  }
}

// A form in a dialog whose primary button calls ACT; the dialog stays open with the reason while ACT fails.
function setUpForm(name, act) {
  const dialog = byId(`${name}-dialog`);
  byId(`${name}-open`).addEventListener("click", () => {
    setText(byId(`${name}-error`), "");
    dialog.showModal();
  });
  byId(`${name}-form`).addEventListener("submit", async (event) => {
    if (event.submitter?.value === "cancel") return;
    event.preventDefault();
    try {
      await act();
      dialog.close();
      await look();
    } catch (problem) {
      setText(byId(`${name}-error`), problem.message);
    }
  });
}

async function askQuestion() {
  const answers = byId("ask-answers").value.split("\n").map((line) => line.trim()).filter(Boolean); // prettier-ignore
  if (answers.length < 2 || answers.length > 6) throw new Error("Enter from 2 to 6 answers, each on a separate line.");
  await call("POST", "/class/question", { text: byId("ask-text").value.trim(), answers });
}

let names = [];

async function send() {
  // The address of /steps contains a schedule, too.
  const text = byId("send-text").value.trim().replace(/^\S*\/steps#/, "").replace(/&(with|from)=.*$/, "").replaceAll("+", " ");
  await call("POST", "/class/push", names.includes(text) ? { strategy: text } : { schedule: text });
}

function closeQuestion() {
  const choice = (value, text) => make("button", { value }, text);
  byId("rights").replaceChildren(
    ...board.question.answers.map((answer, index) => choice(String(index), answer)),
    choice("none", "Close without an answer"),
    choice("cancel", "Keep it open"),
  );
  byId("close-dialog").returnValue = "";
  byId("close-dialog").showModal();
}

byId("close-dialog").addEventListener("close", async () => {
  const { returnValue: chosen } = byId("close-dialog");
  if (chosen === "" || chosen === "cancel") return;
  try {
    await call("POST", "/class/question/close", chosen === "none" ? {} : { right: Number(chosen) });
    await look();
    byId("ask-open").focus();
  } catch (problem) {
    alertUser(problem.message);
  }
});
byId("close-question").addEventListener("click", closeQuestion);
byId("clear-question").addEventListener("click", async () => {
  try {
    await call("DELETE", "/class/question");
    await look();
    byId("ask-open").focus();
  } catch (problem) {
    alertUser(problem.message);
  }
});
byId("unlock").addEventListener("click", unlock);
byId("withdraw").addEventListener("click", async () => {
  try {
    await call("POST", "/class/push", {});
    await look();
    byId("send-open").focus();
  } catch (problem) {
    alertUser(problem.message);
  }
});
byId("ask-text").value = "What will B read?";
byId("ask-answers").value = "0\n1\nB waits";
setUpForm("ask", askQuestion);
setUpForm("send", send);
document.addEventListener("visibilitychange", () => board && !document.hidden && look());

// Shows the board, asks for the token, or says why there is nothing to show.
async function begin() {
  const { classroom, teacher } = await call("GET", "/classroom");
  if (!classroom) alertUser("This service has no class. Start it with --classroom, and open this page again.", true);
  else if (teacher) await look();
  else await unlock();
}

begin().catch((problem) => alertUser(problem.message, true));
names = (await call("GET", "/strategies").catch(() => ({ strategies: [] }))).strategies.map(({ name }) => name);
byId("strategies").append(...names.map((name) => make("option", { value: name })));
