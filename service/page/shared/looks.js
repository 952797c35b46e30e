// How the page looks and listens: colours, the projector view, keys, help.
import { byId } from "./dom.js";

const stored = (key, preset) => localStorage.getItem(`oversell.${key}`) ?? preset;
const store = (key, value) => localStorage.setItem(`oversell.${key}`, value);

// What was chosen, else the system's; but a projector shows dark colours badly, so the projector view begins with light ones.
function applyTheme() {
  const chosen = byId("theme").value;
  const big = document.documentElement.classList.contains("is-big");
  const theme = chosen === "auto" && big ? "light" : chosen;
  if (theme === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}

function applyBig(big) {
  document.documentElement.classList.toggle("is-big", big);
  byId("big").setAttribute("aria-pressed", String(big));
  applyTheme();
}

function isTyping(target) {
  return target.closest("input, select, textarea, dialog, [contenteditable]") !== null;
}

// The space bar presses what has the focus, where that can be pressed.
function isPressing(event) {
  return event.key === " " && event.target.closest("button:not([aria-disabled=true]), a, summary") !== null;
}

// KEYS: key → what is done. They can be switched off, since a voice or a reader may send letters.
export function setUpLooks(keys) {
  const theme = byId("theme");
  theme.value = stored("theme", "auto");
  theme.addEventListener("change", () => {
    store("theme", theme.value);
    applyTheme();
  });

  applyBig(stored("big", "no") === "yes");
  byId("big").addEventListener("click", () => {
    const big = !document.documentElement.classList.contains("is-big");
    store("big", big ? "yes" : "no");
    applyBig(big);
  });

  const help = byId("help");
  const open = () => help.open || help.showModal();
  byId("help-open").addEventListener("click", open);

  const shortcuts = byId("shortcuts");
  shortcuts.checked = stored("shortcuts", "on") === "on";
  shortcuts.addEventListener("change", () => store("shortcuts", shortcuts.checked ? "on" : "off"));
  const all = { ...keys, "?": open };
  document.addEventListener("keydown", (event) => {
    if (!shortcuts.checked || event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target) || isPressing(event)) return;
    if (!Object.hasOwn(all, event.key) || (event.repeat && event.key !== "b")) return;
    event.preventDefault();
    all[event.key]();
  });
}
