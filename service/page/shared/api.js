// Calls of the service's API. What changes it may need the admin token, which the user is asked for once.
import { alertUser, asSentence, byId, setText } from "./dom.js";

const TOKEN_KEY = "oversell.token"; // the admin token, kept for this tab
const SANDBOX_KEY = "oversell.sandbox"; // {product, token} of this browser's own product
const ENDED_KEY = "oversell.ended"; // why this browser lost its product: "evicted" or "forgotten"
const PATIENCE_MS = 90000; // longer than an order may wait for its lock

export const hasService = true; // the static site has none, see tools/site/no_service.js

export class Problem extends Error {
  constructor(status, body) {
    super(asSentence(body?.detail ?? body?.title ?? `the service answered ${status}`));
    this.status = status;
    this.name = body?.type?.replace("/problems/", "") ?? "no-problem-body";
    this.body = body ?? {};
  }
}

// No answer at all: the service is down, or the network is.
export class Unreachable extends Error {
  constructor(cause) {
    super(
      cause.name === "TimeoutError"
        ? `The service has not answered within ${PATIENCE_MS / 1000} s. Check that it still runs, then try again.`
        : "The service does not answer. Check that it runs and that this computer reaches it, then try again.",
    );
  }
}

export const adminToken = () => sessionStorage.getItem(TOKEN_KEY);
export const setAdminToken = (token) => sessionStorage.setItem(TOKEN_KEY, token);
export const dropAdminToken = () => sessionStorage.removeItem(TOKEN_KEY);

export function sandbox() {
  try {
    return JSON.parse(localStorage.getItem(SANDBOX_KEY));
  } catch {
    return null;
  }
}

export function setSandbox(value) {
  if (value) localStorage.setItem(SANDBOX_KEY, JSON.stringify(value));
  else localStorage.removeItem(SANDBOX_KEY);
}

// Returns why this browser lost its product, and forgets the reason; null: it did not lose its product.
export function takeEnded() {
  const ended = sessionStorage.getItem(ENDED_KEY);
  sessionStorage.removeItem(ENDED_KEY);
  return ended;
}

let leaving = null;

// If PRODUCT no longer belongs to this browser, opens the page that says so and lets the learner join again. Returns whether it does.
export function leaveSandbox(product) {
  leaving ??= send("GET", "/classroom").then((state) => {
    if (state.owns === product) return false;
    // Another tab of this browser may have joined again already.
    if (state.owns === null) {
      sessionStorage.setItem(ENDED_KEY, state.evicted ? "evicted" : "forgotten");
      setSandbox(null);
    }
    if (state.classroom && location.pathname !== "/") location.assign("/");
    else location.reload();
    return true;
  });
  leaving.then((leaves) => leaves || (leaving = null), () => (leaving = null));
  return leaving;
}

let asking = null; // one dialog, however many calls wait for its end

// WHY: what was wrong with the token before, or null.
function askForToken(why = null) {
  asking ??= new Promise((resolve) => {
    const dialog = byId("token-dialog");
    const input = byId("token");
    input.value = "";
    dialog.returnValue = "";
    setText(byId("token-why"), why ?? "");
    byId("token-why").hidden = why === null;
    dialog.addEventListener(
      "close",
      () => {
        asking = null;
        if (dialog.returnValue === "ok" && input.value) setAdminToken(input.value);
        resolve(dialog.returnValue === "ok" && input.value !== "");
      },
      { once: true },
    );
    dialog.showModal();
    input.focus();
  });
  return asking;
}

async function send(method, path, body, bearer) {
  const headers = {};
  const own = sandbox()?.token;
  const token = bearer ?? adminToken() ?? own;
  if (own && path === "/classroom") headers["X-Sandbox"] = own;
  if (token) headers.Authorization = `Bearer ${token}`;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (path === "/orders") headers.Prefer = "sold-out=200"; // a sale that ends is no error for the browser's console
  let response;
  try {
    response = await fetch(path, {
      method,
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
      cache: "no-store",
      signal: AbortSignal.timeout(PATIENCE_MS),
    });
  } catch (cause) {
    throw new Unreachable(cause);
  }
  let json = null;
  try {
    json = await response.json();
  } catch (cause) {
    if (response.ok) throw new Unreachable(cause); // the connection broke in the answer, or the page is being left
  }
  if (!response.ok) throw new Problem(response.status, json);
  if (response.headers.has("Preference-Applied")) throw new Problem(json?.status ?? response.status, json);
  if (method !== "GET") alertUser(null); // an earlier error does not concern this call
  return json;
}

export async function isTeacherToken(token) {
  return (await send("GET", "/classroom", undefined, token)).teacher;
}

const WRONG_TOKEN = "The token is wrong. Take it from the line \"teacher's token\" that the service printed at its start, or from ADMIN_TOKEN, and try again.";

// Asks for the admin token until the user enters the right one or gives up. Returns whether this page has it now. A caller that
// knows that it needs the token asks here first, because the browser writes each refused call to its console.
export async function getToken() {
  while (adminToken() === null || !(await isTeacherToken(adminToken()))) {
    const why = adminToken() === null ? null : WRONG_TOKEN;
    dropAdminToken();
    if (!(await askForToken(why))) return false;
  }
  alertUser(null);
  return true;
}

// The answer's JSON; throws a Problem, or Unreachable. BEARER: in place of our token.
export async function call(method, path, body, bearer) {
  try {
    return await send(method, path, body, bearer);
  } catch (problem) {
    if (problem.name !== "unauthorized" || bearer !== undefined) throw problem;
    const own = sandbox();
    if (own && !adminToken() && (await leaveSandbox(own.product))) throw problem;
    const given = adminToken() !== null;
    dropAdminToken();
    if (!(await askForToken(given ? WRONG_TOKEN : null))) throw new Error("This action needs the token. Try again and enter the token.");
    try {
      return await send(method, path, body);
    } catch (second) {
      if (second.name !== "unauthorized") throw second;
      dropAdminToken();
      throw new Error(WRONG_TOKEN);
    }
  }
}
