// Which parts of the page are shown: the guided story, all controls, or the projector view. The choice is remembered.
import { byId, setText } from "../shared/dom.js";

const KEY = "oversell.view";
const ELSEWHERE = "story all"; // the views of a part that names none in data-in
const OPENS_ALL = ["#order=", "#controls"]; // addresses that name something among the controls

const isBig = () => document.documentElement.classList.contains("is-big");
const chosen = () => document.body.dataset.view; // without the projector view, which is a second choice on top

// Does the user see the figures of the sale? The story alone shows its own.
export const seesSale = () => isBig() || chosen() === "all";
export const isProjected = isBig;

function show() {
  const view = isBig() ? "projector" : chosen();
  for (const part of byId("main").children) part.classList.toggle("is-folded", !(part.dataset.in ?? ELSEWHERE).split(" ").includes(view));
  setText(byId("controls"), view === "all" ? "Guided story" : "All controls");
  dispatchEvent(new Event("resize")); // what was drawn while it was hidden
}

// VIEW: "story" or "all". It is remembered unless an address asked for it.
export function openView(view, remembered = true) {
  document.body.dataset.view = view;
  if (remembered) localStorage.setItem(KEY, view);
  if (isBig()) byId("big").click(); // shows it
  else show();
}

function openAddress() {
  if (OPENS_ALL.some((address) => location.hash.startsWith(address)) && !seesSale()) openView("all", false);
}

export function setUpViews() {
  document.body.dataset.view = localStorage.getItem(KEY) === "all" ? "all" : "story";
  byId("controls").addEventListener("click", () => openView(chosen() === "all" && !isBig() ? "story" : "all"));
  byId("big").addEventListener("click", show); // after looks.js has switched it
  addEventListener("hashchange", openAddress);
  show();
  openAddress();
}
