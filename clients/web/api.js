/* api.js - calling the daemon. Addresses are relative, so that a proxy may serve it below a path.
 */
import {has} from "./text.js";

/* What went wrong, for problemBox(): key and values of texts/, detail in the server's words. */
export class Problem extends Error {
  constructor(key, values = {}, more = {}) {
    super(more.detail ?? key);
    Object.assign(this, {key, values}, more);
  }
}

async function refused(response) {
  let body = {};
  try {
    body = await response.json();
  } catch { /* a proxy's page: the status says enough */
  }
  const key = `problem.${String(body.type ?? "").split("/").pop()}`;
  return new Problem(has(key) ? key : "problem.status", {status: String(response.status)}, {
    detail: body.detail,
    limit: body.limit,
    setting: body.setting,
    status: response.status,
    retry_s: Number(response.headers.get("Retry-After")) || 0,
  });
}

/* The response, if the daemon did not refuse. */
async function ask(path, options) {
  let response;
  try {
    response = await fetch(path, {cache: "no-store", ...options});
  } catch (error) {
    if (error.name === "AbortError")
      throw error;
    throw new Problem("problem.unreachable");
  }
  if (!response.ok)
    throw await refused(response);
  return response;
}

const JSON_ONLY = {
  Accept: "application/json"
};

export async function get(path, signal) {
  return (await ask(path, {signal, headers: JSON_ONLY})).json();
}

/* body: an object, text that is JSON already, or bytes. */
export async function post(path, body, signal) {
  const raw = body instanceof Blob;
  const text = typeof body === "string" || raw ? body : JSON.stringify(body);
  const type = raw ? "application/octet-stream" : "application/json";
  return (await ask(path, {
    method: "POST",
    body: text,
    signal,
    headers: {...JSON_ONLY, "Content-Type": type},
  })).json();
}

/* post(), asked again while the lab is busy with somebody else's experiment. */
export async function postPatiently(path, body, signal, tries = 10) {
  for (;; tries--) {
    try {
      return await post(path, body, signal);
    } catch (problem) {
      if (problem.status !== 503 || problem.retry_s === 0 || tries === 1)
        throw problem;
      await pause(problem.retry_s * 1000, signal);
    }
  }
}

export function pause(ms, signal) {
  return new Promise((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer);
      reject(new DOMException("stopped", "AbortError"));
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, ms);
    if (signal?.aborted)
      stop();
    signal?.addEventListener("abort", stop, {once: true});
  });
}
