// Text that grows, shown as Markdown: blocks that have ended are drawn once, only the last one is drawn again.
import { element } from "./dom.js";
import { blocks } from "./markdown_blocks.js";

// Drawing takes at most one part in this many of the time, however long the last block becomes.
const PAUSE_PER_WORK = 4;

/** A growing text; `node` shows it. */
export class MarkdownView {
  #source = "";
  #from = 0;  // where the first block begins that may still change
  #numDone = 0;  // blocks before it
  #shown = [];  // the blocks from there on, as they are drawn
  #asked = false;
  #isFinished = false;
  #notBefore = 0;

  constructor() {
    this.node = element("div", { className: "markdown" });
  }

  /** Adds a piece, which is drawn with the next frames. */
  append(piece) {
    this.#source += piece;
    this.#drawSoon();
  }

  /** Draws all of it; nothing follows. */
  finish() {
    this.#isFinished = true;
    this.#draw(false);
  }

  #drawSoon() {
    if (this.#asked) return;
    this.#asked = true;
    const draw = () => {
      if (this.#isFinished) return;
      if (performance.now() < this.#notBefore) {
        requestAnimationFrame(draw);
        return;
      }
      this.#asked = false;
      const begin = performance.now();
      this.#draw(true);
      const end = performance.now();
      this.#notBefore = end + PAUSE_PER_WORK * (end - begin);
    };
    requestAnimationFrame(draw);
  }

  #draw(isOpen) {
    const lines = this.#source.slice(this.#from).split("\n");
    const now = blocks(lines.map((line) => (line.endsWith("\r") ? line.slice(0, -1) : line)), isOpen);
    patchChildren(this.node, this.#numDone, this.#shown, now);
    // A block has ended as soon as another has begun in a line that can't change any more.
    const last = now.findLastIndex(({ line }) => line < lines.length - 1);
    if (last > 0) {
      for (let i = 0; i < now[last].line; i++) this.#from += lines[i].length + 1;
      this.#numDone += last;
      now.splice(0, last);
    }
    this.#shown = now;
  }
}

// Makes the children from `first` on, drawn from `before`, those of `after`; what is the same stays untouched.
function patchChildren(parent, first, before, after) {
  after.forEach((node, i) => {
    const drawn = parent.childNodes[first + i];
    if (i >= before.length) parent.append(drawing(node));
    else if (!patch(drawn, before[i], node)) drawn.replaceWith(drawing(node));
  });
  while (parent.childNodes.length > first + after.length) parent.lastChild.remove();
}

function patch(drawn, before, after) {
  if (typeof before === "string" || typeof after === "string") {
    if (typeof before !== typeof after) return false;
    if (after === before) return true;
    if (after.startsWith(before)) drawn.appendData(after.slice(before.length));
    else drawn.data = after;
    return true;
  }
  const names = Object.keys(after.properties);
  if (before.tag !== after.tag || names.length !== Object.keys(before.properties).length
    || names.some((name) => before.properties[name] !== after.properties[name])) return false;
  patchChildren(drawn, 0, before.children, after.children);
  return true;
}

function drawing(node) {
  if (typeof node === "string") return new Text(node);
  return element(node.tag, node.properties, ...node.children.map(drawing));
}
