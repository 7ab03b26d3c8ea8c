// The page: puts its parts together.
import { getJson } from "./api.js";
import { Chats } from "./chats.js";
import { Conversation } from "./conversation.js";
import { setUpCodeCopying } from "./copy.js";
import { byId, setText } from "./dom.js";
import { startWatching, watchClosely } from "./engine.js";
import { setUpEngineView } from "./engine_view.js";
import { setUpFigures } from "./figures.js";
import { followEnd } from "./follow.js";
import { setUpKey } from "./key.js";
import { setUpKeyboard } from "./keyboard.js";
import { chooseModel, chosenModel, furtherModel, loadModels, setUpModels } from "./models.js";
import { makeRoving } from "./roving.js";
import { setUpSettings, toggleSettings } from "./settings.js";
import { keep, recall } from "./storage.js";
import { startStreams, stopStreams, streamsAreRunning } from "./streams.js";
import { isDark, toggleTheme, whenThemeChanges } from "./theme.js";
import { setUpTokenCard } from "./tokens.js";

const WIDE_PX = 1280;  // where the list of chats has room beside the rest
const PROMPTS = { chat: ["Message", "Write a message"], completion: ["Prompt", "Write the beginning of a text"] };
const prompt = byId("prompt");
const drafts = { chat: "", completion: "" };
let mode = "chat";

const scrollToEnd = followEnd(document.querySelector(".playground .scroll"));
const page = { model: chosenModel, chooseModel, write, scrollToEnd, startChat: () => chats.start() };
const completions = new Conversation("completion", byId("completion"), { ...page, onChange: showState });
const chats = new Chats({ ...page, onShow: showChat, onChange: (conversation) => {
  chats.changed(conversation);
  showState();
} }, openChat);
const current = () => ({ chat: chats.current, completion: completions })[mode];

function showState() {
  const isRunning = current()?.isRunning ?? false;
  const [send, stop] = [byId("send"), byId("stop-answer")];
  const focused = document.activeElement;
  send.hidden = isRunning;
  stop.hidden = !isRunning;
  if (isRunning && focused === send) stop.focus();
  if (!isRunning && focused === stop) send.focus();
  byId("clear").hidden = current()?.isEmpty ?? true;
  byId("clear").dataset.mode = mode;
  setText(byId("clear"), mode === "chat" ? "New chat" : "Clear");
  byId("chat").querySelector(".empty").hidden = !chats.current.isEmpty;
  byId("completion").querySelector(".empty").hidden = !completions.isEmpty;
}

function setMode(next) {
  if (mode in drafts) drafts[mode] = prompt.value;
  mode = next;
  for (const tab of document.querySelectorAll("[role=tab]")) {
    const isCurrent = tab.id === `tab-${mode}`;
    tab.setAttribute("aria-selected", String(isCurrent));
    tab.tabIndex = isCurrent ? 0 : -1;
    byId(tab.getAttribute("aria-controls")).hidden = !isCurrent;
  }
  byId("composer").hidden = mode === "streams";
  byId("system-field").hidden = mode !== "chat";
  byId("tools-field").hidden = mode !== "chat";
  if (mode in PROMPTS) {
    const [label, placeholder] = PROMPTS[mode];
    setText(byId("prompt-label"), label);
    prompt.placeholder = placeholder;
    prompt.value = drafts[mode];
  }
  showState();
}

function setView(view) {
  if (document.body.dataset.view === view) return;
  document.body.dataset.view = view;
  scrollTo(0, 0);
  for (const other of document.querySelectorAll(".views button")) {
    if (other.dataset.view === view) other.setAttribute("aria-current", "true");
    else other.removeAttribute("aria-current");
  }
}

function openChat() {
  setView("playground");
  setMode("chat");
  prompt.focus();
}

function showChat() {
  if (mode === "chat") showState();
  scrollToEnd();
}

function showChatList(isShown) {
  document.body.classList.toggle("has-chats", isShown);
  byId("open-chats").setAttribute("aria-expanded", String(isShown));
}

// On a phone the engine has a view of its own.
function showEngine(isShown) {
  document.body.classList.toggle("no-engine", !isShown);
  const toggle = byId("toggle-engine");
  toggle.setAttribute("aria-expanded", String(isShown));
  setText(toggle, isShown ? "Hide engine" : "Show engine");
}

function setUpEngineToggle() {
  showEngine(recall("engine") !== "hidden");
  byId("toggle-engine").addEventListener("click", () => {
    const isHidden = !document.body.classList.contains("no-engine");
    keep("engine", isHidden ? "hidden" : null);
    showEngine(!isHidden);
  });
}

function goToEngine() {
  setView("engine");
  keep("engine", null);
  showEngine(true);
  byId("batch").focus();
}

