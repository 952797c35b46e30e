// The goal of an exercise: how a schedule has to end, in words, and whether it does. Pure functions.
import { outcomeWords } from "../steps/steps_words.js";

const FAULTS = { expire: "ended lease", restart: "restart of a server", cut: "server out of reach", crash: "crash" };

const faultsOf = (schedule) => schedule.match(/[A-F]![a-z]+/g) ?? [];

const TESTS = {
  sold: { words: (value) => `${value} sold`, met: (state, value) => state.database.sold === Number(value) },
  left: { words: (value) => `the stock shows ${value}`, met: (state, value) => state.database.left === Number(value) },
  tries: {
    words: (value) => `an order begins ${value} times`,
    met: (state, value) => Math.max(...state.orders.map((order) => order.tries)) === Number(value),
  },
  faults: {
    words: (value) => (value === "0" ? "no fault" : `${value} faults`),
    met: (state, value) => faultsOf(state.schedule).length === Number(value),
  },
  without: {
    words: (value) => value.split(",").map((fault) => `no ${FAULTS[fault]}`).join(", "),
    met: (state, value) => faultsOf(state.schedule).every((fault) => !value.split(",").includes(fault.slice(2))),
  },
}; // prettier-ignore

const orderTest = (name) => ({
  words: (value) => (value === "waiting" ? `${name} waits forever` : `${name}: ${outcomeWords(value)}`),
  met(state, value) {
    const { outcome, state: ended } = state.orders.find((order) => order.name === name);
    return (outcome ?? ended) === value;
  },
});

const testOf = (name) => TESTS[name] ?? orderTest(name);

// ENDS: {sold: "3", left: "2"}, as the lesson's comment has it (make/lesson-pages).
export const goalWords = (ends) => Object.entries(ends).map(([name, value]) => testOf(name).words(value)).join(", "); // prettier-ignore

// What STATE does not meet of it. No order can go on in STATE; an order may wait forever.
export const missed = (ends, state) => Object.entries(ends).filter(([name, value]) => !testOf(name).met(state, value)).map(([name, value]) => testOf(name).words(value)); // prettier-ignore
