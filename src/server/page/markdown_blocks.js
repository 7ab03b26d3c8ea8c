// Markdown's blocks: lines to elements { tag, properties, children, line }, as CommonMark and GitHub's tables have them.
// Line ends inside a paragraph stay line ends; HTML stays text; all list items are set alike, loose or tight.
import { inline } from "./markdown_inline.js";

const MOST_DEPTH = 12;  // of quotes and lists inside each other; deeper ones are text
const MOST_COLUMNS = 64;
const FENCE = /^(`{3,}(?=[^`]*$)|~{3,})(.*)$/;
const RULE = /^(?:(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,})$/;
const HEADING = /^(#{1,6})(?:[ \t]|$)/;
const UNDERLINE = /^(?:=+|-+)[ \t]*$/;
const MARKER = /^(?:([-+*])|(\d{1,9})([.)]))(?=[ \t]|$)/;
const DELIMITER_CELL = /^[ \t]*:?-+:?[ \t]*$/;
const TASK = /^\[([ xX])\][ \t]+(?=\S)/;
const MARKERS_ONLY = /^[ \t]*(?:[-+*=_`~#>|][-+*=_`~#>|:.) \t\d[\]]*|\d{1,9}[.)]?[ \t]*)$/;
const SMALLEST_HEADING = 6, FIRST_HEADING = 3;  // the page itself has the levels above

const isBlank = (line) => line.trim() === "";

/** The blocks of these lines, each with the number of its first line; `isOpen` means that the last line still grows. */
export function blocks(lines, isOpen = false, depth = 0) {
  return new Blocks(lines, isOpen, depth).parse();
}

class Blocks {
  constructor(lines, isOpen, depth) {
    // A line of nothing but markers may become another block with its next character.
    const isUnclear = isOpen && MARKERS_ONLY.test(lines.at(-1));
    this.lines = isUnclear ? [...lines.slice(0, -1), ""] : lines;
    this.isOpen = isOpen;
    this.depth = depth;
    this.at = 0;
  }

  parse() {
    const found = [];
    while (this.at < this.lines.length) {
      if (isBlank(this.lines[this.at])) {
        this.at += 1;
        continue;
      }
      const line = this.at;
      found.push({ ...this.block(), line });
    }
    return found;
  }

  block() {
    const { indent, text } = measured(this.lines[this.at]);
    if (indent >= 4) return this.indentedCode();
    return this.fencedCode(indent, text) ?? this.heading(text) ?? this.rule(text) ?? this.quote(text)
      ?? this.list(indent, text) ?? this.table() ?? this.paragraph();
  }

  // Whether what has been read reaches the line that still grows, or the end of the one before.
  get isGrowing() {
    const numLeft = this.lines.length - this.at;
    return this.isOpen && (numLeft <= 0 || (numLeft === 1 && isBlank(this.lines.at(-1))));
  }

  indentedCode() {
    const code = [];
    while (this.at < this.lines.length && (isBlank(this.lines[this.at]) || measured(this.lines[this.at]).indent >= 4)) {
      code.push(withoutIndent(this.lines[this.at++], 4));
    }
    while (isBlank(code.at(-1))) code.pop();
    return codeBlock("", code);
  }

  fencedCode(indent, text) {
    const fence = FENCE.exec(text);
    if (!fence) return null;
    const code = [];
    this.at += 1;
    while (this.at < this.lines.length && !endsFence(this.lines[this.at], fence[1])) {
      code.push(withoutIndent(this.lines[this.at++], indent));
    }
    if (this.at < this.lines.length) this.at += 1;
    else if (code.at(-1) === "") code.pop();  // what follows the last line's end
    return codeBlock(fence[2].trim().split(/[\s,{]/)[0], code);
  }

  heading(text) {
    const marks = HEADING.exec(text)?.[1];
    if (!marks) return null;
    this.at += 1;
    const content = text.slice(marks.length).trim();
    const closing = content.length - trailing(content, "#");
    const isClosed = closing === 0 || /[ \t]/.test(content[closing - 1] ?? "");
    return this.headingOf(marks.length, isClosed ? content.slice(0, closing).trim() : content);
  }

  headingOf(level, text) {
    const tag = `h${Math.min(level + FIRST_HEADING - 1, SMALLEST_HEADING)}`;
    return { tag, properties: { className: `level-${level}` }, children: inline(text, this.isGrowing) };
  }

  rule(text) {
    if (!RULE.test(text)) return null;
    this.at += 1;
    return { tag: "hr", properties: {}, children: [] };
  }

  quote(text) {
    if (!text.startsWith(">") || this.depth >= MOST_DEPTH) return null;
    const inner = [];
    for (; this.at < this.lines.length; this.at++) {
      const line = measured(this.lines[this.at]);
      if (line.indent < 4 && line.text.startsWith(">")) inner.push(line.text.slice(1).replace(/^ /, ""));
      else if (inner.length > 0 && this.continuesParagraph(inner.at(-1))) inner.push(this.lines[this.at]);
      else break;
    }
    return { tag: "blockquote", properties: {}, children: blocks(inner, this.isGrowing, this.depth + 1) };
  }

  // Whether this line, without the marks of its container, goes on with the paragraph that `previous` ends.
  continuesParagraph(previous) {
    const line = this.lines[this.at];
    if (isBlank(line) || isBlank(previous) || this.beginsBlock()) return false;
    const { indent, text } = measured(previous);
    return indent < 4 && !FENCE.test(text) && !HEADING.test(text) && !RULE.test(text);
  }

  // Whether this line begins a block that may stand right below a paragraph.
  beginsBlock() {
    const { indent, text } = measured(this.lines[this.at]);
    if (indent >= 4) return false;
    if (FENCE.test(text) || HEADING.test(text) || RULE.test(text)) return true;
    if (this.depth >= MOST_DEPTH) return false;
    const marker = MARKER.exec(text);
    const isItem = marker && text.length > marker[0].length && (marker[1] || marker[2] === "1");
    return text.startsWith(">") || Boolean(isItem);
  }

  list(indent, text) {
    const first = MARKER.exec(text);
    if (!first || this.depth >= MOST_DEPTH) return null;
    const kind = first[1] ?? first[3];
    const items = [];
    while (this.at < this.lines.length) {
      const line = measured(this.lines[this.at]);
      const marker = line.indent < 4 ? MARKER.exec(line.text) : null;
      if (!marker || (marker[1] ?? marker[3]) !== kind || RULE.test(line.text)) break;
      items.push(this.item(line, marker[0].length));
      while (this.at < this.lines.length && isBlank(this.lines[this.at])) this.at += 1;
    }
    if (first[1]) return { tag: "ul", properties: {}, children: items };
    return { tag: "ol", properties: { start: Number(first[2]) }, children: items };
  }

  item({ indent, text }, markerLength) {
    const rest = measured(text.slice(markerLength));
    const isCode = rest.indent > 4 && rest.text !== "";
    const width = indent + markerLength + (isCode || rest.text === "" ? 1 : rest.indent);
    const inner = [isCode ? withoutIndent(text.slice(markerLength), 1) : rest.text];
    this.at += 1;
    const fences = new FenceWatch(inner[0]);
    for (; this.at < this.lines.length; this.at++) {
      const line = this.lines[this.at];
      const isInside = isBlank(line) || measured(line).indent >= width;
      if (!isInside && (fences.isOpen || !this.continuesParagraph(inner.at(-1)) || this.beginsItem(line))) break;
      if (inner.length === 1 && isBlank(inner[0]) && isBlank(line)) break;  // an empty item ends with its line
      inner.push(withoutIndent(line, width));
      fences.see(inner.at(-1));
    }
    const isGrowing = this.isGrowing;
    const task = TASK.exec(inner[0]);
    if (task) inner[0] = inner[0].slice(task[0].length);
    const children = blocks(inner, isGrowing, this.depth + 1);
    if (!task) return { tag: "li", properties: {}, children };
    return { tag: "li", properties: { className: "task" }, children: [taskMark(task[1] !== " "), ...children] };
  }

  beginsItem(line) {
    const { indent, text } = measured(line);
    return indent < 4 && MARKER.test(text);
  }

  table() {
    const header = this.lines[this.at];
    const cells = header.includes("|") ? cellsOf(header) : [];
    const delimiters = this.tableDelimiters(cells.length);
    if (!delimiters) return null;
    const alignment = delimiters.map((cell) => alignmentOf(cell.trim()));
    this.at += Math.min(2, this.lines.length - this.at);
    const row = (tag, texts, isGrowing) => ({ tag: "tr", properties: {}, children: alignment.map((className, i) => (
      { tag, properties: { className }, children: inline(texts[i] ?? "", isGrowing) })) });
    const head = row("th", cells, this.isGrowing);
    const rows = [];
    while (this.at < this.lines.length && !isBlank(this.lines[this.at]) && !this.beginsBlock()) {
      const texts = cellsOf(this.lines[this.at++]);
      rows.push(row("td", texts, this.isGrowing));
    }
    const parts = [{ tag: "thead", properties: {}, children: [head] }, { tag: "tbody", properties: {}, children: rows }];
    const table = { tag: "table", properties: {}, children: parts };
    return { tag: "div", properties: { className: "table", tabIndex: 0, role: "region", "aria-label": "Table" },
      children: [table] };
  }

  // The cells below a header. A growing text that has only begun like a table counts as one.
  tableDelimiters(numColumns) {
    if (numColumns === 0 || numColumns > MOST_COLUMNS) return null;
    const below = this.lines[this.at + 1];
    const isBeginning = this.isOpen && this.lines[this.at].trim().startsWith("|")
      && (below === undefined || (this.at + 2 >= this.lines.length && /^[ \t|:-]*$/.test(below)));
    if (isBeginning) return Array(numColumns).fill("-");
    if (below === undefined || !/[|:]/.test(below)) return null;
    const cells = cellsOf(below);
    return cells.length === numColumns && cells.every((cell) => DELIMITER_CELL.test(cell)) ? cells : null;
  }

  // Whether a table begins at this line of a paragraph; its second line must have ended to be sure.
  beginsTable() {
    const line = this.lines[this.at];
    if (!line.includes("|") || this.at + 1 >= this.lines.length - (this.isOpen ? 1 : 0)) return false;
    const cells = cellsOf(this.lines[this.at + 1]);
    return cells.length === cellsOf(line).length && /[|:]/.test(this.lines[this.at + 1])
      && cells.length <= MOST_COLUMNS && cells.every((cell) => DELIMITER_CELL.test(cell));
  }

  paragraph() {
    const text = [];
    for (; this.at < this.lines.length; this.at++) {
      const line = this.lines[this.at];
      if (isBlank(line)) break;
      const measure = measured(line);
      if (text.length > 0) {
        if (measure.indent < 4 && UNDERLINE.test(measure.text)) {
          this.at += 1;
          return this.headingOf(measure.text.startsWith("=") ? 1 : 2, text.join("\n"));
        }
        if (this.beginsBlock() || this.beginsTable()) break;
      }
      text.push(measure.text.trimEnd());
    }
    return { tag: "p", properties: {}, children: inline(text.join("\n"), this.isGrowing) };
  }
}

// Whether the lines seen so far end inside fenced code.
class FenceWatch {
  #fence = null;

  constructor(line) {
    this.see(line);
  }

  get isOpen() {
    return this.#fence !== null;
  }

  see(line) {
    if (this.#fence === null) this.#fence = FENCE.exec(measured(line).text)?.[1] ?? null;
    else if (endsFence(line, this.#fence)) this.#fence = null;
  }
}

function endsFence(line, fence) {
  const { indent, text } = measured(line);
  const length = leading(text, fence[0]);
  return indent < 4 && length >= fence.length && isBlank(text.slice(length));
}

function codeBlock(language, lines) {
  const head = { tag: "div", properties: { className: "code-head" }, children: [
    { tag: "span", properties: {}, children: language ? [language] : [] },
    { tag: "button", properties: { type: "button", className: "copy-code", title: "Copy this code" }, children: ["Copy"] }] };
  const code = { tag: "code", properties: {}, children: [lines.join("\n")] };
  const name = language ? `Code, ${language}` : "Code";
  return { tag: "div", properties: { className: "code" }, children: [head,
    { tag: "pre", properties: { tabIndex: 0, role: "region", "aria-label": name }, children: [code] }] };
}

function taskMark(isDone) {
  const properties = { className: "task-mark", role: "img", "aria-label": isDone ? "Done:" : "To do:" };
  return { tag: "span", properties, children: [isDone ? "☑" : "☐"] };
}

// A row's cells: "|" separates them, but for "\|".
function cellsOf(line) {
  const row = line.trim().replace(/^\|/, "");
  const cells = row.split(/(?<!\\)\|/);
  if (cells.length > 1 && isBlank(cells.at(-1))) cells.pop();
  return cells.map((cell) => cell.trim().replaceAll("\\|", "|"));
}

function alignmentOf(delimiter) {
  if (!delimiter.endsWith(":")) return "";
  return delimiter.startsWith(":") ? "center" : "right";
}

// A line's indentation in columns, a tab reaching to the next multiple of four, and what follows.
function measured(line) {
  let indent = 0;
  let at = 0;
  for (; line[at] === " " || line[at] === "\t"; at++) indent += line[at] === "\t" ? 4 - (indent % 4) : 1;
  return { indent, text: line.slice(at) };
}

function withoutIndent(line, columns) {
  let indent = 0;
  let at = 0;
  for (; indent < columns && (line[at] === " " || line[at] === "\t"); at++) indent += line[at] === "\t" ? 4 - (indent % 4) : 1;
  return " ".repeat(Math.max(0, indent - columns)) + line.slice(at);
}

function leading(text, char) {
  let length = 0;
  while (text[length] === char) length += 1;
  return length;
}

function trailing(text, char) {
  let length = 0;
  while (length < text.length && text[text.length - 1 - length] === char) length += 1;
  return length;
}
