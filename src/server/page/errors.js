// Errors in words.
import { ApiError, ConnectionError } from "./api.js";
import { button, element } from "./dom.js";

const TITLES_OF_CODES = {
  context_length_exceeded: "The prompt is too long for the model",
  queue_full: "The server is busy: its queue is full",
  rate_limited: "Too many requests from this address",
  loading: "The model is still loading",
  draining: "The server is shutting down",
  engine_unhealthy: "The engine has a problem",
  queue_timeout: "The request waited too long in the queue",
  numerical_error: "Numerical error in the model",
};
const TITLES_OF_STATUSES = {
  400: "The server refused this request",
  401: "The server asks for an API key",
  403: "This key has no permission for that",
  404: "No such model or address",
  413: "The request is too large",
  429: "The server is busy",
  501: "The server doesn't support this",
  503: "The server can't answer now",
};

/** What an error is, in a short sentence without a full stop. */
export function titleOf(error) {
  if (error instanceof ConnectionError) return "The connection is lost";
  if (!(error instanceof ApiError)) return "The page has a problem";
  return TITLES_OF_CODES[error.code] ?? TITLES_OF_STATUSES[error.status] ?? "The server has a problem";
}

/** A box that says an error, with a button that tries again, or a new chat where this one is too long. */
export function errorBox(error, retry, startChat = null) {
  const facts = [];
  if (error.param) facts.push(`field: ${error.param}`);
  if (error.code) facts.push(`code: ${error.code}`);
  if (error.status) facts.push(`status: ${error.status}`);
  if (error.requestId) facts.push(`request: ${error.requestId}`);
  const isFull = error.code === "context_length_exceeded" && startChat;
  const again = isFull ? button("New chat", startChat) : button("Try again", retry);
  const box = element("div", { className: "error", role: "alert" },
    element("p", { className: "title" }, titleOf(error)),
    element("p", {}, error.message));
  if (error.retryAfter != null) box.append(countdown(error.retryAfter));
  if (facts.length) box.append(element("p", { className: "facts" }, facts.join(" · ")));
  box.append(again);
  return box;
}

// How long the server asks to wait, counted down while the box is shown.
function countdown(seconds) {
  const until = performance.now() + 1000 * seconds;
  const line = element("p", { "aria-live": "off" });
  const say = () => {
    const left = Math.ceil((until - performance.now()) / 1000);
    line.textContent = left > 0 ? `The server asks to try again in ${left} s.` : "You can try again now.";
    if (left > 0 && (line.isConnected || left === Math.ceil(seconds))) setTimeout(say, 250);
  };
  say();
  return line;
}
