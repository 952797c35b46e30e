// A second strategy next to a step-through: shows the state after the same schedule with that strategy.
import { make, setText } from "../shared/dom.js";
import { GUARANTEES } from "../shared/strategy_words.js";
import { follower } from "./beside.js";
import { makeFrame } from "./stepper_frame.js";
import { makeView } from "./stepper_view.js";
import { problemWords } from "./steps_words.js";

const PREFIX = "beside-";

// Shows ROW (of GET /strategies) in ELEMENT. SOURCE: as live_source.js has it; onProblem(text): a call failed. Returns follow(state),
// to be called with each state of the first strategy; it resolves when ELEMENT shows where that leads.
export function mountBeside(element, { source, row, onProblem }) {
  const ui = makeFrame(element, PREFIX, false);
  const nothing = () => {};
  const view = makeView(ui, PREFIX, { act: nothing, go: nothing, again: nothing });
  const follow = follower(source, row.name);
  let before = null;
  element.classList.add("is-following");
  ui.goal.replaceChildren("With ", make("b", {}, row.name));
  setText(ui.why, `${row.title}. ${GUARANTEES[row.guarantee].title}: ${GUARANTEES[row.guarantee].means}.`);
  return async (state) => {
    element.setAttribute("aria-busy", "true");
    try {
      const mine = await follow(state);
      if (!mine) return; // a newer state is on its way
      view.draw(mine, before, null);
      before = mine;
    } catch (problem) {
      onProblem(problemWords(problem, row.name));
    }
    element.removeAttribute("aria-busy");
  };
}
