// Requests to the server: the API key, the errors, and streams of events.
import { keep, recall } from "./storage.js";

const BROKEN_OFF = "The connection was lost before the answer was complete.";

let key = recall("key", "sessionStorage") ?? "";
let askForKey = async () => false;

/** An answer of the server that is an error, with what it says. */
export class ApiError extends Error {
  constructor(status, fields, headers) {
    super(fields.message ?? `The server answered ${status} without an explanation.`);
    this.status = status;
    this.code = fields.code ?? null;
    this.param = fields.param ?? null;
    const ms = Number(headers?.get("retry-after-ms") ?? NaN);
    const seconds = Number(headers?.get("retry-after") ?? NaN);
    this.retryAfter = Number.isFinite(ms) ? ms / 1000 : Number.isFinite(seconds) ? seconds : null;
    this.requestId = headers?.get("x-request-id") ?? null;
  }
}

/** No answer came, or it broke off. */
export class ConnectionError extends Error {}

/** Sets what is called when the server wants a key; it resolves to whether there is a new one. */
export function whenKeyIsNeeded(callback) {
  askForKey = callback;
}

/** Whether the page holds a key. */
export const hasKey = () => key !== "";

/** Uses a key from now on, in this tab only; an empty one forgets it. */
export function setKey(value) {
  key = value;
  keep("key", value === "" ? null : value, "sessionStorage");
}

/** The server's answer to a request; asks for the API key as often as needed. */
export async function request(path, { body, signal, onSend } = {}) {
  for (;;) {
    const sent = key;
    onSend?.();
    const response = await send(path, body, signal);
    if (response.ok) return response;
    const error = new ApiError(response.status, await errorFields(response), response.headers);
    if (error.status !== 401) throw error;
    if (key === sent && !(await askForKey(sent !== ""))) throw error;
    signal?.throwIfAborted();
  }
}

/** The JSON that a path answers. */
export async function getJson(path, options) {
  const response = await request(path, options);
  return response.json().catch(rethrow(BROKEN_OFF));
}

/** The events of an answer, as parsed JSON, until the server says that it is done. */
export async function* events(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { value, done } = await reader.read().catch(rethrow(BROKEN_OFF));
      if (done) throw new ConnectionError(BROKEN_OFF);
      const lines = (rest + value).split("\n");
      rest = lines.pop();
      for (const line of lines) {
        if (!line.startsWith("data:")) continue;
        const data = line.slice(5).trim();
        if (data === "[DONE]") return;
        const event = JSON.parse(data);
        if (event.error) throw new ApiError(0, event.error, response.headers);
        yield event;
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

async function send(path, body, signal) {
  const headers = {};
  if (key !== "") headers.Authorization = `Bearer ${key}`;
  if (body) headers["Content-Type"] = "application/json";
  const method = body ? "POST" : "GET";
  return fetch(path, { method, headers, signal, body: body && JSON.stringify(body), cache: "no-store" }).catch(rethrow("The server doesn't answer."));
}

// Whatever goes wrong below HTTP is a lost connection, unless the page itself ended it.
const rethrow = (message) => (error) => {
  throw error.name === "AbortError" ? error : new ConnectionError(message);
};

async function errorFields(response) {
  try {
    return (await response.json()).error ?? {};
  } catch {
    return {};
  }
}
