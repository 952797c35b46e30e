// The source of states for a step-through of the static site: recorded schedules, which are scripts in the site's folder. It has the
// interface of service/page/steps/live_source.js.

const UNRECORDED = "This step was not recorded; run it with oversell itself.";
const FOLDER = new URL("recorded/", document.currentScript.src).href;

class NotRecorded extends Error {
  constructor() {
    super(UNRECORDED);
    this.name = "not-recorded";
    this.status = 404;
    this.body = {};
  }
}

const scripts = new Map(); // name → a promise of what the script has recorded; "" names the strategies

function recorded(name) {
  if (!scripts.has(name)) {
    const script = document.createElement("script");
    script.src = `${FOLDER}${name || "strategies"}.js`;
    scripts.set(name, new Promise((resolve, reject) => {
      script.addEventListener("load", () => resolve(indexed(globalThis.oversellRecorded[name])));
      script.addEventListener("error", () => reject(new NotRecorded()));
    }));
    document.head.append(script);
  }
  return scripts.get(name);
}

// With the place of each state by its schedule.
function indexed(recording) {
  const places = new Map(Object.entries(recording.aliases ?? {}));
  recording.states?.forEach(({ state }, place) => places.set(state.schedule, place));
  return { ...recording, places };
}

// The state at PLACE, put together from what differs from the state before it.
function stateAt(recording, place) {
  const { parent, state } = recording.states[place];
  const whole = { ...(parent === null ? {} : stateAt(recording, parent)) };
  for (const [key, value] of Object.entries(state)) {
    if (key.endsWith("+")) whole[key.slice(0, -1)] = [...whole[key.slice(0, -1)], ...value];
    else whole[key] = value;
  }
  return whole;
}

// Offers only the moves that were recorded.
function offered(recording, place) {
  const state = stateAt(recording, place);
  const { moves } = recording.states[place];
  const orders = state.orders.map((order) => {
    const has = (what) => order.can[what] && Object.hasOwn(moves, what === "step" ? order.name : `${order.name}!${what}`);
    const can = Object.fromEntries(Object.keys(order.can).map((what) => [what, has(what)]));
    const missing = order.can.step && !can.step;
    return { ...order, can, reason: missing ? `cannot go on here. ${UNRECORDED.slice(0, -1)}` : order.reason };
  });
  return { ...state, orders };
}

// Where MOVE leads from PLACE; "A>end" goes on while order A can.
function after(recording, place, move) {
  const { moves } = recording.states[place];
  if (!move.endsWith(">end")) {
    if (!Object.hasOwn(moves, move)) throw new NotRecorded();
    return moves[move];
  }
  const name = move.slice(0, -">end".length);
  if (!Object.hasOwn(moves, name)) throw new NotRecorded();
  let at = place;
  while (Object.hasOwn(recording.states[at].moves, name)) at = recording.states[at].moves[name];
  return at;
}

export function recordedSource() {
  return {
    strategies: async () => (await recorded("")).strategies,
    async steps({ schedule, move }) {
      const text = schedule.split(" ").filter(Boolean).join(" ");
      const recording = await recorded(text.split(" ")[0]);
      const place = recording.places.get(text);
      if (place === undefined) throw new NotRecorded();
      return offered(recording, move === undefined ? place : after(recording, place, move));
    },
    async search({ schedule, faults }) {
      const [strategy, ...settings] = schedule.split(" ").filter(Boolean);
      const found = (await recorded(strategy)).searches[faults];
      if (!found || settings.join(" ") !== "s=1 q=1,1") throw new NotRecorded();
      return found;
    },
  };
}

// The site puts this module in the place of live_source.js.
export const liveSource = recordedSource;
