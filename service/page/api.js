// Calls of the service's API. What changes it may need the admin token, which the user is asked for once.
import { byId } from "./dom.js";

const TOKEN_KEY = "oversell.token"; // the admin token, kept for this tab
const SANDBOX_KEY = "oversell.sandbox"; // {product, token} of this browser's own product
const PATIENCE_MS = 90000; // longer than an order may wait for its lock

export class Problem extends Error {
  constructor(status, body) {
    super(body?.detail ?? body?.title ?? `the service answered ${status}`);
    this.status = status;
    this.name = body?.type?.replace("/problems/", "") ?? "no-problem-body";
    this.body = body ?? {};
  }
}

export const adminToken = () => sessionStorage.getItem(TOKEN_KEY);
export const setAdminToken = (token) => sessionStorage.setItem(TOKEN_KEY, token);

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

let asking = null; // one dialog, however many calls wait for its end

function askForToken() {
  asking ??= new Promise((resolve) => {
    const dialog = byId("token-dialog");
    const input = byId("token");
    input.value = "";
    dialog.returnValue = "";
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
  const response = await fetch(path, {
    method,
    headers,
    body: body === undefined ? undefined : JSON.stringify(body),
    cache: "no-store",
    signal: AbortSignal.timeout(PATIENCE_MS),
  });
  const json = await response.json().catch(() => null);
  if (!response.ok) throw new Problem(response.status, json);
  return json;
}

export async function isTeacherToken(token) {
  return (await send("GET", "/classroom", undefined, token)).teacher;
}

// The answer's JSON; throws a Problem, or a TypeError where the service cannot be reached. BEARER: in place of our token.
export async function call(method, path, body, bearer) {
  try {
    return await send(method, path, body, bearer);
  } catch (problem) {
    if (problem.name !== "unauthorized" || bearer !== undefined) throw problem;
    if (sandbox() && !adminToken()) {
      setSandbox(null); // the service knows it no more: it was started again, or we were away for long
      location.reload();
      throw problem;
    }
    if (!(await askForToken())) throw problem;
    return await send(method, path, body);
  }
}
