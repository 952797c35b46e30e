// The runs of this tab, side by side, and their export.
import { byId, make, plural, short, tell, whole } from "../shared/dom.js";
import { guaranteeBadge } from "../shared/strategy_words.js";
import { strategyNamed } from "./strategies.js";

const KEY = "oversell.results";
const MOST = 300;

const VERDICTS = {
  ok: "✓ as promised",
  "oversold-as-expected": "✗ oversold, as expected",
  flawed: "correct in this run, flawed",
  "not-caught": "? not caught",
  "nothing-shown": "? nothing shown",
  broken: "✗ promise broken",
  mixed: "? mixed",
  unavailable: "not available",
};

// name of the column in exports, its title, the cell's value, how it is shown
const COLUMNS = [
  ["strategy", "Strategy", (r) => r.row.strategy],
  ["guarantee", "Guarantee", (r) => r.row.guarantee, (value) => guaranteeBadge(value, "short")],
  ["instances", "Processes", (r) => r.row.instances, whole],
  ["connections", "Connections", (r) => r.settings.connections, whole],
  ["think_ms", "Think ms", (r) => r.row.think_ms, whole],
  ["stock", "Stock", (r) => r.row.stock, whole],
  ["sold", "Sold", (r) => r.row.sold, whole],
  ["oversold", "Oversold", (r) => r.row.oversold, whole],
  ["drift", "Drift", (r) => r.row.drift, whole],
  ["orders_per_s", "Orders/s", (r) => r.row.orders_per_s, short],
  ["p99_ms", "p99 ms", (r) => r.row.latency_ms?.p99 ?? null, short],
  ["verdict", "Verdict", (r) => r.row.verdict, (value) => VERDICTS[value] ?? value],
  ["witness", "Witness", (r) => r.row.witness, (value) => value ?? ""],
];
const MINOR = new Set(["connections", "think_ms", "stock"]); // shown where there is room
const NUMBERS = new Set(["instances", "connections", "think_ms", "stock", "sold", "oversold", "drift", "orders_per_s", "p99_ms"]);

function load() {
  try {
    return JSON.parse(sessionStorage.getItem(KEY)) ?? [];
  } catch {
    return [];
  }
}

let results = load();

function save() {
  results = results.slice(-MOST);
  sessionStorage.setItem(KEY, JSON.stringify(results));
  show();
}

const columnClass = (name) => `${NUMBERS.has(name) ? "number" : ""}${MINOR.has(name) ? " is-minor" : ""}`;

function bar(value, most) {
  const share = most > 0 && value > 0 ? value / most : 0;
  const inner = make("span", { class: "spark" });
  inner.style.width = `${share * 100}%`;
  return inner;
}

function cell(result, [name, , value, format], fastest) {
  const raw = value(result);
  const shown = format ? format(raw) : raw;
  const bad = name === "oversold" && raw > 0;
  const element = make(
    name === "strategy" ? "th" : "td",
    { class: `${columnClass(name)}${bad ? " is-bad" : ""}`, scope: name === "strategy" ? "row" : null },
    shown,
  );
  if (name === "orders_per_s") element.append(bar(raw, fastest));
  return element;
}

function show() {
  const place = byId("results-table");
  if (results.length === 0) {
    place.replaceChildren(make("p", { class: "empty" }, "Each run adds a line here, so that strategies can be compared."));
    return;
  }
  const fastest = Math.max(...results.map((result) => result.row.orders_per_s ?? 0));
  const head = COLUMNS.map(([name, title]) => make("th", { scope: "col", class: columnClass(name) }, title));
  place.replaceChildren(
    make(
      "table",
      {},
      make("thead", {}, make("tr", {}, ...head)),
      make("tbody", {}, ...results.toReversed().map((result) => make("tr", {}, ...COLUMNS.map((column) => cell(result, column, fastest))))),
    ),
  );
}

export function addRun(run, row) {
  if (results.some((result) => result.run === run.id && result.at === run.started_at && result.row.strategy === row.strategy)) return;
  results.push({ run: run.id, at: run.started_at, settings: run.settings, machine: run.machine, row });
  save();
}

// ---- exports ----

const quoted = (value) => (/[",\n]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value);
const piped = (value) => String(value ?? "").replaceAll("|", "\\|");

export function asCsv(list) {
  const lines = list.map((result) => COLUMNS.map(([, , value]) => quoted(String(value(result) ?? ""))).join(","));
  return [COLUMNS.map(([name]) => name).join(","), ...lines, ""].join("\n");
}

export function asMarkdown(list) {
  const lines = list.map((result) => `| ${COLUMNS.map(([, , value]) => piped(value(result))).join(" | ")} |`);
  const rule = COLUMNS.map(([name]) => (NUMBERS.has(name) ? "---:" : "---")).join(" | ");
  return [`| ${COLUMNS.map(([, title]) => title).join(" | ")} |`, `| ${rule} |`, ...lines, ""].join("\n");
}

// As `loadtest compare --format json` has it, so that `loadtest report FILE` can print it in its other formats.
export function asJson(list) {
  const rows = list.map((result) => ({ ...result.row, at: result.at, connections: result.settings.connections, cells: strategyNamed(result.row.strategy) }));
  const last = list.at(-1);
  return `${JSON.stringify({ version: 1, kind: "compare", at: last?.at ?? null, machine: last?.machine ?? {}, settings: last?.settings ?? {}, rows }, null, 2)}\n`;
}

const EXPORTS = {
  csv: [asCsv, "text/csv", "csv"],
  json: [asJson, "application/json", "json"],
  markdown: [asMarkdown, "text/markdown", "md"],
};

function download(kind) {
  const [format, type, ending] = EXPORTS[kind];
  const address = URL.createObjectURL(new Blob([format(results)], { type }));
  make("a", { href: address, download: `oversell-runs.${ending}` }).click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
  tell(`Exported ${plural(results.length, "line", "lines")} as ${kind}.`);
}

export function setUpResults() {
  for (const button of document.querySelectorAll("[data-export]"))
    button.addEventListener("click", () => download(button.dataset.export));
  byId("results-clear").addEventListener("click", () => {
    results = [];
    save();
  });
  show();
}

// The last machine a run told of also belongs to lines that were there before it ended.
export function completeRun(run) {
  for (const result of results) if (result.run === run.id && result.at === run.started_at) Object.assign(result, { machine: run.machine, settings: run.settings });
  save();
}
