// A schedule as text, such as "read-write s=1 q=1,1 A>read B>end": its settings and its moves. Pure functions.
import { STEPS_PAGE } from "./steps_page.js";

export const words = (schedule) => schedule.split(" ").filter(Boolean);

const isSetting = (word) => !/[>!]/.test(word);

// The text without the moves.
export const settingsOf = (schedule) => words(schedule).filter(isSetting).join(" ");

// {strategy, stock, quantities}: what the orders want, in the order A, B, C.
export function setting(schedule) {
  const [strategy, ...rest] = words(schedule);
  const find = (key, preset) => rest.find((word) => word.startsWith(key))?.slice(2) ?? preset;
  return { strategy, stock: Number(find("s=", "1")), quantities: find("q=", "1,1").split(",").map(Number) };
}

export const compose = ({ strategy, stock, quantities }) => `${strategy} s=${stock} q=${quantities.join(",")}`;

// The address that shows the state after SCHEDULE; a space is a plus sign there.
export const stepsAddress = (schedule) => `${STEPS_PAGE}#${schedule.replaceAll(" ", "+")}`;

// The address that shows SCHEDULE from its beginning, so that a reader can step through it.
export const walkAddress = (schedule) => `${stepsAddress(schedule)}${lastMover(schedule) ? "&from=start" : ""}`;

// Whose move is the last one; undefined if there is none.
export const lastMover = (schedule) => words(schedule).filter((word) => !isSetting(word)).at(-1)?.[0];
