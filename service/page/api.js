// Calls of the service's API. What changes it may need the admin token, which the user is asked for once.
import { byId } from "./dom.js";

const TOKEN_KEY = "oversell.token";
const PATIENCE_MS = 90000; // longer than an order may wait for its lock

export class Problem extends Error {
  constructor(status, body) {
    super(body?.detail ?? body?.title ?? `the service answered ${status}`);
    this.status = status;
    this.name = body?.type?.replace("/problems/", "") ?? "no-problem-body";
    this.body = body ?? {};
  }
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
        if (dialog.returnValue === "ok" && input.value) sessionStorage.setItem(TOKEN_KEY, input.value);
        resolve(dialog.returnValue === "ok" && input.value !== "");
      },
      { once: true },
    );
    dialog.showModal();
    input.focus();
  });
  return asking;
}

async function send(method, path, body) {
  const headers = {};
  const token = sessionStorage.getItem(TOKEN_KEY);
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

// The answer's JSON; throws a Problem, or a TypeError where the service cannot be reached.
export async function call(method, path, body) {
  try {
    return await send(method, path, body);
  } catch (problem) {
    if (problem.name !== "unauthorized" || !(await askForToken())) throw problem;
    return await send(method, path, body);
  }
}
