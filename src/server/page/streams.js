// Eight completions at once, for a look at how the engine runs them together. They are one request of eight prompts:
// a browser opens no more than six connections to a server.
import { announce, byId, element, oncePerFrame, setText } from "./dom.js";
import { watchClosely } from "./engine.js";
import { errorBox, titleOf } from "./errors.js";
import { counted, rate } from "./format.js";
import { Generation } from "./generation.js";
import { sequenceChip } from "./sequence_chip.js";
import { markAsOurs } from "./sequences.js";
import { requestFields, settingsAreValid } from "./settings.js";

const BEGINNING = "The house stood at the end of the lane, where the elms grew so thick that the sun never reached the " +
  "door. For thirty years nobody had lived in it. The children of the village said that a light was sometimes seen in " +
  "the upper window, and their fathers, who did not believe them, took the longer road home all the same. On the first " +
  "evening of November a carriage stopped before the gate, and";
const ENDINGS = [
  "an old man stepped down", "nobody got out", "a woman in grey asked for the key", "the horses would not stand",
  "a boy of ten looked up at the window", "the driver began to whistle", "two brothers looked at each other",
  "the rain came at last",
];
const TOKENS_EACH = 160;

let abort = null;

/** Whether the eight are running. */
export const streamsAreRunning = () => abort !== null;

/** Stops the eight. */
export const stopStreams = () => abort?.abort();

/** Starts the eight; does nothing while they run. `model` is the model's name, `onChange` is told of start and end. */
export async function startStreams(model, onChange) {
  if (abort || !settingsAreValid()) return;
  abort = new AbortController();
  const { temperature, top_p: topP } = requestFields("completion");
  const generation = new Generation("completion", {
    model, prompt: ENDINGS.map((ending) => `${BEGINNING} ${ending}`),
    max_tokens: TOKENS_EACH, temperature, top_p: topP });
  const tiles = ENDINGS.map((ending, index) => new Tile(ending, index));
  byId("streams-grid").replaceChildren(...tiles.map(({ node }) => node));
  byId("streams-error").replaceChildren();
  showRunning(true);
  onChange();
  announce("Eight streams are running.");
  watchClosely();
  const showTotal = oncePerFrame(() => setText(byId("streams-total"), total(generation)));
  try {
    await generation.run(abort.signal, (piece) => {
      markAsOurs(generation.id);
      tiles[piece.index].add(piece, generation.id);
      showTotal();
    });
    announce(`All eight have ended: ${total(generation)}`);
  } catch (error) {
    for (const tile of tiles) tile.end("stopped");
    announce(abort.signal.aborted ? "Stopped." : titleOf(error));
    if (!abort.signal.aborted) byId("streams-error").append(errorBox(error, () => startStreams(model, onChange)));
  }
  abort = null;
  showRunning(false);
  onChange();
}

// One of the eight: its sequence, how far it is, and the end of its text.
class Tile {
  #chip = element("span");
  #state = element("span", { className: "muted" }, "waiting");
  #text = new Text();
  #numTokens = 0;
  #hasEnded = false;

  constructor(ending, index) {
    this.index = index;
    this.node = element("li", {},
      element("p", { className: "stream-head" }, this.#chip, this.#state),
      element("div", { className: "stream-text" },
        element("p", {}, element("span", { className: "given" }, `… ${ending}`), this.#text)));
  }

  add({ text, numTokens, finish }, id) {
    if (!this.#chip.firstChild) this.#chip.append(sequenceChip(id, this.index));
    this.#numTokens += numTokens;
    this.#text.appendData(text);
    if (finish) this.end("ended");
    else setText(this.#state, counted(this.#numTokens, "token"));
  }

  end(how) {
    if (!this.#hasEnded) setText(this.#state, `${counted(this.#numTokens, "token")}, ${how}`);
    this.#hasEnded = true;
  }
}

function total(generation) {
  const { numTokens, tokensPerSecond } = generation;
  const speed = tokensPerSecond === null ? "" : `, ${rate(tokensPerSecond)} a second together`;
  return counted(numTokens, "token") + speed;
}

function showRunning(isRunning) {
  const [start, stop] = [byId("streams-start"), byId("streams-stop")];
  const hadFocus = document.activeElement === start || document.activeElement === stop;
  start.hidden = isRunning;
  stop.hidden = !isRunning;
  if (hadFocus) (isRunning ? stop : start).focus();
}
