// Small helpers for elements and numbers, shared by all modules of the page.

export const byId = (id) => document.getElementById(id);

// Makes an element: make("p", { class: "quiet" }, "text", other). Text is set as text, never as HTML.
export function make(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

export function makeSvg(name, attributes = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

// Sets text only where it differs, so that a screen reader is not told the same again.
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

// Shows the state of the connection at the top of the page, in one or two words. PROBLEM is a sentence that says what is wrong, or "".
export function showPulse(text, problem = "") {
  const place = byId("pulse");
  setText(place, text);
  place.title = problem;
  place.classList.toggle("is-away", problem !== "");
}

const WHOLE = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const THREE = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });

export const whole = (number) => (Number.isFinite(number) ? WHOLE.format(number) : "–");
export const short = (number) =>
  !Number.isFinite(number) ? "–" : Math.abs(number) >= 1000 ? WHOLE.format(number) : THREE.format(number);
export const micros = (us) =>
  us < 1000 ? `${Math.round(us)} µs` : us < 1e6 ? `${THREE.format(us / 1000)} ms` : `${THREE.format(us / 1e6)} s`;
// An error detail of the API as a sentence: with a capital letter, and with a full stop.
export const asSentence = (text) => text.charAt(0).toUpperCase() + text.slice(1) + (/[.!?]$/.test(text) ? "" : ".");
export const plural = (number, one, many) => `${whole(number)} ${number === 1 ? one : many}`;

// The log that tells in words what happened, newest first for the eye; a screen reader hears each line once.
const LOG_LINES = 200;

export function tell(text, kind = "") {
  const log = byId("log");
  const time = new Date().toLocaleTimeString("en-GB");
  log.prepend(make("li", { class: kind }, make("time", {}, time), " ", text));
  while (log.children.length > LOG_LINES) log.lastChild.remove();
}

// Why the service has no address for learners, and what the teacher can do. PATH: of this page.
export const inContainer = (path) =>
  `The service runs in a container, so it does not know the address of this computer. Open this page at an address that learners can open, such as http://192.168.1.20:${location.port || 80}${path}.`;

let alertTimer;

// Something failed: said on top of the page until something works, or some time has passed. STAYS: until then only.
export function alertUser(text, stays = false) {
  const box = byId("alert");
  box.hidden = !text;
  setText(box, text ?? "");
  clearTimeout(alertTimer);
  if (text && !stays) alertTimer = setTimeout(() => alertUser(null), 12000);
}

// Copies TEXT. Pages from http://ADDRESS have no clipboard API, so an older way is tried there. Returns whether it
// was copied; if not, FIELD shows the text selected, to be copied by hand.
export async function copy(text, field) {
  field.value = text;
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    field.hidden = false;
    field.focus();
    field.select();
    const copied = document.execCommand("copy");
    field.hidden = copied;
    return copied;
  }
}
