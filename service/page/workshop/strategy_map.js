// The strategies as a map in groups. Keys and clicks only select; the button Apply switches.
import { byId, make, setText } from "../shared/dom.js";
import { inGroups } from "../shared/strategy_groups.js";
import { allStrategies, currentStrategy, detailsOf, GUARANTEES, refreshStrategies, strategyNamed, switchStrategy, whyAway } from "./strategies.js";

const TYPING_MS = 700; // letters that follow each other within this time are one word

let shop;
let selected = null; // the name whose details are shown

// Why this page cannot apply the row, or null.
function obstacle(row) {
  if (!row.available) return whyAway(row);
  if (shop.learner && row.locks_all) return `${row.name} locks the products of all learners, so only the teacher can apply it. Run it step by step instead.`;
  return null;
}

const tiles = () => [...byId("strategy-map").querySelectorAll("[role=option]")];
const tileOf = (name) => byId("strategy-map").querySelector(`[data-strategy="${CSS.escape(name)}"]`);

function makeTile(row) {
  const { sign, short } = GUARANTEES[row.guarantee];
  const isSet = row.name === currentStrategy()?.name;
  const why = obstacle(row);
  return make(
    "div",
    {
      role: "option",
      class: `tile is-${row.guarantee}${why ? " is-away" : ""}${isSet ? " is-set" : ""}`,
      tabindex: "-1",
      title: row.title,
      "data-strategy": row.name,
      "aria-selected": String(row.name === selected),
      "aria-disabled": why ? "true" : null,
    },
    make("span", { class: "tile-sign", "aria-hidden": "true" }, why ? "–" : sign),
    make("span", { class: "tile-name" }, row.name),
    make("span", { class: "tile-word" }, `${why ? "not available" : short}${isSet ? " · set now" : ""}`),
  );
}

function draw() {
  byId("strategy-map").replaceChildren(
    ...inGroups(allStrategies()).map(({ group, title, rows }) =>
      make("div", { class: "map-group", role: "group", "aria-label": title, "data-group": group },
        make("p", { class: "map-title", "aria-hidden": "true" }, title),
        make("div", { class: "tiles", role: "presentation" }, ...rows.map(makeTile)))),
  );
  select(selected);
}

// Exactly one tile is reached by Tab.
function focusOn(tile) {
  for (const other of tiles()) other.tabIndex = other === tile ? 0 : -1;
  tile.focus();
}

function select(name) {
  selected = name;
  const row = strategyNamed(name);
  for (const tile of tiles()) {
    tile.setAttribute("aria-selected", String(tile.dataset.strategy === name));
    tile.tabIndex = tile.dataset.strategy === name ? 0 : -1;
  }
  byId("strategy-detail").replaceChildren(make("h3", {}, row.name), ...detailsOf(row));
  const why = obstacle(row);
  setText(byId("strategy-problem"), why && row.available ? why : ""); // the details say why a server is missing
  const isSet = name === currentStrategy()?.name;
  byId("strategy-apply").disabled = why !== null || isSet;
  setText(byId("strategy-apply"), isSet ? `${name} is set` : `Apply ${name}`);
}

// The tile nearest to FROM in the direction of DY (1: below, -1: above), or FROM.
function nearest(from, dy) {
  const middle = (tile) => {
    const { left, top, width, height } = tile.getBoundingClientRect();
    return { x: left + width / 2, y: top + height / 2 };
  };
  const here = middle(from);
  const far = (tile) => {
    const { x, y } = middle(tile);
    return (y - here.y) * dy < 4 ? Infinity : (y - here.y) * dy * 4 + Math.abs(x - here.x);
  };
  return tiles().reduce((best, tile) => (far(tile) < far(best) ? tile : best), from);
}

let typed = { text: "", at: 0 };

function byLetters(from, key) {
  const now = performance.now();
  typed = { text: now - typed.at > TYPING_MS ? key : typed.text + key, at: now };
  const all = tiles();
  const start = all.indexOf(from) + (typed.text.length === 1 ? 1 : 0);
  return [...all.slice(start), ...all.slice(0, start)].find((tile) => tile.dataset.strategy.startsWith(typed.text)) ?? from;
}

function onKey(event) {
  const tile = event.target.closest("[role=option]");
  if (!tile || event.ctrlKey || event.metaKey || event.altKey) return;
  const all = tiles();
  const beside = (by) => all[Math.min(Math.max(all.indexOf(tile) + by, 0), all.length - 1)];
  const moves = {
    ArrowRight: () => beside(1),
    ArrowLeft: () => beside(-1),
    ArrowDown: () => nearest(tile, 1),
    ArrowUp: () => nearest(tile, -1),
    Home: () => all[0],
    End: () => all.at(-1),
  };
  if (event.key === "Enter" || event.key === " ") select(tile.dataset.strategy);
  else if (Object.hasOwn(moves, event.key)) focusOn(moves[event.key]());
  else if (/^[a-z0-9-]$/.test(event.key)) focusOn(byLetters(tile, event.key));
  else return;
  event.preventDefault();
}

async function open() {
  selected = currentStrategy().name;
  setText(byId("strategy-problem"), "");
  draw();
  byId("strategy-dialog").showModal();
  focusOn(tileOf(selected));
  const away = () => allStrategies().filter(({ available }) => !available).map(({ name }) => name).join(" ");
  const before = away();
  try {
    await refreshStrategies();
    if (!byId("strategy-dialog").open || away() === before) return;
    const focused = document.activeElement?.dataset?.strategy;
    draw();
    if (focused) focusOn(tileOf(focused));
  } catch (problem) {
    setText(byId("strategy-problem"), problem.message);
  }
}

// ON_SWITCH is called when the service has switched. Returns what opens the map.
export function setUpMap(theShop, onSwitch) {
  shop = theShop;
  const map = byId("strategy-map");
  map.addEventListener("keydown", onKey);
  map.addEventListener("click", (event) => {
    const tile = event.target.closest("[role=option]");
    if (!tile) return;
    select(tile.dataset.strategy);
    focusOn(tile);
  });
  byId("strategy-apply").addEventListener("click", async () => {
    const name = selected;
    byId("strategy-apply").disabled = true;
    try {
      await switchStrategy(shop, name, onSwitch);
      byId("strategy-dialog").close();
    } catch (problem) {
      setText(byId("strategy-problem"), `The strategy was not changed. ${problem.message}`);
      byId("strategy-apply").disabled = false;
    }
  });
  byId("strategy-open").addEventListener("click", open);
  byId("strategy-open").disabled = false;
  return open;
}
