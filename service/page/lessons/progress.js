// What the learner has done in the lessons: kept in this browser, and told to whoever listens.
const KEY = "oversell.lessons"; // {"01-lost-update": {predicted: true, solved: true}, …}
const EVENT = "lesson-progress"; // on the document; its detail: {lesson, predicted, solved}

let unsaved = {}; // for a browser that stores nothing

function all() {
  try {
    const stored = JSON.parse(localStorage.getItem(KEY));
    return stored && typeof stored === "object" ? stored : unsaved;
  } catch {
    return unsaved;
  }
}

// {predicted, solved} of one lesson.
export function progressOf(lesson) {
  const { predicted = false, solved = false } = all()[lesson] ?? {};
  return { predicted, solved };
}

function mark(lesson, what) {
  if (progressOf(lesson)[what]) return;
  unsaved = { ...all(), [lesson]: { ...progressOf(lesson), [what]: true } };
  try {
    localStorage.setItem(KEY, JSON.stringify(unsaved));
  } catch {
    // A private window: the progress lasts as long as the page.
  }
  document.dispatchEvent(new CustomEvent(EVENT, { detail: { lesson, ...progressOf(lesson) } }));
}

export const markPredicted = (lesson) => mark(lesson, "predicted");
export const markSolved = (lesson) => mark(lesson, "solved");

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
  document.dispatchEvent(new CustomEvent(EVENT, { detail: { lesson: null, predicted: false, solved: false } }));
}
