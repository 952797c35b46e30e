// The question what an order will read, asked in its column before the step, and the learner's score.
import { make } from "../shared/dom.js";
import { readable, whyRead } from "./steps_words.js";

// Options: lane(name): the column of an order; state(): what is shown; move(name): makes the order's step, and resolves to the state
// after it, or null; onAnswer({name, guess, read, right}, text): it was answered, and TEXT says whether that was right.
export function makePrediction({ lane, state, move, onAnswer }) {
  const score = { right: 0, asked: 0 };
  let asking = null; // whose reading is asked for

  function close() {
    const column = asking && lane(asking);
    if (column) {
      const hadFocus = column.question.contains(document.activeElement);
      column.question.hidden = true;
      if (hadFocus) column.step.focus(); // and not the page's beginning
    }
    asking = null;
  }

  async function answer(name, guess) {
    const before = state();
    const after = await move(name);
    if (!after) return;
    const event = after.told.findLast((one) => one.actor === name && (one.step === "read" || one.step === "waits"));
    const read = event?.step === "read" ? Number(event.text.split(" ")[1]) : null;
    const right = guess === read;
    score.asked++;
    if (right) score.right++;
    onAnswer({ name, guess, read, right }, `${right ? "✓ Right" : "✗ No"}: ${whyRead(name, before, after, read)} (${score.right} of ${score.asked} right)`);
  }

  function ask(name) {
    close();
    asking = name;
    const box = lane(name).question;
    // A number has its own key, so that no key names another number.
    const choice = (text, key, choose) => make("button", { type: "button", "data-key": key, onclick: choose }, text, key && " ", key && make("kbd", { "aria-hidden": "true" }, key));
    box.setAttribute("aria-label", `What will ${name} read?`);
    box.replaceChildren(
      make("p", {}, `What will ${name} read?`),
      make(
        "div",
        { class: "group" },
        ...readable(state(), name).map((number) => choice(String(number), number < 10 ? String(number) : null, () => answer(name, number))),
        choice("it waits", "w", () => answer(name, null)),
        make("button", { type: "button", class: "small", onclick: () => move(name) }, "just show me ", make("kbd", { "aria-hidden": "true" }, "Space")),
      ),
    );
    box.hidden = false;
    box.querySelector("button.small").focus(); // Space, which asked for the step, makes it
  }

  return {
    ask, close,
    asked: () => asking,
    choose: (key) => lane(asking).question.querySelector(`[data-key="${key}"]`)?.click(),
  }; // prettier-ignore
}
