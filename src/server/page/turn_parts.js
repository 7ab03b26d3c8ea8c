// What an answer has besides its text: the model's reasoning, and the tools that it calls.
import { element } from "./dom.js";

/** The view of both; it is empty until something comes. */
export class TurnParts {
  #reasoning = null;
  #calls = [];
  node = element("div", { className: "turn-parts" });

  addReasoning(text) {
    if (text === "") return;
    if (!this.#reasoning) {
      this.#reasoning = element("p", { className: "source-text" });
      this.node.prepend(element("details", { className: "reasoning", open: true },
        element("summary", {}, "Reasoning"), this.#reasoning));
    }
    this.#reasoning.append(text);
  }

  /** Adds a piece of a call, as the API streams it. */
  addCall({ index, function: { name, arguments: piece } }) {
    let call = this.#calls[index];
    if (!call) {
      call = element("code");
      this.#calls[index] = call;
      this.node.append(element("pre", { className: "call", "aria-label": "Tool call" },
        element("strong", {}, name ?? ""), " ", call));
    }
    call.append(piece ?? "");
  }

  /** The answer follows: the reasoning makes room for it. */
  fold() {
    this.#reasoning?.parentElement.removeAttribute("open");
  }
}
