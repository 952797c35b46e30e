// The address of the page for stepping in the static site. It replaces service/page/steps/steps_page.js.
export const STEPS_PAGE = new URL("steps.html", document.currentScript.src).href;
