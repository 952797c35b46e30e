// The wheel and the mouse in the timeline.
import { canvas } from "./bars.js";

// A wheel zooms with Ctrl, and alone once the timeline has the focus: before that it scrolls the page.
export function setUpWheel(lanes, zoomBy) {
  let factor = 1;
  let at = 0;
  lanes.addEventListener("wheel", (event) => {
    if (!canvas || event.deltaY === 0 || event.shiftKey || !(event.ctrlKey || lanes.contains(document.activeElement))) return;
    event.preventDefault();
    if (factor === 1) requestAnimationFrame(() => {
      zoomBy(factor, at);
      factor = 1;
    });
    factor *= Math.exp(-Math.max(-100, Math.min(event.deltaY * (event.deltaMode ? 33 : 1), 100)) * 0.003);
    at = event.clientX - canvas.scroll.getBoundingClientRect().left;
  }, { passive: false });
}

const DRAG_FROM = 5; // pixels; less is a click

// A mouse drags the picture sideways. A finger does so anyway. Returns whether the click that comes now ends a drag.
export function setUpDrag(lanes) {
  let from = null; // {x, left}, while a button is down
  let dragged = false;
  lanes.addEventListener("pointerdown", (event) => {
    dragged = false;
    if (event.button === 0 && event.pointerType === "mouse" && canvas?.scroll.contains(event.target))
      from = { x: event.clientX, left: canvas.scroll.scrollLeft };
  });
  lanes.addEventListener("pointermove", (event) => {
    if (!from || !canvas) return;
    if (!dragged && Math.abs(event.clientX - from.x) < DRAG_FROM) return;
    if (!dragged) canvas.scroll.setPointerCapture(event.pointerId);
    dragged = true;
    canvas.scroll.classList.add("is-dragged");
    canvas.scroll.scrollLeft = from.left - (event.clientX - from.x);
  });
  const end = () => {
    from = null;
    canvas?.scroll.classList.remove("is-dragged");
  };
  lanes.addEventListener("pointerup", end);
  lanes.addEventListener("pointercancel", end);
  return () => dragged;
}
