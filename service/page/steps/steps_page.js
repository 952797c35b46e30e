// Where /steps is. The static site has another module in this one's place.
export const STEPS_PAGE = "/steps";
