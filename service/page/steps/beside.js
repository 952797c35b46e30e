// Runs the same schedule under a second strategy: when an order takes a step in one step-through, the same order follows in the other.

// Which step of an order with STEPS corresponds to STEP of another strategy: the same, or what does the same work. Undefined: none does,
// as an order without a lock takes none.
export function counterpart(step, steps) {
  if (steps.includes(step)) return step;
  const others = { read: ["take"], write: ["take"], take: ["write"], "commit-stock": ["commit"], "commit-order": ["commit"], commit: ["commit-order"], insert: ["commit"] };
  return (others[step] ?? []).find((other) => steps.includes(other)) ?? (["read", "write", "take"].includes(step) ? "commit" : undefined);
}

// How many of its steps an order with OWN steps has to have done when the other one has done those of DONE, out of OTHER: up to the last
// one whose counterpart is done.
function goalOf(own, other, done) {
  return own.findLastIndex((step) => done.has(counterpart(step, other))) + 1;
}

const doneBy = (order) => order.did.length;
const isOver = ({ state }) => state === "ended" || state === "crashed";

// Which step the event number INDEX of STATE is about: an order that waits tries its first step that is not done in its present try.
function stepOf({ told, steps }, index) {
  const { actor, step } = told[index];
  if (step !== "waits" && step !== "wait") return step;
  const own = told.slice(0, index).filter((event) => event.actor === actor);
  const done = own.slice(own.findLastIndex((event) => event.step === "retry") + 1).map((event) => event.step);
  return steps.find((one) => !done.includes(one)) ?? step;
}

// What happened in STATE, one element for each order and step, in sequence: {actor, step} or {actor, fault}.
function eventsOf(state) {
  const faults = state.schedule.split(" ").filter((word) => word.includes("!")).map((word) => ({ actor: word[0], fault: word.slice(2) }));
  const isFault = ({ text }) => ["its lock ends", "its place ends", "dies"].includes(text) || text.startsWith("a server restarts");
  return state.told.map((event, index) => (isFault(event) ? (faults.shift() ?? { actor: event.actor }) : { actor: event.actor, step: stepOf(state, index) }));
}

// Follows the states of another step-through with orders of STRATEGY, by calls of SOURCE. Returns follow(state): resolves to the state of
// the second strategy that corresponds to STATE, or throws what SOURCE throws. Calls are worked off one by one; of those that come
// meanwhile only the last counts, the others resolve to null.
export function follower(source, strategy) {
  let mine = null; // the second strategy's state
  let followed = []; // the events that it has followed, as texts
  let done = {}; // by the order's name: the steps that the first strategy's order has done
  let goals = {}; // by the order's name: how many steps it has to have done
  let working = Promise.resolve();
  let newest = null;

  const move = async (name, what = "") => {
    mine = await source.steps({ schedule: mine.schedule, move: what ? `${name}!${what}` : name, every_step: true });
  };
  const order = (name) => mine.orders.find((one) => one.name === name);

  // An order that had to wait goes on when it can, also after its own event.
  async function advance() {
    for (const name of Object.keys(goals))
      while (!isOver(order(name)) && order(name).can.step && doneBy(order(name)) < goals[name]) await move(name);
  }

  async function followEvent(state, { actor, step, fault }) {
    if (fault) {
      if (order(actor).can[fault]) await move(actor, fault);
      return;
    }
    done[actor] = (done[actor] ?? new Set()).add(step);
    goals[actor] = step === "end" ? Infinity : Math.max(goals[actor] ?? 0, goalOf(mine.steps, state.steps, done[actor]));
    await advance();
  }

  async function catchUp(state) {
    const events = eventsOf(state);
    const texts = events.map((event) => JSON.stringify(event));
    const isOn = mine && followed.every((text, i) => texts[i] === text);
    if (!isOn) {
      const settings = state.schedule.split(" ").filter((word) => /^[sq]=/.test(word));
      mine = await source.steps({ schedule: [strategy, ...settings].join(" "), every_step: true });
      followed = [];
      done = {};
      goals = {};
    }
    for (let i = followed.length; i < events.length; i++) await followEvent(state, events[i]);
    followed = texts;
    return mine;
  }

  return (state) => {
    newest = state;
    const turn = working.then(() => (newest === state ? catchUp(state) : null));
    working = turn.catch(() => (mine = null));
    return turn;
  };
}
