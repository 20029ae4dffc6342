// Calls of the server. A key is asked for when the server wants one, and kept in this tab alone.

import { byId } from "./dom.js";

const KEY = "wolfstream-key";
const MIN_PAUSE_MS = 500;
const MAX_PAUSE_MS = 5000;
const SHOWN_ERRORS = 3;

/** A refusal of the server (RFC 9457). */
export class Problem extends Error {
  /**
   * @param {number} status
   * @param {{title?: string, detail?: string, retry_after_seconds?: number,
   *   errors?: {line?: number, detail?: string}[]}} body
   */
  constructor(status, body) {
    const errors = body.errors || [];
    const said = body.detail || body.title || `the server answered ${status}`;
    const details = errors.slice(0, SHOWN_ERRORS).map((error) => error.detail);
    super([said, ...details].join("; "));
    this.status = status;
    this.errors = errors;
    /** After how many seconds the same call may succeed; undefined where it never will. */
    this.retryAfter = body.retry_after_seconds;
  }
}

/** @type {Promise<boolean> | undefined} */
let asking;
/** Whether the dialog was closed without a key: it is not opened again until the page is. */
let declined = false;

/** Ask for a key, once for all calls that wait for one; whether one was given. */
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
 * A request with the key, repeated with another one where the server knows none such.
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
 * What a call answers. Raises Problem, and TypeError where the server does not answer.
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
 * The path of a model's call.
 * @param {string} name
 * @param {string} rest
 */
export function modelPath(name, rest = "") {
  return `v1/models/${encodeURIComponent(name)}${rest}`;
}

/** @typedef {{state: (data: any) => void, lost: () => void, gone: (error: Error) => void}} Listener */

/**
 * Listen to a model's events until the signal; lost connections are opened again.
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
 * The fields of each event in a body of Server-Sent Events.
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
