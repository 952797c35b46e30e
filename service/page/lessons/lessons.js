// The pages of the lessons: a lesson's questions and runs, and the learner's progress in the contents.
import "../class/news.js";
import { hasService } from "../shared/api.js";
import { byId, setText } from "../shared/dom.js";
import { setUpLooks } from "../shared/looks.js";
import { forgetProgress, onProgress, progressOf, solvedLessons } from "./progress.js";
import { setUpCheck, setUpPrediction } from "./question.js";
import { setUpRun } from "./run.js";

// In the contents: which lessons are done, and how many.
function showProgress() {
  const lines = [...document.querySelectorAll(".contents [data-lesson]")];
  for (const line of lines) {
    const { predicted, solved } = progressOf(line.dataset.lesson);
    setText(line.querySelector(".done"), solved ? "✓ solved" : predicted ? "… begun" : "");
  }
  const solved = solvedLessons().length;
  setText(byId("progress"), solved ? `${solved} of ${lines.length} lessons solved. Your progress stays in this browser.` : "Choose a lesson. Your progress stays in this browser.");
}

// The exercise among the runs of a lesson's page: its goal, or, where there is none, a schedule to step through, or else any run. A page
// without a service has not all schedules, so it asks for no goal.
function exerciseOf(figures, lesson) {
  const kinds = figures.map((figure) => JSON.parse(figure.dataset.run).kind);
  const hasGoal = hasService && kinds.includes("goal");
  const wanted = hasGoal ? "goal" : kinds.includes("replay") ? "replay" : null;
  const counts = kinds.map((kind, index) => (wanted === null || kind === wanted ? index : -1));
  return {
    done: () => figures.length === 0 || progressOf(lesson).found.some((index) => counts.includes(index)),
    todo: hasGoal ? "The lesson is solved when you have also found the schedule of its exercise." : "The lesson is solved when you have also run one of its schedules to the end.",
  };
}

function setUpLesson(main) {
  const { lesson } = main.dataset;
  const runs = new Map([...main.querySelectorAll(".run")].map((figure, index) => [figure, setUpRun(figure, index, lesson)]));
  for (const section of main.querySelectorAll(".quiz")) {
    if (section.dataset.kind === "check") setUpCheck(section, lesson, exerciseOf([...runs.keys()], lesson));
    else {
      const next = [...runs.keys()].find((figure) => section.compareDocumentPosition(figure) & Node.DOCUMENT_POSITION_FOLLOWING);
      setUpPrediction(section, lesson, runs.get(next));
    }
  }
}

setUpLooks({});
byId("forget").addEventListener("click", forgetProgress);
if (byId("lesson").dataset.lesson) setUpLesson(byId("lesson"));
if (document.querySelector(".contents")) {
  showProgress();
  onProgress(showProgress);
}
