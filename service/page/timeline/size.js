// The sizes of the timeline's picture, which grow and shrink with its text.
import { byId } from "../shared/dom.js";

// Sizes in pixels, where the page's text has 16; all grow with it.
const SIZES = {
  LANE: 26, // height of a lane, of which …
  BAR: 16, // … a bar has so much
  GAP: 34, // of a pause that is cut out
  AXIS: 22,
  NAME: 20, // above each further process
  LABEL: 17, // above the first lane, for the witness
  WANTED_BAR: 34, // a usual order should be so wide
  TEXT_FROM: 18, // a value read is written into what is as wide
};
export const LARGEST = 1.3; // of the page's text; so much few lanes grow where they have room
export const SMALLEST = 0.5; // of the page's text; below this the lanes scroll
export let px; // the sizes as they are now
export let unit = 1;

export function setUnit(size) {
  if (px && size === unit) return;
  unit = size;
  px = Object.fromEntries(Object.entries(SIZES).map(([name, size]) => [name, size * unit]));
  byId("lanes").style.fontSize = `${16 * unit}px`;
}

const LABELS_EM = 8.8; // as timeline.css has it
// The width that the lanes have without scrolling.
export const fitting = () => Math.max(byId("lanes").clientWidth - LABELS_EM * 16 * unit - 6, 200);
