// The address of the page for stepping. The static site replaces this module with tools/site/steps_page.js.
export const STEPS_PAGE = "/steps";
