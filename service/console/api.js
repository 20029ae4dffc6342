// Calls to the server. The user is asked for an API key when the server requires one; only this tab keeps it.

import { byId } from "./dom.js";

const KEY = "wolfstream-key";
const MIN_PAUSE_MS = 500;
const MAX_PAUSE_MS = 5000;
const SHOWN_ERRORS = 3;

/** A problem that the server answered (RFC 9457). */
export class Problem extends Error {
  /**
   * @param {number} status
   * @param {{title?: string, detail?: string, retry_after_seconds?: number,
   *   errors?: {line?: number, detail?: string}[]}} body
   */
  constructor(status, body) {
    const errors = body.errors || [];
    const summary = body.detail || body.title || `the server answered ${status}`;
    const details = errors.slice(0, SHOWN_ERRORS).map((error) => error.detail);
    super([summary, ...details].join("; "));
    this.status = status;
    this.errors = errors;
    /** The seconds after which the same call may succeed; undefined if it never will. */
    this.retryAfter = body.retry_after_seconds;
  }
}

/** @type {Promise<boolean> | undefined} */
let asking;
/** Whether the user closed the dialog without a key; it stays closed until the page is reloaded. */
let declined = false;

/** Ask the user for a key, once for all calls that need one. Returns whether one was entered. */
function askForKey() {
  asking ??= new Promise((resolve) => {
    const dialog = byId("key-dialog", HTMLDialogElement);
    const input = byId("key", HTMLInputElement);
    input.value = "";
    dialog.addEventListener(
      "close",
      () => {
        const key = input.value.trim();
        sessionStorage.setItem(KEY, key);
        input.value = "";
        asking = undefined;
        declined = key === "";
        resolve(key !== "");
      },
      { once: true },
    );
    dialog.showModal();
  });
  return asking;
}

/**
 * Send a request with the key; if the server rejects the key, ask for another one and try again.
 * @param {string} path
 * @param {RequestInit} options
 * @returns {Promise<Response>}
 */
async function request(path, options) {
  for (;;) {
    const headers = new Headers(options.headers);
    const key = sessionStorage.getItem(KEY);
    if (key) headers.set("Authorization", `Bearer ${key}`);
    const response = await fetch(path, { ...options, headers, cache: "no-store" });
    if (response.status !== 401 || declined) return response;
    if (sessionStorage.getItem(KEY) === key && !(await askForKey())) return response;
  }
}

/**
 * Call the server and return its answer. Throws Problem, or TypeError if the server is unreachable.
 * @param {string} method
 * @param {string} path
 * @param {{body?: string, type?: string, headers?: Record<string, string>, signal?: AbortSignal}} more
 * @returns {Promise<any>}
 */
export async function call(method, path, more = {}) {
  /** @type {Record<string, string>} */
  const headers = { Accept: "application/json", ...more.headers };
  if (more.body !== undefined) headers["Content-Type"] = more.type || "application/json";
  const response = await request(path, { method, headers, body: more.body, signal: more.signal });
  const text = await response.text();
  let answer = {};
  try {
    answer = text ? JSON.parse(text) : {};
  } catch {
    throw new Problem(response.status, { title: "the answer cannot be read" });
  }
  if (!response.ok) throw new Problem(response.status, answer);
  return answer;
}

/**
 * Return the path of a call for a model.
 * @param {string} name
 * @param {string} rest
 */
export function modelPath(name, rest = "") {
  return `v1/models/${encodeURIComponent(name)}${rest}`;
}

/** @typedef {{state: (data: any) => void, lost: () => void, gone: (error: Error) => void}} Listener */

/**
 * Listen to a model's events until the signal aborts; reconnect whenever the connection is lost.
 * @param {string} name
 * @param {Listener} listener
 * @param {AbortSignal} signal
 */
export async function listen(name, listener, signal) {
  let last = "";
  let pause = MIN_PAUSE_MS;
  while (!signal.aborted) {
    try {
      /** @type {Record<string, string>} */
      const headers = { Accept: "text/event-stream" };
      if (last) headers["Last-Event-ID"] = last;
      const response = await request(modelPath(name, "/events"), { headers, signal });
      if (response.status === 503) throw new TypeError("the server is not ready");
      if (!response.ok || !response.body) {
        throw new Problem(response.status, await response.json());
      }
      for await (const event of eventsOf(response.body)) {
        pause = MIN_PAUSE_MS;
        if (event.id) last = event.id;
        if (event.event === "state") listener.state(JSON.parse(event.data));
        if (event.event === "end" && JSON.parse(event.data).reason === "deleted") {
          throw new Problem(404, { title: `the model ${name} was deleted` });
        }
      }
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof Problem) {
        listener.gone(error);
        return;
      }
    }
    if (signal.aborted) return;
    listener.lost();
    await new Promise((resolve) => setTimeout(resolve, pause));
    pause = Math.min(2 * pause, MAX_PAUSE_MS);
  }
}

/**
 * Yield the fields of each event in a stream of Server-Sent Events.
 * @param {ReadableStream<Uint8Array>} body
 */
async function* eventsOf(body) {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let text = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    text += decoder.decode(value, { stream: true });
    const events = text.split("\n\n");
    text = events.pop() ?? "";
    for (const event of events) {
      const fields = event.split("\n").map((line) => {
        const colon = line.indexOf(": ");
        return [line.slice(0, colon), line.slice(colon + 2)];
      });
      yield Object.fromEntries(fields);
    }
  }
}
