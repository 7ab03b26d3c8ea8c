// Text that came from accepted drafts, in another shade while the answer grows.

const NAME = "drafted";
const TAIL = 800;  // characters at the end of the answer that are shaded
const SLACK = 12;  // characters of markup that the shown text may lack at a piece

const highlight = globalThis.Highlight && CSS.highlights ? new Highlight() : null;
if (highlight) CSS.highlights.set(NAME, highlight);

/** Shades the end of the text that `node` shows. */
export class DraftedText {
  #node;
  #pieces = [];  // of the tail, { text, accepted }
  #length = 0;  // of them
  #ranges = [];
  #asked = false;

  constructor(node) {
    this.#node = node;
  }

  /** Adds the pieces of the text that came last. */
  add(pieces) {
    for (const piece of pieces) {
      this.#pieces.push(piece);
      this.#length += piece.text.length;
    }
    while (this.#length - this.#pieces[0].text.length > TAIL) this.#length -= this.#pieces.shift().text.length;
    this.#drawSoon();
  }

  /** Leaves the text without shades; nothing follows. */
  clear() {
    this.#pieces = [];
    this.#draw();
  }

  // After the frame in which the text itself is drawn.
  #drawSoon() {
    if (this.#asked || !highlight) return;
    this.#asked = true;
    requestAnimationFrame(() => setTimeout(() => {
      this.#asked = false;
      this.#draw();
    }));
  }

  #draw() {
    for (const range of this.#ranges) highlight?.delete(range);
    this.#ranges = [];
    if (this.#pieces.length === 0) return;
    const texts = textNodes(this.#node);
    const shown = texts.map(({ data }) => data).join("");
    for (const [begin, end] of acceptedSpans(shown, this.#pieces)) {
      const range = rangeOf(texts, begin, end);
      this.#ranges.push(range);
      highlight.add(range);
    }
  }
}

// Finds the pieces from the end of the shown text backwards; what isn't shown as it was written has no shade.
function acceptedSpans(shown, pieces) {
  const spans = [];
  let end = shown.length;
  for (const { text, accepted } of pieces.toReversed()) {
    const word = text.trim();
    if (word === "") continue;
    const at = shown.lastIndexOf(word, end - word.length);
    if (at < 0 || at < end - word.length - SLACK) continue;
    if (accepted) spans.push([at, at + word.length]);
    end = at;
  }
  return spans;
}

function textNodes(node) {
  const walker = document.createTreeWalker(node, NodeFilter.SHOW_TEXT);
  const nodes = [];
  while (walker.nextNode()) nodes.push(walker.currentNode);
  return nodes;
}

function rangeOf(texts, begin, end) {
  const range = new Range();
  let offset = 0;
  for (const text of texts) {
    const next = offset + text.length;
    if (begin >= offset && begin < next) range.setStart(text, begin - offset);
    if (end > offset && end <= next) range.setEnd(text, end - offset);
    offset = next;
  }
  return range;
}
