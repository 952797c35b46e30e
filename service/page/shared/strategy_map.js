// The strategies as a map in groups, in a dialog. Keys and clicks only select; the button Apply applies.
import { byId, make, setText } from "./dom.js";
import { inGroups } from "./strategy_groups.js";
import { detailsOf, GUARANTEES, whyAway } from "./strategy_words.js";

const TYPING_MS = 700; // letters that follow each other within this time are one word

let use = null; // what the map is open for
let selected = null; // the name whose details are shown

const rowNamed = (name) => use.rows().find((row) => row.name === name);
const tiles = () => [...byId("strategy-map").querySelectorAll("[role=option]")];
const tileOf = (name) => byId("strategy-map").querySelector(`[data-strategy="${CSS.escape(name)}"]`);

// Why the row cannot be applied, or null.
const obstacle = (row) => (row.available ? (use.obstacle?.(row) ?? null) : whyAway(row));

function makeTile(row) {
  const { sign, short } = GUARANTEES[row.guarantee];
  const isSet = row.name === use.applied();
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
    ...inGroups(use.rows()).map(({ group, title, rows }) =>
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
  const row = rowNamed(name);
  for (const tile of tiles()) {
    tile.setAttribute("aria-selected", String(tile.dataset.strategy === name));
    tile.tabIndex = tile.dataset.strategy === name ? 0 : -1;
  }
  byId("strategy-detail").replaceChildren(make("h3", {}, row.name), ...detailsOf(row, use.links));
  const why = obstacle(row);
  setText(byId("strategy-problem"), why && row.available ? why : ""); // the details say why a server is missing
  const isSet = name === use.applied();
  byId("strategy-apply").disabled = why !== null || isSet;
  setText(byId("strategy-apply"), isSet ? `${name} is set` : `${use.verb} ${name}`);
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

async function apply() {
  byId("strategy-apply").disabled = true;
  try {
    await use.apply(selected);
    byId("strategy-dialog").close();
  } catch (problem) {
    setText(byId("strategy-problem"), `The strategy was not changed. ${problem.message}`);
    byId("strategy-apply").disabled = false;
  }
}

function makeDialog() {
  const button = (id, attributes, text) => make("button", { id, ...attributes }, text);
  const map = make("div", { class: "map", id: "strategy-map", role: "listbox", "aria-label": "Strategies", onkeydown: onKey });
  map.addEventListener("click", (event) => {
    const tile = event.target.closest("[role=option]");
    if (!tile) return;
    select(tile.dataset.strategy);
    focusOn(tile);
  });
  document.body.append(
    make("dialog", { id: "strategy-dialog", class: "map-dialog", "aria-labelledby": "map-title" },
      make("h2", { id: "map-title" }),
      make("div", { class: "map-body" }, map,
        make("div", { class: "map-detail", id: "strategy-detail", tabindex: "0", role: "region", "aria-label": "The selected strategy", "aria-live": "polite" })),
      make("p", { class: "notice", id: "strategy-problem", role: "alert" }),
      make("form", { method: "dialog" },
        make("div", { class: "group" },
          button("strategy-apply", { type: "button", class: "primary", onclick: apply }, "Apply"),
          button("strategy-close", {}, "Close"),
          make("span", { class: "quiet", id: "map-note" })))),
  );
}

// Opens the map. OPTIONS:
// - title, note: texts, the note about what Apply does
// - rows(): the strategies, rows of GET /strategies
// - applied(): the name of the one that is applied, or ""; first: the one that is selected if none is
// - obstacle(row): why the row, which is available, cannot be applied, or null; may be left out
// - verb: the word on the button before the name
// - apply(name): applies it; throws if it was not applied
// - refresh(): asks which strategies are available now, for rows()
// - links: with links to the step-through
export async function openMap(options) {
  use = options;
  if (!byId("strategy-dialog")) makeDialog();
  selected = use.applied() || use.first;
  typed = { text: "", at: 0 }; // letters typed before it was closed are no part of a word
  setText(byId("map-title"), use.title);
  setText(byId("map-note"), use.note);
  draw();
  byId("strategy-dialog").showModal();
  focusOn(tileOf(selected));
  const away = () => use.rows().filter(({ available }) => !available).map(({ name }) => name).join(" ");
  const before = away();
  try {
    await use.refresh();
    if (use !== options || !byId("strategy-dialog").open || away() === before) return;
    const focused = document.activeElement?.dataset?.strategy;
    draw();
    if (focused) focusOn(tileOf(focused));
  } catch (problem) {
    setText(byId("strategy-problem"), problem.message);
  }
}
