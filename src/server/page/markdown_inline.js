// Markdown inside a block: text to strings and elements { tag, properties, children }, in time linear in its length.
// HTML stays text; links lead to http, https and mailto only; images become links, so nothing is loaded.

const SCHEMES = new Set(["http:", "https:", "mailto:"]);
const MOST_NESTING = 16;  // of elements
const MOST_OPEN = 128;  // delimiters without an end at one place; further ones are text
const MOST_DESTINATION = 2048;  // characters of a link's address
const PLAIN = /[^\\`*_~[\]!<&hH]+/y;
const ESCAPED = /\\([!-/:-@[-`{-~])/y;
const AUTOLINK = /<([a-z][a-z0-9+.-]{1,31}:[^\s<>]{1,2048})>/iy;
const BARE_LINK = /https?:\/\/[^\s<>"`|\\^{}]{1,2048}/iy;
const LINE_BREAK = /<br ?\/?>/iy;
const ENTITY = /&(?:#(\d{1,7})|#x([0-9a-f]{1,6})|(amp|lt|gt|quot|apos|nbsp));/iy;
const NAMED = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'", nbsp: "\u00a0" };
const TITLE = /\s+(?:"[^"\n]{0,512}"|'[^'\n]{0,512}'|\([^()\n]{0,512}\))/y;
const isSpace = (char) => char === "" || /\s/.test(char);
const isPunctuation = (char) => /[\p{P}\p{S}]/u.test(char);

/** The inline content of a block; `isOpen` means that the text still grows: what has begun is shown as if it had ended. */
export function inline(text, isOpen) {
  return new Inline(isOpen ? withoutLastDelimiters(text) : text, isOpen).parse();
}

// A delimiter at the end may open, close or grow: it is shown once that is known.
function withoutLastDelimiters(text) {
  let end = text.length;
  while (end > 0 && "*_~`".includes(text[end - 1])) end -= 1;
  return text.slice(0, end);
}

class Inline {
  #text;
  #isOpen;
  #at = 0;
  // Each open delimiter with the content that follows it; the first is the block itself.
  #frames = [{ kind: "", literal: "", children: [] }];
  #runsWithoutEnd = new Set();  // lengths of runs of backticks that no later run of that length ends

  constructor(text, isOpen) {
    this.#text = text;
    this.#isOpen = isOpen;
  }

  parse() {
    while (this.#at < this.#text.length) {
      const char = this.#text[this.#at];
      const isTaken = this.#plain() || (char === "\\" && this.#escape()) || (char === "`" && this.#code())
        || ("*_~".includes(char) && this.#delimiters(char)) || ((char === "[" || char === "!") && this.#bracket())
        || (char === "]" && this.#link()) || (char === "<" && this.#angle()) || (char === "&" && this.#entity())
        || ("hH".includes(char) && this.#bareLink());
      if (!isTaken) this.#push(this.#text[this.#at++]);
    }
    while (this.#frames.length > 1) this.#endOpenFrame();
    return this.#frames[0].children;
  }

  #match(pattern) {
    pattern.lastIndex = this.#at;
    return pattern.exec(this.#text);
  }

  #push(node, children = this.#frames.at(-1).children) {
    const last = children.length - 1;
    if (typeof node === "string" && typeof children[last] === "string") children[last] += node;
    else if (node !== "") children.push(node);
  }

  #plain() {
    const match = this.#match(PLAIN);
    if (!match) return false;
    this.#push(match[0]);
    this.#at += match[0].length;
    return true;
  }

  #escape() {
    const match = this.#match(ESCAPED);
    if (!match) {
      if (this.#text[this.#at + 1] !== "\n") return false;
      this.#at += 1;  // the line's end follows, and line ends are shown
      return true;
    }
    this.#push(match[1]);
    this.#at += 2;
    return true;
  }

  #entity() {
    const match = this.#match(ENTITY);
    if (!match) return false;
    const [whole, decimal, hexadecimal, name] = match;
    const code = name ? 0 : parseInt(decimal ?? hexadecimal, decimal ? 10 : 16);
    const isCharacter = code > 0 && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
    this.#push(name ? NAMED[name.toLowerCase()] : isCharacter ? String.fromCodePoint(code) : "\ufffd");
    this.#at += whole.length;
    return true;
  }

  #runLength(char) {
    let end = this.#at;
    while (this.#text[end] === char) end += 1;
    return end - this.#at;
  }

  #code() {
    const length = this.#runLength("`");
    const begin = this.#at + length;
    let end = this.#runsWithoutEnd.has(length) ? -1 : this.#endOfCode(begin, length);
    if (end < 0) {
      this.#runsWithoutEnd.add(length);
      if (!this.#isOpen) {
        this.#push("`".repeat(length));
        this.#at = begin;
        return true;
      }
      end = this.#text.length;
    }
    let code = this.#text.slice(begin, end).replaceAll("\n", " ");
    if (code.startsWith(" ") && code.endsWith(" ") && code.trim() !== "") code = code.slice(1, -1);
    if (code !== "") this.#push({ tag: "code", properties: {}, children: [code], depth: 1 });
    this.#at = Math.min(end + length, this.#text.length);
    return true;
  }

  #endOfCode(from, length) {
    for (let at = this.#text.indexOf("`", from); at >= 0; at = this.#text.indexOf("`", at)) {
      let end = at;
      while (this.#text[end] === "`") end += 1;
      if (end - at === length) return at;
      at = end;
    }
    return -1;
  }

  #delimiters(char) {
    const run = this.#runLength(char);
    const before = lastCharacter(this.#text, this.#at);
    const after = firstCharacter(this.#text, this.#at + run);
    const opensLeft = !isSpace(after) && (!isPunctuation(after) || isSpace(before) || isPunctuation(before));
    const closesRight = !isSpace(before) && (!isPunctuation(before) || isSpace(after) || isPunctuation(after));
    const isWordInside = char === "_" && opensLeft && closesRight;
    const canOpen = opensLeft && (!isWordInside || isPunctuation(before)) && this.#frames.length < MOST_OPEN;
    const canClose = closesRight && (!isWordInside || isPunctuation(after));
    this.#at += run;
    if (char === "~" && run !== 2) {
      this.#push("~".repeat(run));
      return true;
    }
    const left = canClose ? this.#close({ char, run, canOpen }) : run;
    if (left > 0 && canOpen) this.#frames.push({ kind: char, literal: char.repeat(left), run, canClose, children: [] });
    else this.#push(char.repeat(left));
    return true;
  }

  // Ends what a run of delimiters ends; returns how many of them are left.
  #close({ char, run, canOpen }) {
    let left = run;
    while (left > 0) {
      const index = this.#openerOf({ char, run, canOpen });
      if (index < 0) break;
      while (this.#frames.length - 1 > index) this.#flatten();
      const frame = this.#frames[index];
      const used = char === "~" || (left > 1 && frame.literal.length > 1) ? 2 : 1;
      if (!this.#wrap(frame, char === "~" ? "del" : used === 2 ? "strong" : "em", used)) break;
      left -= used;
    }
    return left;
  }

  #openerOf({ char, run, canOpen }) {
    for (let i = this.#frames.length - 1; i > 0; i--) {
      const frame = this.#frames[i];
      if (frame.kind === "[" || frame.kind === "![") return -1;  // emphasis doesn't cross the beginning of a link
      if (frame.kind !== char) continue;
      const isAmbiguous = (frame.canClose || canOpen) && (frame.run + run) % 3 === 0 && (frame.run % 3 || run % 3);
      if (!isAmbiguous) return i;
    }
    return -1;
  }

  // Puts the last frame's content into an element, which `used` of its delimiters began.
  #wrap(frame, tag, used) {
    const depth = 1 + depthOf(frame.children);
    if (depth > MOST_NESTING) return false;
    const node = { tag, properties: {}, children: frame.children, depth };
    frame.literal = frame.literal.slice(used);
    frame.children = [node];
    if (frame.literal === "") {
      this.#frames.pop();
      this.#push(node);
    }
    return true;
  }

  // The last frame becomes text of the one before.
  #flatten() {
    const { literal, children } = this.#frames.pop();
    this.#push(literal);
    for (const child of children) this.#push(child);
  }

  #endOpenFrame() {
    const frame = this.#frames.at(-1);
    const isEmphasis = frame.kind !== "" && "*_~".includes(frame.kind);
    if (!this.#isOpen || !isEmphasis) return this.#flatten();
    if (frame.children.length === 0) return this.#frames.pop();
    const used = Math.min(frame.literal.length, 2);
    if (!this.#wrap(frame, frame.kind === "~" ? "del" : used === 2 ? "strong" : "em", used)) this.#flatten();
    return undefined;
  }

  #bracket() {
    const literal = this.#text.startsWith("![", this.#at) ? "![" : "[";
    if (!this.#text.startsWith(literal, this.#at) || this.#frames.length >= MOST_OPEN) return false;
    this.#frames.push({ kind: literal, literal, children: [] });
    this.#at += literal.length;
    return true;
  }

  #link() {
    const index = this.#frames.findLastIndex(({ kind }) => kind === "[" || kind === "![");
    if (index < 0) return false;
    const frame = this.#frames[index];
    const target = this.#target(this.#at + 1);
    const href = target && safe(target.address);
    const isUnfinished = target?.end === null;
    if (!isUnfinished && (!href || depthOf(frame.children) >= MOST_NESTING)) {
      frame.kind = "text";
      return false;
    }
    while (this.#frames.length - 1 > index) this.#flatten();
    this.#frames.pop();
    if (isUnfinished) {
      for (const child of frame.children) this.#push(child);
      this.#at = this.#text.length;
      return true;
    }
    this.#push(link(href, frame.kind === "![" ? ["Image: ", ...frame.children] : frame.children));
    if (frame.kind === "[") {
      for (const outer of this.#frames) if (outer.kind === "[") outer.kind = "text";  // a link holds no link
    }
    this.#at = target.end;
    return true;
  }

  // "(address "title")" from there on: { address, end }, or null; `end` is null where the text ends too early.
  #target(from) {
    const text = this.#text;
    if (text[from] !== "(") return null;
    let at = from + 1;
    while (isSpace(text[at] ?? "x")) at += 1;
    const begin = text[at] === "<" ? at + 1 : at;
    const end = begin > at ? text.slice(begin, begin + MOST_DESTINATION).search(/[<>\n]/) + begin : endOfAddress(text, begin);
    if (end < begin) return null;
    if (end >= text.length) return this.#isOpen ? { address: "", end: null } : null;
    at = begin > at ? end + 1 : end;
    TITLE.lastIndex = at;
    const title = TITLE.exec(text);
    if (title) at += title[0].length;
    while (text[at] === " " || text[at] === "\n") at += 1;
    if (at >= text.length && this.#isOpen) return { address: "", end: null };
    return text[at] === ")" ? { address: text.slice(begin, end), end: at + 1 } : null;
  }

  #angle() {
    const lineBreak = this.#match(LINE_BREAK);
    if (lineBreak) {
      this.#push("\n");
      this.#at += lineBreak[0].length;
      return true;
    }
    const match = this.#match(AUTOLINK);
    const href = match && safe(match[1]);
    if (!href) return false;
    this.#push(link(href, [match[1]]));
    this.#at += match[0].length;
    return true;
  }

  #bareLink() {
    const match = this.#match(BARE_LINK);
    const isInWord = /[\p{L}\p{N}]/u.test(lastCharacter(this.#text, this.#at));
    if (!match || isInWord || this.#frames.some(({ kind }) => kind === "[")) return false;
    const address = withoutPunctuation(match[0]);
    const href = safe(address);
    const mayGrow = this.#isOpen && this.#at + address.length === this.#text.length;
    if (!href) return false;
    this.#push(mayGrow ? address : link(href, [address]));
    this.#at += address.length;
    return true;
  }
}

const depthOf = (nodes) => nodes.reduce((most, node) => Math.max(most, node.depth ?? 0), 0);

function link(href, children) {
  const properties = { href, title: href, target: "_blank", rel: "noopener noreferrer nofollow" };
  return { tag: "a", properties, children, depth: 1 + depthOf(children) };
}

// The address as the browser would follow it, or null where its scheme isn't one of ours.
function safe(address) {
  let url = null;
  try {
    url = new URL(address);
  } catch {
    return null;
  }
  return SCHEMES.has(url.protocol) ? url.href : null;
}

// Up to a space or the parenthesis that closes more than were opened.
function endOfAddress(text, begin) {
  let depth = 0;
  const most = Math.min(text.length, begin + MOST_DESTINATION);
  for (let at = begin; at < most; at++) {
    if (/[\s<]/.test(text[at])) return at;
    if (text[at] === "(") depth += 1;
    if (text[at] === ")") depth -= 1;
    if (depth < 0) return at;
  }
  return most === text.length ? most : -1;
}

// A sentence's punctuation after an address isn't part of it, nor is a parenthesis around it.
function withoutPunctuation(address) {
  let end = address.length;
  let unopened = address.split(")").length - address.split("(").length;
  for (; end > 0; end--) {
    const isParenthesis = address[end - 1] === ")" && unopened > 0;
    if (!isParenthesis && !/[?!.,:;*_~'\]]/.test(address[end - 1])) break;
    if (isParenthesis) unopened -= 1;
  }
  return address.slice(0, end);
}

const firstCharacter = (text, at) => (at < text.length ? String.fromCodePoint(text.codePointAt(at)) : "");

function lastCharacter(text, end) {
  if (end === 0) return "";
  const isPair = end > 1 && /[\udc00-\udfff]/.test(text[end - 1]) && /[\ud800-\udbff]/.test(text[end - 2]);
  return text.slice(end - (isPair ? 2 : 1), end);
}
