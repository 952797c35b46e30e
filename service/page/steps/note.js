// A sentence about a state of a step-through. It goes as soon as a state is shown that it does not speak of.
import { setText } from "../shared/dom.js";

// {say(text, speaksOf), clear(), check(state)}, shown in ELEMENT. SPEAKS_OF(state): whether the sentence is true of this state, too.
export function makeNote(element) {
  let isTrueOf = () => true;
  const say = (text, speaksOf = () => true) => {
    isTrueOf = speaksOf;
    setText(element, text);
  };
  const clear = () => say("");
  return { say, clear, check: (state) => isTrueOf(state) || clear() };
}
