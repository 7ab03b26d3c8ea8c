// A prompt and its answer, with what can be done about them.
import { announce, button, element } from "./dom.js";

/** One exchange; `actions` are `regenerate()`, `resend(text)` and `continueFrom(text)`. */
export class Exchange {
  #head = element("div", { className: "prompt" });
  #copyButton = button("Copy", () => this.copy());
  #tools = element("div", { className: "actions", hidden: true });

  constructor(kind, prompt, actions) {
    this.kind = kind;
    this.prompt = prompt;
    this.actions = actions;
    this.answer = null;
    this.node = element("article", { className: "exchange", tabIndex: -1,
      "aria-label": kind === "chat" ? "Message and answer" : "Completion" }, this.#head);
    this.#showPrompt();
  }

  /** Puts the view of the answer in its place and returns it. */
  begin(answer) {
    this.answer = answer;
    this.node.append(answer.node, this.#tools);
    return answer;
  }

  /** Offers what can be done with an ended answer; one that failed has its own button to try again. */
  end(hasFailed) {
    this.#tools.replaceChildren();
    if (this.answer.text !== "") this.#tools.append(this.#copyButton);
    if (!hasFailed) this.#tools.append(button("Regenerate", () => this.actions.regenerate()));
    if (this.kind === "completion" && this.answer.text !== "") {
      this.#tools.append(button("Continue", () => this.actions.continueFrom(this.prompt + this.answer.text),
        { title: "Take prompt and answer as the next prompt" }));
    }
    this.#tools.append(button("Edit prompt", () => this.#edit()));
    this.#tools.hidden = false;
  }

  async copy() {
    const text = this.kind === "chat" ? this.answer.text : this.prompt + this.answer.text;
    try {
      await navigator.clipboard.writeText(text);
      announce("Copied.");
      this.#flash("Copied");
    } catch {
      announce("The browser doesn't let the page copy.");
      this.#flash("Can't copy");
    }
  }

  #flash(text) {
    this.#copyButton.textContent = text;
    setTimeout(() => { this.#copyButton.textContent = "Copy"; }, 1200);
  }

  #showPrompt() {
    if (this.kind === "chat") this.#head.replaceChildren(element("p", { className: "message" }, this.prompt));
    else this.#head.replaceChildren();
  }

  #edit() {
    const input = element("textarea", { value: this.prompt, rows: 3, "aria-label": "Edit the prompt" });
    const cancel = () => {
      this.#showPrompt();
      this.#tools.lastChild.focus();
    };
    const send = () => {
      if (input.value.trim() !== "") this.actions.resend(input.value);
    };
    input.addEventListener("keydown", (event) => {
      if (event.key === "Escape") cancel();
      else if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
        event.preventDefault();
        send();
      }
    });
    this.#head.replaceChildren(element("div", { className: "editor" }, input,
      element("div", { className: "actions" }, button("Send", send, { className: "primary" }), button("Cancel", cancel))));
    input.focus();
  }
}
