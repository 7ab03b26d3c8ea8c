// The page: puts its parts together.
import { getJson } from "./api.js";
import { Conversation } from "./conversation.js";
import { byId, element, setText } from "./dom.js";
import { startWatching, watchClosely } from "./engine.js";
import { setUpEngineView } from "./engine_view.js";
import { followEnd } from "./follow.js";
import { setUpKey } from "./key.js";
import { setUpKeyboard } from "./keyboard.js";
import { makeRoving } from "./roving.js";
import { setUpSettings, toggleSettings } from "./settings.js";
import { startStreams, stopStreams, streamsAreRunning } from "./streams.js";
import { isDark, toggleTheme, whenThemeChanges } from "./theme.js";
import { setUpTokenCard } from "./tokens.js";

const PROMPTS = { chat: ["Message", "Write a message"], completion: ["Prompt", "Write the beginning of a text"] };
const prompt = byId("prompt");
const model = () => byId("model").value;
const drafts = { chat: "", completion: "" };
let mode = "chat";

const page = { model, write, onChange: showState, scroll: followEnd(document.querySelector(".playground .scroll")) };
const conversations = {
  chat: new Conversation("chat", byId("chat"), page),
  completion: new Conversation("completion", byId("completion"), page),
};
const current = () => conversations[mode];

function showState() {
  const isRunning = current()?.isRunning ?? false;
  const [send, stop] = [byId("send"), byId("stop-answer")];
  const focused = document.activeElement;
  send.hidden = isRunning;
  stop.hidden = !isRunning;
  if (isRunning && focused === send) stop.focus();
  if (!isRunning && focused === stop) send.focus();
  byId("clear").hidden = current()?.isEmpty ?? true;
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
  else startStreams(model(), showDemonstration);
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

async function loadModels() {
  try {
    const [models, version] = await Promise.all([getJson("/v1/models"), getJson("/version")]);
    const chosen = model();
    byId("model").replaceChildren(...models.data.map(({ id }) => element("option", { value: id }, id)));
    if (models.data.some(({ id }) => id === chosen)) byId("model").value = chosen;
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
  byId("clear").addEventListener("click", () => {
    current().clear();
    prompt.focus();
  });
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

const show = (next) => () => {
  setMode(next);
  byId(`tab-${next}`).focus();
};

setUpTabs();
setUpComposer();
setUpTokenCard();
setUpSettings((isTinted) => document.body.classList.toggle("is-tinted", isTinted));
setUpKey(watchClosely);
setUpEngineView(loadModels);
setUpKeyboard([
  { key: "/", does: "write", run: () => write(prompt.value) },
  { key: "r", does: "regenerate the last answer", run: () => current()?.regenerateLast() },
  { key: "c", does: "copy the last answer", run: () => current()?.copyLast() },
  { key: "s", does: "open or close the settings", run: toggleSettings },
  { key: "1", does: "chat", run: show("chat") },
  { key: "2", does: "completion", run: show("completion") },
  { key: "3", does: "eight streams", run: show("streams") },
  { key: "8", does: "start or stop eight streams", run: demonstrate },
  { key: "e", does: "go to the engine", run: () => { setView("engine"); byId("batch").focus(); } },
  { key: "t", does: "light or dark", run: toggleTheme },
], stop);
byId("streams-demo").addEventListener("click", demonstrate);
byId("streams-start").addEventListener("click", demonstrate);
byId("streams-stop").addEventListener("click", (event) => { if (event.detail < 2) stopStreams(); });
byId("theme").addEventListener("click", toggleTheme);
whenThemeChanges(showTheme);
showTheme();
setMode("chat");
startWatching();
