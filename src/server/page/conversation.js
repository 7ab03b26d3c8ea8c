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

/**
 * A chat, or the completions of the page; `page` offers `model()`, `write(text)`, `onChange(conversation)` and `scrollToEnd()`,
 * `saved` are exchanges as `exchanges` returns them.
 */
export class Conversation {
  #exchanges = [];
  #running = null;

  constructor(kind, panel, page, saved = []) {
    this.kind = kind;
    this.page = page;
    this.node = panel.appendChild(element("div", { className: `exchanges ${kind}` }));
    for (const { prompt, answer, ending } of saved) {
      const exchange = this.#add(prompt);
      exchange.begin(new Answer(kind, prompt)).restore(answer, ending);
      exchange.end();
    }
  }

  /** What can be kept of the exchanges: [{ prompt, answer, ending }]. */
  get exchanges() {
    return this.#exchanges.map(({ prompt, answer }) => ({ prompt, answer: answer.text, ending: answer.ending }));
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
    this.#generate(this.#add(text));
    return true;
  }

  #add(prompt) {
    const exchange = new Exchange(this.kind, prompt, {
      regenerate: () => this.#again(exchange, exchange.prompt),
      resend: (changed) => this.#again(exchange, changed),
      continueFrom: (whole) => this.page.write(whole),
    });
    this.#exchanges.push(exchange);
    this.node.append(exchange.node);
    return exchange;
  }

  stop() {
    this.#running?.abort.abort();
  }

  clear() {
    this.stop();
    this.#dropFrom(0);
    this.page.onChange(this);
  }

  regenerateLast() {
    this.#exchanges.at(-1)?.actions.regenerate();
  }

  copyLast() {
    this.#exchanges.at(-1)?.copy();
  }

  editLast() {
    this.#exchanges.at(-1)?.edit();
  }

  // A chat goes on from its middle: what followed is dropped. A completion stands alone.
  async #again(exchange, prompt) {
    if (!settingsAreValid()) return;
    this.stop();
    await this.#running?.ended;
    const index = this.#exchanges.indexOf(exchange);
    if (index < 0) return;
    if (this.kind === "chat") this.#dropFrom(index);
    this.send(prompt);
    this.#exchanges.at(-1).node.focus();
  }

  #dropFrom(index) {
    for (const { node } of this.#exchanges.splice(index)) node.remove();
  }

  async #generate(exchange) {
    const abort = new AbortController();
    const generation = new Generation(this.kind, this.#body(exchange));
    const answer = exchange.begin(new Answer(this.kind, exchange.prompt));
    const showProgress = oncePerFrame(() => answer.showProgress(generation));
    let hasEnded;
    this.#running = { abort, ended: new Promise((resolve) => { hasEnded = resolve; }) };
    let outcome = null;
    this.page.scrollToEnd();
    this.page.onChange(this);
    announce("Sent.");
    watchClosely();
    try {
      await generation.run(abort.signal, (piece) => {
        markAsOurs(generation.id);
        answer.add(piece);
        showProgress();
      });
    } catch (error) {
      outcome = abort.signal.aborted ? "stopped" : error;
    }
    this.#running = null;
    answer.finish(generation, outcome, () => exchange.actions.regenerate());
    exchange.end(outcome instanceof Error);
    this.page.onChange(this);
    announce(spoken(answer, generation, outcome));
    hasEnded();
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
