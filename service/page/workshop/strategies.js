// The strategy that is set, and its settings.
import { call } from "../shared/api.js";
import { alertUser, byId, setText, tell } from "../shared/dom.js";
import { openMap } from "../shared/strategy_map.js";
import { detailsOf } from "../shared/strategy_words.js";

const table = new Map();
let current = null;

export const strategyNamed = (name) => table.get(name);
export const currentStrategy = () => current;
export const allStrategies = () => [...table.values()];
export const kindOf = (strategy) => strategy?.stock_kind ?? "counter";

function show(row) {
  setText(byId("strategy-name"), row.name);
  byId("strategy-row").replaceChildren(...detailsOf(row));
}

// Servers start and stop, so the page asks which strategies can be used whenever the user is about to choose one.
export async function refreshStrategies() {
  for (const row of (await call("GET", "/strategies")).strategies) table.set(row.name, row);
  if (current && table.get(current.name).available !== current.available) {
    current = table.get(current.name);
    show(current);
  }
}

// What the service says is set: shown, unless the user is changing it just now.
export function showSettings(settings) {
  if (settings.name !== current?.name && table.has(settings.name)) {
    current = table.get(settings.name);
    show(current);
  }
  for (const [id, member] of [["think", "think_ms"], ["wait", "lock_wait_ms"], ["ttl", "lock_ttl_ms"]])
    if (document.activeElement !== byId(id)) byId(id).value = settings[member];
}

// Changes the settings of the shop's product, or the common ones of all products without their own; throws as call does.
export async function changeSettings(shop, change) {
  const settings = await call("PUT", shop.own ? `/strategy?product_id=${shop.product}` : "/strategy", change);
  showSettings(settings);
  return settings;
}

// Lets the user switch by the map. ON_SWITCH is called when the service has switched. Returns what opens the map.
export function setUpMap(shop, onSwitch) {
  const open = () =>
    openMap({
      title: "Strategies",
      note: "A new strategy starts a new sale.",
      rows: allStrategies,
      applied: () => current.name,
      obstacle: (row) => (shop.learner && row.locks_all ? `${row.name} locks the products of all learners, so only the teacher can apply it. Run it step by step instead.` : null),
      verb: "Apply",
      async apply(name) {
        const settings = await changeSettings(shop, { name });
        tell(`Strategy: ${settings.name}`);
        await onSwitch();
      },
      refresh: refreshStrategies,
      links: true,
    });
  byId("strategy-open").addEventListener("click", open);
  byId("strategy-open").disabled = false;
  return open;
}

export async function setUpStrategies(shop) {
  for (const row of (await call("GET", "/strategies")).strategies) table.set(row.name, row);
  showSettings(await call("GET", `/strategy?product_id=${shop.product}`));
  for (const [id, member] of [["think", "think_ms"], ["wait", "lock_wait_ms"], ["ttl", "lock_ttl_ms"]])
    byId(id).addEventListener("change", async (event) => {
      if (!event.target.reportValidity() || event.target.value === "") return;
      try {
        await changeSettings(shop, { name: current.name, [member]: event.target.valueAsNumber });
      } catch (problem) {
        alertUser(`The setting was not changed. ${problem.message}`);
      }
    });
}
