// A question of a lesson with its answers: a prediction, which the next run decides, or a check, which is decided at once.
import { make } from "../shared/dom.js";
import { markChecked, markMissed, markPredicted, markSolved, onProgress, progressOf } from "./progress.js";

const contents = (element) => [...element.cloneNode(true).childNodes];

// Puts buttons in the place of the answers of SECTION. CHOSE(answer, verdict) is called with each answer that is chosen:
// {right, says, reason}, and the line that tells the learner about it.
function offer(section, chose) {
  const asked = section.querySelector(".asked");
  asked.id = `${section.dataset.kind}-asked`;
  const list = section.querySelector("ul");
  const verdict = make("p", { class: "verdict", role: "status" });
  const answers = [...list.children].map((item) => ({
    right: item.dataset.answer === "right",
    says: item.querySelector(".says"),
    reason: item.querySelector(".reason"),
  }));
  const buttons = answers.map((answer) =>
    make("button", { type: "button", class: "answer", "aria-pressed": "false", onclick: ({ currentTarget }) => {
      for (const button of buttons) button.setAttribute("aria-pressed", String(button === currentTarget));
      chose(answer, verdict);
    } }, ...contents(answer.says)),
  ); // prettier-ignore
  list.replaceWith(make("div", { class: "answers", role: "group", "aria-labelledby": asked.id }, ...buttons), verdict);
  return { answers, buttons, verdict };
}

// What a lesson's prediction is about has been seen.
function decide(verdict, chosen, answers) {
  const right = answers.find((answer) => answer.right);
  verdict.classList.add(chosen.right ? "is-right" : "is-wrong");
  if (chosen.right) verdict.replaceChildren("✓ As you predicted: ", ...contents(right.reason));
  else verdict.replaceChildren("✗ Not ", make("q", {}, ...contents(chosen.says)), ": ", ...contents(chosen.reason), " It is ", make("q", {}, ...contents(right.says)), ": ", ...contents(right.reason));
}

// RUN: the next run of the lesson; run.open() lets the learner see, and run.whenSeen(callback) says when that has happened.
export function setUpPrediction(section, lesson, run) {
  let chosen = null;
  let seen = false;
  const { answers, verdict } = offer(section, (answer) => {
    if (seen && chosen) return; // the first prediction counts
    chosen = answer;
    markPredicted(lesson);
    verdict.replaceChildren(run.hint);
    if (seen) decide(verdict, chosen, answers);
    else run.open();
  });
  run.whenSeen(() => {
    if (!seen && chosen) decide(verdict, chosen, answers);
    seen = true;
  });
}

// EXERCISE: {done(), todo}: whether the learner has done the lesson's exercise, and what to do. The lesson is solved when the right answer is
// given and the exercise done, in either sequence.
export function setUpCheck(section, lesson, exercise) {
  const how = () => (progressOf(lesson).missed ? ", but not with your first answer" : "");
  const solvedText = () => `✓ You have solved this lesson${how()}.`;
  const { buttons, verdict } = offer(section, (answer) => {
    if (!answer.right) markMissed(lesson);
    verdict.classList.toggle("is-right", answer.right);
    verdict.classList.toggle("is-wrong", !answer.right);
    verdict.replaceChildren(answer.right ? `✓ Right${how()}: ` : "✗ No: ", ...contents(answer.reason));
    if (answer.right && !exercise.done()) verdict.append(" ", exercise.todo);
    if (answer.right) markChecked(lesson);
  });
  const settle = () => {
    const { checked, solved } = progressOf(lesson);
    if (checked && !solved && exercise.done()) markSolved(lesson);
  };
  onProgress(settle);
  onProgress(() => progressOf(lesson).solved && verdict.textContent.endsWith(exercise.todo) && verdict.replaceChildren(solvedText()));
  // The learner has deleted the progress: nothing is answered or solved any more.
  onProgress(() => {
    if (progressOf(lesson).checked || !verdict.textContent.startsWith("✓")) return;
    verdict.replaceChildren();
    verdict.classList.remove("is-right");
    for (const button of buttons) button.setAttribute("aria-pressed", "false");
  });
  const { checked, solved } = progressOf(lesson);
  if (solved) verdict.textContent = solvedText();
  else if (checked) verdict.textContent = `✓ You have answered this${how()}. ${exercise.todo}`;
}
