// A prompt and its answer, with what can be done about them.
import { copy } from "./copy.js";
import { button, element } from "./dom.js";

/** One exchange; `actions` are `regenerate()`, `resend(text)` and `continueFrom(text)`. */
export class Exchange {
  #head = element("div", { className: "prompt" });
  #copyButton = button("Copy", () => this.copy(), { className: "copy" });
  #editButton = button("Edit", () => this.edit(), { className: "edit", title: "Change the prompt and send it again" });
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
  end(hasFailed = false) {
    const hasText = this.answer.text !== "";
    const tools = [];
    if (hasText) tools.push(this.#copyButton);
    if (!hasFailed) tools.push(button("Regenerate", () => this.actions.regenerate(), { className: "regenerate" }));
    if (this.kind === "completion" && hasText) {
      tools.push(button("Continue", () => this.actions.continueFrom(this.prompt + this.answer.text),
        { title: "Take prompt and answer as the next prompt" }));
    }
    tools.push(this.#editButton);
    if (this.answer.hasSource) tools.push(this.#sourceButton());
    this.#tools.replaceChildren(...tools);
    this.#tools.hidden = false;
  }

  copy() {
    return copy(this.kind === "chat" ? this.answer.text : this.prompt + this.answer.text, this.#copyButton);
  }

  #sourceButton() {
    const toggle = button("Source", () => {
      const isShown = toggle.getAttribute("aria-pressed") !== "true";
      toggle.setAttribute("aria-pressed", String(isShown));
      this.answer.showSource(isShown);
    }, { className: "source", "aria-pressed": "false", title: "Show the answer as the model wrote it" });
    return toggle;
  }

  #showPrompt() {
    if (this.kind === "chat") this.#head.replaceChildren(element("p", { className: "message" }, this.prompt));
    else this.#head.replaceChildren();
  }

  /** Lets the visitor change the prompt and send it again. */
  edit() {
    const input = element("textarea", { value: this.prompt, rows: 3, "aria-label": "Edit the prompt" });
    const cancel = () => {
      this.#showPrompt();
      this.#editButton.focus();
    };
    const send = () => {
      if (input.value.trim() !== "") this.actions.resend(input.value);
    };
    input.addEventListener("keydown", (event) => {
      if (event.key === "Escape") {
        event.preventDefault();
        cancel();
      } else if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
        event.preventDefault();
        send();
      }
    });
    this.#head.replaceChildren(element("div", { className: "editor" }, input,
      element("div", { className: "actions" }, button("Send", send, { className: "primary" }), button("Cancel", cancel))));
    input.focus();
    input.setSelectionRange(input.value.length, input.value.length);
  }
}
