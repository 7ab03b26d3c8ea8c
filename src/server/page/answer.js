// What the page shows of one answer: its choices, how it ended, its usage and times.
import { button, element, setText } from "./dom.js";
import { DraftedText } from "./drafted.js";
import { count, counted, duration, rate } from "./format.js";
import { MarkdownView } from "./markdown_view.js";
import { hasOutput } from "./generation.js";
import { TokenList, tokenLegend } from "./tokens.js";
import { TurnParts } from "./turn_parts.js";
import { sequenceChip } from "./sequence_chip.js";
import { errorBox } from "./errors.js";

// All but "stop", which needs no word.
const ENDINGS = {
  tool_calls: "Calls a tool.",
  length: "Cut off: the token limit is reached.", content_filter: "Withheld by a filter.", stopped: "Stopped.",
  failed: "This answer failed.", unfinished: "Not finished: the page was closed or reloaded while this answer came.",
};

/** The view of one answer: of a chat as Markdown, of a completion as plain text after its prompt. */
export class Answer {
  #kind;
  #prompt;
  #choices = [];
  #chosen = 0;
  #failed = false;
  #waiting = element("p", { className: "muted waiting" }, "Waiting for the first token …");
  #choiceList = element("div");
  #ending = element("p", { className: "ending muted", hidden: true });
  #meta = element("ul", { className: "meta", "aria-label": "Usage and times" });
  #after = element("div");

