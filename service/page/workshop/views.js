// Which parts of the page are shown: the guided story, all controls, or the projector view. The browser remembers the choice.
import { byId, setText } from "../shared/dom.js";

const KEY = "oversell.view";
const ELSEWHERE = "story all"; // the views of a part that names none in data-in
const CONTROLS = "#controls";
const ORDER = "#order="; // the timeline shows it, also in the projector view

const isBig = () => document.documentElement.classList.contains("is-big");
const chosen = () => document.body.dataset.view; // without the projector view, which is a second choice on top

// Does the user see the figures of the sale? The story alone shows its own.
export const seesSale = () => isBig() || chosen() === "all";
export const isProjected = isBig;

function show() {
  const view = isBig() ? "projector" : chosen();
  for (const part of byId("main").children) part.classList.toggle("is-folded", !(part.dataset.in ?? ELSEWHERE).split(" ").includes(view));
  setText(byId("controls"), view === "all" ? "Guided story" : "All controls");
}

// VIEW: "story" or "all". It is remembered unless an address asked for it.
export function openView(view, remembered = true) {
  document.body.dataset.view = view;
  if (remembered) localStorage.setItem(KEY, view);
  if (isBig()) byId("big").click(); // shows it
  else show();
}

function openAddress() {
  const isControls = location.hash === CONTROLS;
  if ((isControls && (isBig() || chosen() !== "all")) || (location.hash.startsWith(ORDER) && !seesSale())) openView("all", false);
}

// The address of the controls does not fit another view.
function switchView() {
  if (location.hash === CONTROLS) history.replaceState(null, "", location.pathname + location.search);
  openView(chosen() === "all" && !isBig() ? "story" : "all");
}

export function setUpViews() {
  document.body.dataset.view = localStorage.getItem(KEY) === "all" ? "all" : "story";
  byId("controls").addEventListener("click", switchView);
  byId("big").addEventListener("click", show); // after looks.js has switched it
  addEventListener("hashchange", openAddress);
  show();
  openAddress();
}
