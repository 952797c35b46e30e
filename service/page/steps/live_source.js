// The source of states for a step-through: the service, which runs each schedule on real servers.
import { call } from "../shared/api.js";

const AGAIN_MS = 1000; // while all explorers search
const TRIES_MOST = 90; // about as many seconds; longer than ten searches in a row

// {steps, search, strategies}: each resolves to an answer of the API, or throws a Problem (shared/api.js).
export function liveSource() {
  return {
    steps: (question) => call("POST", "/steps", question),
    strategies: async () => (await call("GET", "/strategies")).strategies,
    // BUSY() is called while the search has to wait for an explorer.
    async search(question, busy) {
      for (let tries = 1; ; tries++) {
        try {
          return await call("POST", "/steps/search", question);
        } catch (problem) {
          if (problem.name !== "overloaded" || tries === TRIES_MOST) throw problem;
          busy?.();
          await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
        }
      }
    },
  };
}
