// The chats of the page: the current one, the ones stored in the browser, and their actions.
import { ChatList } from "./chat_list.js";
import { forgetChat, readChats, saveChat, whenAnotherTabChangesChats } from "./chat_store.js";
import { Conversation } from "./conversation.js";
import { byId } from "./dom.js";
import { setSystemPrompt, systemPrompt } from "./settings.js";
import { keep, recall } from "./storage.js";

const MOST_TITLE = 80;
const WARNINGS = {
  kept: "",
  full: "The browser's storage is full: changed chats will be lost when this tab closes. Delete some to make room.",
  refused: "This browser keeps no data for this page: chats will be lost when this tab closes.",
};

/** All chats; `page` is what conversations need, `onOpen` is called when the visitor has opened one. */
export class Chats {
  #panel = byId("chat");
  #chats = new Map();  // id -> a kept chat, with its conversation once it has been opened
  #current = null;
  #unsaved = new Set();  // ids
  #list;

  constructor(page, onOpen) {
    this.page = page;
    this.onOpen = onOpen;
    this.#list = new ChatList({
      open: (id) => { this.#open(id); onOpen(); },
      rename: (id, title) => this.#rename(id, title),
      remove: (id) => this.#remove(id),
    });
    for (const chat of readChats()) this.#chats.set(chat.id, chat);
    whenAnotherTabChangesChats((id) => this.#takeOver(id));
    addEventListener("pagehide", () => this.#saveRunning());
    addEventListener("beforeunload", (event) => { if (this.#running().length > 0) event.preventDefault(); });
  }

  /** Shows the chat that this tab showed before, or a new one. */
  resume() {
    const last = recall("current-chat", "sessionStorage");
    if (this.#chats.has(last)) this.#open(last);
    else this.#start();
  }

  /** The conversation that is shown. */
  get current() {
    return this.#current.conversation;
  }

  /** Shows a new, empty chat. */
  start() {
    if (!this.current.isEmpty) this.#start();
    this.onOpen();
  }

  /** Saves the chat of a conversation that has changed. */
  changed(conversation) {
    const chat = this.#current?.conversation === conversation ? this.#current
      : [...this.#chats.values()].find((other) => other.conversation === conversation);
    if (!chat) return;
    if (!conversation.isEmpty || this.#chats.has(chat.id)) this.#save(chat);
    this.#draw();
  }

  /** Keeps the choice of the model with the current chat. */
  modelChanged() {
    this.#current.model = this.page.model();
    if (this.#chats.has(this.#current.id)) this.#write(this.#current);
  }

  #start() {
    this.#show({ id: crypto.getRandomValues(new Uint32Array(3)).join("-"), title: "", isNamed: false, changedAt: 0,
      system: "", model: this.page.model(), exchanges: [] });
  }

  #open(id) {
    const chat = this.#chats.get(id);
    if (!chat || chat === this.#current) return;
    setSystemPrompt(chat.system);
    this.page.chooseModel(chat.model);
    this.#show(chat);
  }

  #show(chat) {
    if (this.#current) this.#current.conversation.node.hidden = true;
    if (this.#current?.conversation.isEmpty) this.#current.conversation.node.remove();
    this.#current = chat;
    chat.conversation ??= new Conversation("chat", this.#panel, this.page, chat.exchanges);
    chat.conversation.node.hidden = false;
    keep("current-chat", this.#chats.has(chat.id) ? chat.id : null, "sessionStorage");
    this.page.onShow();
    this.#draw();
  }

  #save(chat) {
    const { conversation } = chat;
    chat.exchanges = conversation.exchanges;
    chat.changedAt = Date.now();
    if (chat === this.#current) Object.assign(chat, { system: systemPrompt(), model: this.page.model() });
    if (!chat.isNamed) chat.title = titleFrom(chat.exchanges);
    this.#chats.set(chat.id, chat);
    if (chat === this.#current) keep("current-chat", chat.id, "sessionStorage");
    this.#write(chat);
  }

  #write({ id, title, isNamed, changedAt, system, model, exchanges }) {
    const outcome = saveChat({ id, title, isNamed, changedAt, system, model, exchanges });
    if (outcome === "kept") this.#unsaved.delete(id);
    else this.#unsaved.add(id);
    if (outcome !== "kept" || this.#unsaved.size === 0) this.#list.warn(WARNINGS[outcome]);
  }

  #running() {
    return [...this.#chats.values()].filter(({ conversation }) => conversation?.isRunning);
  }

  #saveRunning() {
    for (const chat of this.#running()) this.#save(chat);
  }

  #rename(id, title) {
    const chat = this.#chats.get(id);
    chat.isNamed = title !== "";
    chat.title = title || titleFrom(chat.exchanges);
    this.#write(chat);
    this.#draw();
  }

  #remove(id) {
    const chat = this.#drop(id);
    forgetChat(id);
    this.#saveAgain();
    this.#list.offer(`Deleted “${chat.title}”`, "Undo", () => {
      this.#chats.set(id, chat);
      this.#write(chat);
      this.#draw();
    });
    this.#draw();
  }

  // There may be room now for what there was none for.
  #saveAgain() {
    for (const id of [...this.#unsaved]) this.#write(this.#chats.get(id));
  }

  #drop(id) {
    const chat = this.#chats.get(id);
    if (chat.conversation) {
      chat.conversation.stop();
      chat.exchanges = chat.conversation.exchanges;
      chat.conversation.node.remove();
      chat.conversation = null;
    }
    this.#chats.delete(id);
    this.#unsaved.delete(id);
    if (chat === this.#current) {
      this.#current = null;
      this.#start();
    }
    return chat;
  }

  // Another tab has changed or deleted a chat. One that is being answered here goes on, and is saved when it ends.
  #takeOver(id) {
    for (const other of id === null ? [...this.#chats.keys()] : [id]) {
      if (this.#chats.get(other)?.conversation?.isRunning) continue;
      const wasShown = this.#current.id === other;
      if (this.#chats.has(other)) this.#drop(other);
      const kept = readChats().find((chat) => chat.id === other);
      if (kept) this.#chats.set(other, kept);
      if (kept && wasShown) this.#open(other);
    }
    this.#draw();
  }

  #draw() {
    const chats = [...this.#chats.values()].sort((a, b) => b.changedAt - a.changedAt);
    this.#list.show(chats.map(({ id, title, exchanges, changedAt, conversation }) => (
      { id, title: title || titleFrom(exchanges), changedAt, isRunning: conversation?.isRunning ?? false })), this.#current?.id);
  }
}

function titleFrom(exchanges) {
  const text = (exchanges[0]?.prompt ?? "Untitled").trim().replace(/\s+/g, " ");
  return text.length > MOST_TITLE ? `${text.slice(0, MOST_TITLE - 1).trimEnd()}…` : text;
}
