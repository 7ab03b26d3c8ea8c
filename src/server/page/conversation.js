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
 * A chat, or the completions of the page; `page` offers `model()`, `write(text)`, `startChat()`, `onChange(conversation)` and
 * `scrollToEnd()`, `saved` are exchanges as `exchanges` returns them.
 */
export class Conversation {
  #exchanges = [];
  #running = null;

  constructor(kind, panel, page, saved = []) {
    this.kind = kind;
    this.page = page;
    this.node = panel.appendChild(element("div", { className: `exchanges ${kind}` }));
    for (const exchange of saved.map((one) => this.#restored(one))) this.#show(exchange);
  }

  /**
   * What can be kept of the exchanges: [{ prompt, answer, ending, others, place }]. Where there are several versions of one,
   * `others` are the branches that aren't shown, each a list of exchanges, and `place` is that of the shown one among them.
   */
  get exchanges() {
    return this.#exchanges.map(kept);
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
    this.#generate(this.#show(this.#made(text)));
    return true;
  }

  #made(prompt) {
    const exchange = new Exchange(this.kind, prompt, {
      regenerate: () => this.#again(exchange, exchange.prompt),
      resend: (changed) => this.#again(exchange, changed),
      switchTo: (version) => this.#switchTo(exchange, version),
      continueFrom: (whole) => this.page.write(whole),
    });
    return exchange;
  }

  // An exchange as `exchanges` has it, not shown yet.
  #restored({ prompt, answer, ending, others = [], place = 0 }) {
    const exchange = this.#made(prompt);
    if (others.length > 0) {
      const branches = others.map((branch) => branch.map((one) => this.#restored(one)));
      branches.splice(place, 0, null);
      exchange.fork = { branches, chosen: branches.indexOf(null) };
      for (const branch of branches) if (branch) branch[0].fork = exchange.fork;
    }
    exchange.begin(new Answer(this.kind, prompt)).restore(answer, ending);
    exchange.end();
    return exchange;
  }

  #show(exchange) {
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

  // A chat goes on from its middle, in a branch of its own. A completion stands alone.
  async #again(exchange, prompt) {
    if (!settingsAreValid() || prompt.trim() === "") return;
    this.stop();
    await this.#running?.ended;
    const index = this.#exchanges.indexOf(exchange);
    if (index < 0) return;
    const next = this.#made(prompt);
    if (this.kind === "chat") next.fork = this.#forkedAt(index);
    this.#generate(this.#show(next));
    next.node.focus();
  }

  // Takes the exchanges from `index` on away, as a branch of the fork that a new one there will share.
  #forkedAt(index) {
    const branch = this.#dropFrom(index);
    const isWorthKeeping = branch.length > 1 || branch[0].answer.text !== "";
    const fork = branch[0].fork ?? { branches: [null], chosen: 0 };
    if (!isWorthKeeping) return fork;
    branch[0].fork = fork;
    fork.branches[fork.chosen] = branch;
    fork.chosen = fork.branches.push(null) - 1;
    return fork;
  }

  async #switchTo(exchange, version) {
    this.stop();
    await this.#running?.ended;
    const index = this.#exchanges.indexOf(exchange);
    const { fork } = exchange;
    if (index < 0 || !fork.branches[version]) return;
    fork.branches[fork.chosen] = this.#dropFrom(index);
    const branch = fork.branches[version];
    fork.branches[version] = null;
    fork.chosen = version;
    for (const one of branch) this.#show(one);
    branch[0].showVersions();
    branch[0].node.focus();
    announce(`Version ${version + 1} of ${fork.branches.length}.`);
    this.page.onChange(this);
  }

  #dropFrom(index) {
    const dropped = this.#exchanges.splice(index);
    for (const exchange of dropped) {
      exchange.node.remove();
      exchange.showPrompt();
    }
    return dropped;
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
    const startChat = this.kind === "chat" ? () => this.page.startChat() : null;
    answer.finish(generation, outcome, { regenerate: () => exchange.actions.regenerate(), startChat });
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

const alone = ({ prompt, answer }) => ({ prompt, answer: answer.text, ending: answer.ending });

function kept(exchange) {
  if (!exchange.fork) return alone(exchange);
  const { branches, chosen } = exchange.fork;
  const others = branches.filter(Boolean).map(([first, ...rest]) => [alone(first), ...rest.map(kept)]);
  return { ...alone(exchange), others, place: chosen };
}

function spoken(answer, generation, outcome) {
  if (outcome instanceof Error) return `${titleOf(outcome)}.`;
  const beginning = outcome === "stopped" ? "Stopped" : "Answer complete";
  return `${beginning}, ${counted(generation.numTokens, "token")}. ${answer.text.slice(0, MOST_SPOKEN)}`;
}
