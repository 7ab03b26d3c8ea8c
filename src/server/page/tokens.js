// An answer token by token: coloured by probability, each with a card of its alternatives.
import { byId, element } from "./dom.js";
import { percent, visible } from "./format.js";
import { levelOf } from "./logprobs.js";
import { makeRoving } from "./roving.js";

const tokenOfNode = new WeakMap();
const LEVELS = ["< 5 %", "5–20 %", "20–50 %", "50–90 %", "≥ 90 %"];

/** The tokens of one answer as a list that the arrow keys walk through. */
export class TokenList {
  #decoder = new TextDecoder();

  constructor() {
    this.node = element("span", {
      className: "tokens", role: "listbox", "aria-orientation": "horizontal",
      "aria-label": "Tokens of the answer; the arrow keys show each one's alternatives",
    });
    makeRoving(this.node, ".token");
  }

  append(tokens) {
    for (const token of tokens) {
      const text = this.#decoder.decode(token.bytes, { stream: true });
      const span = element("span", {
        className: "token", role: "option", tabIndex: this.node.firstChild ? -1 : 0,
      }, ...colored(text, levelOf(Math.exp(token.logprob ?? 0))));
      if (text === "") span.classList.add("partial");
      if (text.trim() === "") span.setAttribute("aria-label", text === "" ? "part of a character" : "white space");
      tokenOfNode.set(span, { ...token, text });
      this.node.append(span);
    }
  }

  /** Marks the tokens that the answer's text doesn't have: an end token, or what a stop string cut off. */
  finish(text) {
    let at = 0;
    for (const span of this.node.children) {
      const piece = span.textContent;
      if (text.startsWith(piece, at)) at += piece.length;
      else span.classList.add("outside");
    }
  }
}

// The space before a word stays without colour.
function colored(text, level) {
  const [, space, rest] = /^( ?)(.*)$/s.exec(text);
  const hasWord = space !== "" && rest !== "";
  return [...(hasWord ? [space] : []), element("span", { className: `word p${level}` }, hasWord ? rest : text)];
}

/** What the colours of the tokens mean. */
export function tokenLegend() {
  const keys = LEVELS.map((range, level) => element("li", {}, element("span", { className: `word p${level}` }, range)));
  return element("ul", { className: "legend token-legend", "aria-label": "Probability of a token" }, ...keys);
}

/** Shows the card of a token while it is pointed at or has the focus. */
export function setUpTokenCard() {
  const card = byId("token-card");
  const hide = () => { card.hidden = true; };
  const showFor = (span) => {
    if (span) show(card, span);
    else hide();
  };
  // The keyboard's token keeps its card where the page moves under a pointer that rests: a focus may scroll.
  const kept = () => {
    const span = card.hidden ? null : document.activeElement?.closest(".token:focus-visible");
    return span && isInSight(span) ? span : null;
  };
  document.addEventListener("pointerover", (event) => showFor(event.target.closest?.(".token") ?? kept()));
  document.addEventListener("focusin", (event) => showFor(event.target.closest?.(".token")));
  document.addEventListener("focusout", hide);
  document.addEventListener("scroll", () => showFor(kept()), { capture: true, passive: true });
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") hide(); });
}

function isInSight(node) {
  const { top, bottom } = node.getBoundingClientRect();
  return bottom > 0 && top < innerHeight;
}

function show(card, span) {
  const token = tokenOfNode.get(span);
  span.setAttribute("aria-describedby", card.id);
  const isKnown = token.logprob != null;  // the first token of a prompt has none
  card.replaceChildren(
    element("p", { className: "chosen" }, element("code", {}, visible(token.text)),
      isKnown ? ` ${percent(Math.exp(token.logprob))}` : " no probability"),
    element("p", { className: "muted" },
      isKnown ? `log-probability ${token.logprob.toFixed(3).replace("-", "−")}` : ""),
    alternatives(token));
  card.hidden = false;
  place(card, span.getClientRects()[0] ?? span.getBoundingClientRect());
}

function alternatives(token) {
  if (token.alternatives.length === 0) {
    return element("p", { className: "muted" }, "No alternatives were asked for.");
  }
  const rows = token.alternatives.map(({ text, logprob }) => {
    const share = Math.exp(logprob);
    const bar = element("span", { className: "share" });
    bar.style.width = `${100 * share}%`;
    const isChosen = text === token.name && logprob === token.logprob;
    return element("tr", { className: isChosen ? "is-chosen" : "" },
      element("td", {}, element("code", {}, visible(text))),
      element("td", { className: "shares" }, bar),
      element("td", { className: "number" }, percent(share)));
  });
  return element("table", {}, element("tbody", {}, ...rows));
}

// Below the token, or above it where there is no room; always inside the window.
function place(card, at) {
  const { width, height } = card.getBoundingClientRect();
  const room = 8;
  const below = at.bottom + room + height <= innerHeight;
  card.style.left = `${Math.max(room, Math.min(at.left, innerWidth - width - room))}px`;
  card.style.top = `${below ? at.bottom + 4 : Math.max(room, at.top - height - 4)}px`;
}
