// A prompt and its answer, with what can be done about them.
import { copy } from "./copy.js";
import { button, element } from "./dom.js";
import { figuresButton } from "./figures.js";

/**
 * One exchange; `actions` are `regenerate()`, `resend(text)`, `switchTo(version)` and `continueFrom(text)`. `fork` is what
 * the versions of an exchange share, those of its answer and of its prompt: { branches, chosen }. A branch is a version with
 * the exchanges after it; that of the chosen version is null, as it is shown.
 */
export class Exchange {
  fork = null;
  #head = element("div", { className: "prompt" });
  #copyButton = button("Copy", () => this.copy(), { className: "copy" });
  #editButton = button("Edit", () => this.edit(), { className: "edit", title: "Change the prompt and send it again" });
  #versions = element("span", { className: "versions", role: "group", "aria-label": "Versions", hidden: true });
  #tools = element("div", { className: "actions", hidden: true });

  constructor(kind, prompt, actions) {
    this.kind = kind;
    this.prompt = prompt;
    this.actions = actions;
    this.answer = null;
    this.node = element("article", { className: "exchange", tabIndex: -1,
      "aria-label": kind === "chat" ? "Message and answer" : "Completion" }, this.#head);
    this.showPrompt();
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
    const tools = [this.#versions];
    if (hasText) tools.push(this.#copyButton);
    if (!hasFailed) tools.push(button("Regenerate", () => this.actions.regenerate(), { className: "regenerate" }));
    if (this.kind === "completion" && hasText) {
      tools.push(button("Continue", () => this.actions.continueFrom(this.prompt + this.answer.text),
        { title: "Take prompt and answer as the next prompt" }));
    }
    tools.push(this.#editButton);
    if (this.answer.hasSource) tools.push(this.#sourceButton());
    if (this.answer.hasFigures) tools.push(figuresButton());
    this.#tools.replaceChildren(...tools);
    this.#tools.hidden = false;
    this.showVersions();
  }

  /** Shows which version this is, and the way to the others. */
  showVersions() {
    const { branches, chosen } = this.fork ?? { branches: [], chosen: 0 };
    this.#versions.hidden = branches.length < 2;
    const arrow = (sign, name, version) => button(sign, () => this.actions.switchTo(version),
      { title: name, "aria-label": name, disabled: !(version in branches) });
    this.#versions.replaceChildren(arrow("‹", "Earlier version", chosen - 1),
      element("span", {}, `${chosen + 1} of ${branches.length}`), arrow("›", "Later version", chosen + 1));
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

  /** Shows the prompt, in place of its editor. */
  showPrompt() {
    if (this.kind === "chat") this.#head.replaceChildren(element("p", { className: "message" }, this.prompt));
    else this.#head.replaceChildren();
  }

  /** Lets the visitor change the prompt and send it again. */
  edit() {
    const input = element("textarea", { value: this.prompt, rows: 3, "aria-label": "Edit the prompt" });
    const cancel = () => {
      this.showPrompt();
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
