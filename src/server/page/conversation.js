// A conversation, or a row of completions: exchanges of a prompt and an answer.
import { Answer } from "./answer.js";
import { announce, element, oncePerFrame } from "./dom.js";
import { watchClosely } from "./engine.js";
import { titleOf } from "./errors.js";
import { counted } from "./format.js";
import { Generation } from "./generation.js";
import { Exchange } from "./exchange.js";
import { markAsOurs } from "./sequences.js";
import { requestFields, settingsAreValid, systemPrompt } from "./settings.js";

const MOST_SPOKEN = 600;

/** The exchanges of one mode; `page` offers `model()`, `write(text)`, `onChange()` and `scroll`. */
export class Conversation {
  #exchanges = [];
  #running = null;

  constructor(kind, panel, page) {
    this.kind = kind;
    this.page = page;
    this.empty = panel.querySelector(".empty");
    this.list = panel.appendChild(element("div", { className: `exchanges ${kind}` }));
  }

  get isRunning() {
    return this.#running !== null;
  }

  get isEmpty() {
    return this.#exchanges.length === 0;
  }

  /** Sends a prompt; returns whether it was taken. */
  send(text) {
    if (this.isRunning || text.trim() === "" || !settingsAreValid()) return false;
    const exchange = new Exchange(this.kind, text, {
      regenerate: () => this.#again(exchange, exchange.prompt),
      resend: (changed) => this.#again(exchange, changed),
      continueFrom: (whole) => this.page.write(whole),
    });
    this.#exchanges.push(exchange);
    this.list.append(exchange.node);
    this.empty.hidden = true;
    this.#generate(exchange);
    return true;
  }

  stop() {
    this.#running?.abort();
  }

  clear() {
    this.stop();
    this.#dropFrom(0);
    this.page.onChange();
  }

  regenerateLast() {
    this.#exchanges.at(-1)?.actions.regenerate();
  }

  copyLast() {
    this.#exchanges.at(-1)?.copy();
  }

  // A chat goes on from its middle: what followed is dropped. A completion stands alone.
  #again(exchange, prompt) {
    if (this.isRunning || !settingsAreValid()) return;
    const index = this.#exchanges.indexOf(exchange);
    if (index < 0) return;
    if (this.kind === "chat") this.#dropFrom(index);
    this.send(prompt);
    this.#exchanges.at(-1).node.focus();
  }

  #dropFrom(index) {
    for (const { node } of this.#exchanges.splice(index)) node.remove();
    this.empty.hidden = this.#exchanges.length > 0;
  }

  async #generate(exchange) {
    const abort = this.#running = new AbortController();
    const generation = new Generation(this.kind, this.#body(exchange));
    const answer = exchange.begin(new Answer(this.kind === "completion" ? exchange.prompt : ""));
    const showProgress = oncePerFrame(() => answer.showProgress(generation));
    let outcome = null;
    this.page.scroll.restart();
    this.page.onChange();
    announce("Sent.");
    watchClosely();
    try {
      await generation.run(abort.signal, (piece) => {
        markAsOurs(generation.id);
        answer.add(piece);
        showProgress();
        this.page.scroll.follow();
      });
    } catch (error) {
      outcome = abort.signal.aborted ? "stopped" : error;
    }
    this.#running = null;
    answer.finish(generation, outcome, () => exchange.actions.regenerate());
    exchange.end(outcome instanceof Error);
    this.page.scroll.follow();
    this.page.onChange();
    announce(spoken(answer, generation, outcome));
  }

  #body(exchange) {
    const fields = { model: this.page.model(), ...requestFields(this.kind) };
    if (this.kind === "completion") return { ...fields, prompt: exchange.prompt };
    const messages = [];
    const system = systemPrompt();
    if (system !== "") messages.push({ role: "system", content: system });
    for (const earlier of this.#exchanges) {
      if (earlier === exchange || earlier.answer.text === "") continue;
      messages.push({ role: "user", content: earlier.prompt }, { role: "assistant", content: earlier.answer.text });
    }
    return { ...fields, messages: [...messages, { role: "user", content: exchange.prompt }] };
  }
}

function spoken(answer, generation, outcome) {
  if (outcome instanceof Error) return `${titleOf(outcome)}.`;
  const beginning = outcome === "stopped" ? "Stopped" : "Answer complete";
  return `${beginning}, ${counted(generation.numTokens, "token")}. ${answer.text.slice(0, MOST_SPOKEN)}`;
}