function setUpChatList() {
  const kept = recall("chat-list");
  showChatList(kept === null ? innerWidth >= WIDE_PX : kept === "shown");
  byId("open-chats").addEventListener("click", () => {
    const isShown = !document.body.classList.contains("has-chats");
    keep("chat-list", isShown ? "shown" : "hidden");
    showChatList(isShown);
  });
}

function write(text) {
  setView("playground");
  prompt.value = text;
  prompt.focus();
  prompt.setSelectionRange(text.length, text.length);
}

function send() {
  if (current().send(prompt.value)) prompt.value = "";
}

function stop() {
  if (mode === "streams") stopStreams();
  else current().stop();
}

function demonstrate() {
  setMode("streams");
  if (streamsAreRunning()) stopStreams();
  else startStreams(chosenModel(), showDemonstration);
}

function showDemonstration() {
  setText(byId("streams-demo"), streamsAreRunning() ? "Stop the eight streams" : "Eight streams at once");
}

function showTheme() {
  const name = isDark() ? "Light colours" : "Dark colours";
  byId("theme").textContent = isDark() ? "☀" : "☾";
  byId("theme").title = name;
  byId("theme").setAttribute("aria-label", name);
}

async function connect() {
  try {
    const [version] = await Promise.all([getJson("/version"), loadModels()]);
    setText(byId("version"), `Paceline ${version.version}`);
  } catch {
    // The engine's state says why the server doesn't answer; this runs again when it does.
  }
}

function setUpComposer() {
  byId("composer").addEventListener("submit", (event) => {
    event.preventDefault();
    send();
  });
  prompt.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    send();
  });
  // The second click of a double click on "Send" isn't meant for "Stop".
  byId("stop-answer").addEventListener("click", (event) => { if (event.detail < 2) stop(); });
  prompt.addEventListener("keydown", (event) => {
    if (event.key !== "ArrowUp" || prompt.value !== "" || current().isEmpty) return;
    event.preventDefault();
    current().editLast();
  });
  byId("clear").addEventListener("click", () => {
    if (mode === "chat") return chats.start();
    completions.clear();
    return prompt.focus();
  });
  byId("new-chat").addEventListener("click", () => chats.start());
  for (const example of document.querySelectorAll(".examples button")) {
    example.addEventListener("click", () => {
      write(example.textContent);
      send();
    });
  }
}

function setUpTabs() {
  const tabs = document.querySelector("[role=tablist]");
  const open = (tab) => setMode(tab.id.replace("tab-", ""));
  makeRoving(tabs, "[role=tab]", open);
  tabs.addEventListener("click", (event) => { if (event.target.matches("[role=tab]")) open(event.target); });
  for (const view of document.querySelectorAll(".views button")) {
    view.addEventListener("click", () => setView(view.dataset.view));
  }
}

function goToChatList() {
  setView("chats");
  showChatList(true);
  (document.querySelector('#chat-list [tabindex="0"]') ?? byId("new-chat")).focus();
}

const show = (next) => () => {
  setMode(next);
  byId(`tab-${next}`).focus();
};

setUpTabs();
setUpChatList();
setUpEngineToggle();
setUpFigures();
setUpCodeCopying();
setUpComposer();
setUpTokenCard();
setUpSettings((isTinted) => document.body.classList.toggle("is-tinted", isTinted));
setUpKey(watchClosely);
setUpModels(() => chats.modelChanged());
// Adapters come and go while the server runs.
addEventListener("focus", () => loadModels().catch(() => {}));
setUpEngineView(connect);
setUpKeyboard([
  { key: "/", does: "write", run: () => write(prompt.value) },
  { key: "n", does: "new chat", run: () => chats.start() },
  { key: "r", does: "regenerate the last answer", run: () => current()?.regenerateLast() },
  { key: "c", does: "copy the last answer", run: () => current()?.copyLast() },
  { key: "l", does: "go to the list of chats", run: goToChatList },
  { key: "s", does: "open or close the settings", run: toggleSettings },
  { key: "1", does: "chat", run: show("chat") },
  { key: "2", does: "completion", run: show("completion") },
  { key: "3", does: "eight streams", run: show("streams") },
  { key: "8", does: "start or stop eight streams", run: demonstrate },
  { key: "e", does: "go to the engine", run: goToEngine },
  { key: "t", does: "light or dark", run: toggleTheme },
], stop);
byId("streams-demo").addEventListener("click", demonstrate);
byId("streams-start").addEventListener("click", demonstrate);
byId("streams-stop").addEventListener("click", (event) => { if (event.detail < 2) stopStreams(); });
byId("theme").addEventListener("click", toggleTheme);
whenThemeChanges(showTheme);
showTheme();
chats.resume();
setMode("chat");
startWatching(furtherModel);
