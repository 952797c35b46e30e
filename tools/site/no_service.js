// Replaces service/page/shared/api.js in the static site, which has no service: every call fails.

export const hasService = false;

export class Problem extends Error {
  name = "no-service";
  status = 404;
  body = {};
}
export class Unreachable extends Problem {}

export async function call() {
  throw new Problem("These pages have no service. Run oversell to try this.");
}
export const adminToken = () => null;
export const setAdminToken = () => {};
export const dropAdminToken = () => {};
export const sandbox = () => null;
export const setSandbox = () => {};
export const takeEnded = () => null;
export const leaveSandbox = async () => false;
export const isTeacherToken = async () => false;
