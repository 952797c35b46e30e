// What the learner has done in the lessons: kept in this browser, and reported to each listener.
const KEY = "oversell.lessons"; // {"01-lost-update": {predicted: true, solved: true, found: [0]}, …}
const EVENT = "lesson-progress"; // on the document; its detail: {lesson, predicted, solved, found}

let unsaved = {}; // for a browser that stores nothing

function all() {
  try {
    const stored = JSON.parse(localStorage.getItem(KEY));
    return stored && typeof stored === "object" ? stored : unsaved;
  } catch {
    return unsaved;
  }
}

// {predicted, solved, found} of one lesson. FOUND: the numbers of the runs on its page whose goals were reached.
export function progressOf(lesson) {
  const { predicted = false, solved = false, found = [] } = all()[lesson] ?? {};
  return { predicted, solved, found };
}

function change(lesson, part) {
  unsaved = { ...all(), [lesson]: { ...progressOf(lesson), ...part } };
  try {
    localStorage.setItem(KEY, JSON.stringify(unsaved));
  } catch {
    // A private window: the progress lasts as long as the page.
  }
  document.dispatchEvent(new CustomEvent(EVENT, { detail: { lesson, ...progressOf(lesson) } }));
}

function mark(lesson, what) {
  if (!progressOf(lesson)[what]) change(lesson, { [what]: true });
}

export const markPredicted = (lesson) => mark(lesson, "predicted");
export const markSolved = (lesson) => mark(lesson, "solved");

export function markFound(lesson, run) {
  const { found } = progressOf(lesson);
  if (!found.includes(run)) change(lesson, { found: [...found, run] });
}

// The names of the solved lessons, such as "01-lost-update", in the order of the course.
export const solvedLessons = () => Object.keys(all()).filter((lesson) => progressOf(lesson).solved).sort(); // prettier-ignore

// CALLBACK(lesson) is called for each lesson that this page solves from now on.
export function onSolved(callback) {
  document.addEventListener(EVENT, ({ detail }) => detail.solved && callback(detail.lesson));
}

// CALLBACK() is called when the progress changes, also in another tab.
export function onProgress(callback) {
  document.addEventListener(EVENT, callback);
  addEventListener("storage", ({ key }) => key === KEY && callback());
}

export function forgetProgress() {
  unsaved = {};
  try {
    localStorage.removeItem(KEY);
  } catch {
    // nothing was stored
  }
  document.dispatchEvent(new CustomEvent(EVENT, { detail: { lesson: null, predicted: false, solved: false, found: [] } }));
}
