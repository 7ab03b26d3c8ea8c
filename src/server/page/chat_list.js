// The list of chats beside the playground.
import { button, byId, element, setText } from "./dom.js";
import { makeRoving } from "./roving.js";

/** The list; `actions` are `open(id)`, `rename(id, title)` and `remove(id)`. */
export class ChatList {
  #list = byId("chat-list");
  #note = byId("chats-note");
  #shown = [[], null];
  #drawn = "";
  #isRenaming = false;

  constructor(actions) {
    this.actions = actions;
    makeRoving(this.#list, ".chat-title");
    this.#list.addEventListener("keydown", (event) => {
      const item = event.target.closest(".chat-title")?.closest("li");
      if (!item || !["F2", "Delete"].includes(event.key)) return;
      event.preventDefault();
      if (event.key === "F2") this.#rename(item);
      else this.#remove(item);
    });
  }

  /** Shows the chats [{ id, title, changedAt, isRunning }] in this order. */
  show(chats, currentId) {
    this.#shown = [chats, currentId];
    this.#draw();
  }

  /** Says what has been done, with a button that takes it back. */
  offer(text, label, action) {
    this.#note.replaceChildren(element("span", {}, text), button(label, () => {
      this.#note.replaceChildren();
      action();
    }));
  }

  /** Says why chats aren't kept; an empty text says nothing. */
  warn(text) {
    setText(byId("chats-warning"), text);
  }

  #draw() {
    const [chats, currentId] = this.#shown;
    byId("chats-empty").hidden = chats.length > 0;
    const now = JSON.stringify(this.#shown);
    if (now === this.#drawn || this.#isRenaming) return;
    this.#drawn = now;
    const focused = this.#list.contains(document.activeElement) ? document.activeElement.closest("li").dataset.id : null;
    this.#list.replaceChildren(...chats.map((chat) => this.#item(chat, chat.id === currentId)));
    const first = this.#list.querySelector("[aria-current]") ?? this.#list.querySelector(".chat-title");
    if (first) first.tabIndex = 0;
    if (focused !== null) (this.#titleOf(focused) ?? first ?? byId("new-chat")).focus();
  }

  #titleOf(id) {
    return [...this.#list.children].find((item) => item.dataset.id === id)?.querySelector(".chat-title");
  }

  #item({ id, title, changedAt, isRunning }, isCurrent) {
    const open = button(title, () => this.actions.open(id), {
      className: "chat-title", tabIndex: -1, title: `${title}\n${new Date(changedAt).toLocaleString()}`,
    });
    if (isCurrent) open.setAttribute("aria-current", "true");
    if (isRunning) open.append(element("span", { className: "dot", role: "img", "aria-label": "being answered" }));
    const item = element("li", {}, open,
      element("span", { className: "chat-tools" },
        button("✎", () => this.#rename(item), { title: "Rename (F2)", "aria-label": `Rename “${title}”` }),
        button("✕", () => this.#remove(item), { title: "Delete (Del)", "aria-label": `Delete “${title}”` })));
    item.dataset.id = id;
    return item;
  }

  #remove(item) {
    (item.nextElementSibling ?? item.previousElementSibling)?.querySelector(".chat-title").focus();
    this.actions.remove(item.dataset.id);
  }

  #rename(item) {
    const before = item.querySelector(".chat-title").firstChild.data;
    const input = element("input", { value: before, maxLength: 200, "aria-label": "Name of the chat" });
    const end = (title) => {
      if (!this.#isRenaming) return;
      const hadFocus = item.contains(document.activeElement);
      this.#isRenaming = false;
      this.#drawn = "";
      if (title === before) this.#draw();
      else this.actions.rename(item.dataset.id, title);
      if (hadFocus) this.#titleOf(item.dataset.id)?.focus();
    };
    input.addEventListener("keydown", (event) => {
      if (event.isComposing || !["Enter", "Escape"].includes(event.key)) return;
      event.preventDefault();
      event.stopPropagation();
      end(event.key === "Enter" ? input.value.trim() : before);
    });
    input.addEventListener("blur", () => end(input.value.trim()));
    this.#isRenaming = true;
    item.replaceChildren(input);
    input.select();
    input.focus();
  }
}
