// The pages of the lessons: what all of them have, and the learner's progress in the contents.
import { byId, setText } from "../shared/dom.js";
import { setUpLooks } from "../shared/looks.js";
import { forgetProgress, onProgress, progressOf, solvedLessons } from "./progress.js";

// In the contents: which lessons are done, and how many.
function showProgress() {
  const lines = [...document.querySelectorAll(".contents [data-lesson]")];
  for (const line of lines) {
    const { predicted, solved } = progressOf(line.dataset.lesson);
    setText(line.querySelector(".done"), solved ? "✓ solved" : predicted ? "… begun" : "");
  }
  const solved = solvedLessons().length;
  if (solved) setText(byId("progress"), `${solved} of ${lines.length} lessons solved. Your progress stays in this browser.`);
}

setUpLooks({});
byId("forget").addEventListener("click", forgetProgress);
if (document.querySelector(".contents")) {
  showProgress();
  onProgress(showProgress);
}