  constructor(kind, prompt) {
    this.#kind = kind;
    this.#prompt = prompt;
    this.node = element("div", { className: "answer", "aria-busy": "true" },
      this.#choiceList, this.#waiting, this.#ending, this.#meta, this.#after);
  }

  /** The text of the choice that the conversation goes on from. */
  get text() {
    return this.#choices[this.#chosen]?.text ?? "";
  }

  /** How it ended, in the API's words or in the page's. */
  get ending() {
    if (this.#failed) return "failed";
    return this.node.hasAttribute("aria-busy") ? "unfinished" : (this.#choices[this.#chosen]?.finish ?? "stopped");
  }

  /** Whether there are usage and times to show. */
  get hasFigures() {
    return this.#meta.textContent !== "";
  }

  /** Whether the text as the model wrote it may look different. */
  get hasSource() {
    return this.#choices.some(({ view }) => view instanceof MarkdownView);
  }

  /** Shows the text as the model wrote it, or as Markdown again. */
  showSource(isShown) {
    for (const { output, text, view } of this.#choices) {
      if (view) output.replaceChildren(isShown ? element("div", { className: "source-text" }, text) : view.node);
    }
  }

  /** Adds a piece of a choice. */
  add(piece) {
    const { index, text, reasoning, calls, parts, tokens, finish, seed } = piece;
    const choice = this.#choice(index);
    if (hasOutput(piece)) this.#waiting.remove();
    choice.turn.addReasoning(reasoning);
    calls.forEach((call) => choice.turn.addCall(call));
    if (text !== "" && choice.text === "") choice.turn.fold();
    if (tokens.length > 0 && !choice.tokens) {
      choice.tokens = new TokenList();
      choice.view = null;
      choice.output.replaceChildren(choice.tokens.node);
    }
    choice.tokens?.append(tokens);
    choice.text += text;
    choice.view?.append(text);
    if (parts.some(({ accepted }) => accepted)) choice.drafted ??= new DraftedText(choice.output);
    choice.drafted?.add(parts);
    choice.finish = finish ?? choice.finish;
    choice.seed = seed ?? choice.seed;
  }

  /** Shows usage and times as far as they are known. */
  showProgress(generation) {
    const { usage, firstMs, tokensPerSecond } = generation;
    const facts = [];
    if (generation.numTokens > 0) facts.push(counted(generation.numTokens, "token"));
    if (firstMs !== null) facts.push(`first after ${duration(firstMs)}`);
    if (tokensPerSecond !== null) facts.push(`${rate(tokensPerSecond)} tokens/s`);
    if (usage) facts.push(promptFact(usage));
    const seeds = this.#choices.map(({ seed }) => seed).filter((seed) => seed !== null);
    if (seeds.length > 0) facts.push(`seed ${seeds.join(", ")}`);
    while (this.#meta.children.length < facts.length + 1) this.#meta.append(element("li"));
    const [chip, ...items] = this.#meta.children;
    if (generation.id && !chip.firstChild) chip.append(sequenceChip(generation.id));
    items.forEach((item, i) => setText(item, facts[i] ?? ""));
  }

  /**
   * Ends the view: "stopped", an error, or nothing for an answer that is whole. `actions` are `regenerate()` and, where
   * there are chats, `startChat()`.
   */
  finish(generation, outcome, { regenerate, startChat }) {
    for (const choice of this.#choices) if (outcome === "stopped") choice.finish ??= "stopped";
    this.#end(outcome instanceof Error);
    if (this.#choices.some((choice) => choice.tokens)) this.#after.append(tokenLegend());
    this.showProgress(generation);
    if (outcome instanceof Error) {
      this.#after.append(errorBox(outcome, regenerate, startChat));
    } else if (generation.hasFilledContext) {
      const more = startChat ? button("New chat", startChat) : "";
      this.#sayEnding("Cut off: the model's context is full. ", more);
    } else {
      this.#sayEnding(this.#choices.length === 0 ? "Stopped before the first token." : this.#endings());
    }
  }

  /** Shows an answer of an earlier visit. */
  restore(text, ending) {
    if (text !== "") {
      this.add({ index: 0, text, reasoning: "", calls: [], parts: [], tokens: [], finish: ending, seed: null });
    }
    this.#end(ending === "failed");
    if (ending !== "stop") this.#sayEnding(ENDINGS[ending] ?? ENDINGS.unfinished);
  }

  #sayEnding(...said) {
    this.#ending.replaceChildren(...said);
    this.#ending.hidden = this.#ending.textContent === "";
  }

  #end(hasFailed) {
    this.#failed = hasFailed;
    this.#waiting.remove();
    this.node.removeAttribute("aria-busy");
    for (const { tokens, view, text, drafted } of this.#choices) {
      drafted?.clear();
      tokens?.finish(text);
      view?.finish();
    }
  }

  #choice(index) {
    while (this.#choices.length <= index) {
      const view = this.#kind === "chat" ? new MarkdownView() : new PlainView();
      const output = element(this.#kind === "chat" ? "div" : "span", {}, view.node);
      const body = element("div", { className: "text" }, output);
      if (this.#kind === "completion") body.prepend(element("span", { className: "given" }, this.#prompt));
      const turn = new TurnParts();
      const node = element("div", { className: "choice" }, turn.node, body);
      this.#choices.push({ node, output, view, turn, text: "", tokens: null, drafted: null, finish: null, seed: null });
      this.#choiceList.append(node);
      if (this.#choices.length > 1) this.#nameChoices();
    }
    return this.#choices[index];
  }

  #nameChoices() {
    this.#choices.forEach(({ node }, i) => {
      node.querySelector(".choice-head")?.remove();
      node.prepend(element("div", { className: "choice-head" },
        button(`Answer ${i + 1}`, () => this.#choose(i),
          { "aria-pressed": String(i === this.#chosen), title: "Go on from this answer" })));
    });
  }

  #choose(index) {
    this.#chosen = index;
    this.#choices.forEach(({ node }, i) => {
      node.querySelector("button").setAttribute("aria-pressed", String(i === index));
    });
  }

  // How choices ended that aren't complete.
  #endings() {
    const endings = this.#choices.map(({ finish }) => finish).filter((finish) => finish && finish !== "stop");
    return [...new Set(endings)].map((finish) => ENDINGS[finish] ?? `Ended: ${finish}.`).join(" ");
  }
}

// Text as it comes, with the same interface as MarkdownView.
class PlainView {
  node = new Text();

  append(piece) {
    this.node.appendData(piece);
  }

  finish() {}
}

function promptFact(usage) {
  const cached = usage.prompt_tokens_details?.cached_tokens ?? 0;
  return `prompt ${count(usage.prompt_tokens)}${cached > 0 ? `, ${count(cached)} from the cache` : ""}`;
}
