// The state of the engine, asked for again and again while the page can be seen.
import { ConnectionError, getJson } from "./api.js";

const BUSY_MS = 200, IDLE_MS = 1000, FAILED_MS = 5000, ANSWER_LIMIT_MS = 5000, LINGER_MS = 2000;
// Small models may be done in less than BUSY_MS with what was just sent.
const EAGER_MS = 40, EAGER_FOR_MS = 1000;
const FIRST_RETRY_MS = 500;

const listeners = new Set();
let modelName = () => "";
let timer = 0;
let asking = false;
let numFailures = 0;
let busyUntil = 0;
let eagerUntil = 0;

/** Calls `listener` with each new state, { live } or { error }; returns what ends that. */
export function whenEngineChanges(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Asks now, and often for a while: something has just been sent. */
export function watchClosely() {
  const now = performance.now();
  busyUntil = now + LINGER_MS;
  eagerUntil = now + EAGER_FOR_MS;
  ask();
}

/** Begins to ask, of the model that `name` tells, none for the first; stops whenever the page is hidden. */
export function startWatching(name) {
  modelName = name;
  document.addEventListener("visibilitychange", () => { if (!document.hidden) ask(); });
  ask();
}

async function ask() {
  if (asking || document.hidden) return;
  asking = true;
  clearTimeout(timer);
  let wait;
  try {
    const query = modelName() === "" ? "" : `?model=${encodeURIComponent(modelName())}`;
    const live = await getJson(`/v1/requests${query}`, { signal: AbortSignal.timeout(ANSWER_LIMIT_MS) });
    numFailures = 0;
    wait = pause(live.engine);
    notify({ live });
  } catch (error) {
    wait = retryPause(error);
    notify({ error });
  } finally {
    asking = false;
  }
  if (wait !== null) timer = setTimeout(ask, wait);
}

function pause(engine) {
  const now = performance.now();
  if (engine.num_running + engine.num_waiting > 0) busyUntil = now + LINGER_MS;
  if (now < eagerUntil) return EAGER_MS;
  return now < busyUntil ? BUSY_MS : IDLE_MS;
}

// Soon after the first failures, then less often. A missing key is asked for once: the page asks again when there is one.
function retryPause(error) {
  numFailures += 1;
  if (error.status === 401) return null;
  return error instanceof ConnectionError ? Math.min(FIRST_RETRY_MS * 2 ** (numFailures - 1), FAILED_MS) : FAILED_MS;
}

function notify(state) {
  for (const listener of [...listeners]) listener(state);
}
