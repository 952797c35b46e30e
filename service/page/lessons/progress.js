// What the learner has done in the lessons: kept in this browser, and reported to each listener.
import { sandbox } from "../shared/api.js";

const KEY = "oversell.lessons"; // {"01-lost-update": {predicted: true, checked: true, solved: true, found: [0], place: 10241}, …}
const EVENT = "lesson-progress"; // on the document; its detail: {lesson, predicted, checked, solved, found}

let unsaved = {}; // for a browser that stores nothing

function all() {
  try {
    const stored = JSON.parse(localStorage.getItem(KEY));
    return stored && typeof stored === "object" ? stored : unsaved;
  } catch {
    return unsaved;
  }
}

// {predicted, missed, checked, solved, found, place} of one lesson. CHECKED: its question has the right answer; MISSED: its first answer was
// wrong; FOUND: the numbers of the runs on its
// page that were seen to their end, or whose goals were reached; PLACE: the product of the class in which it was solved, or null.
export function progressOf(lesson) {
  const { predicted = false, missed = false, checked = false, solved = false, found = [], place = null } = all()[lesson] ?? {};
  return { predicted, missed, checked, solved, found, place };
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
export const markMissed = (lesson) => progressOf(lesson).checked || mark(lesson, "missed");
export const markChecked = (lesson) => mark(lesson, "checked");

export function markSolved(lesson) {
  if (!progressOf(lesson).solved) change(lesson, { solved: true, place: sandbox()?.product ?? null });
}

export function markFound(lesson, run) {
  const { found } = progressOf(lesson);
  if (!found.includes(run)) change(lesson, { found: [...found, run] });
}

// The names of the solved lessons, such as "01-lost-update", in the order of the course.
export const solvedLessons = () => Object.keys(all()).filter((lesson) => progressOf(lesson).solved).sort(); // prettier-ignore

// Those that were solved in the class in which this browser has PRODUCT.
export const solvedAt = (product) => solvedLessons().filter((lesson) => progressOf(lesson).place === product); // prettier-ignore

// CALLBACK(lesson) is called for each lesson that this page solves from now on.
export function onSolved(callback) {
  document.addEventListener(EVENT, ({ detail }) => detail.solved && callback(detail.lesson));
}

// CALLBACK() is called when the progress changes, also in another tab, and when it may have changed while this page was left: Back and
// Forward show a page as it was.
export function onProgress(callback) {
  document.addEventListener(EVENT, callback);
  addEventListener("storage", ({ key }) => key === KEY && callback());
  addEventListener("pageshow", ({ persisted }) => persisted && callback());
}

export function forgetProgress() {
  unsaved = {};
  try {
    localStorage.removeItem(KEY);
  } catch {
    // nothing was stored
  }
  document.dispatchEvent(new CustomEvent(EVENT, { detail: { lesson: null, predicted: false, missed: false, checked: false, solved: false, found: [] } }));
}
