// Where the step-through of the static site is, in the place of service/page/steps/steps_page.js.
export const STEPS_PAGE = new URL("steps.html", document.currentScript.src).href;
