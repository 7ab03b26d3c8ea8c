// The block pool as a map: a cell a block, or a cell for several where the pool is large.
import { clearedContext, drawing, makeExaminable } from "./canvas.js";
import { palette } from "./colors.js";
import { element, setText } from "./dom.js";
import { count, counted } from "./format.js";
import { highlight, highlightedSequence, whenHighlightChanges } from "./highlight.js";

const FREE = 0, CACHED = -1, SHARED = -2;
const CELL_SIZES = [14, 12, 10, 9, 8, 7, 6, 5, 4];
const MOST_HEIGHT = 200;
const LEAST_SHOWN = 512;
const DIMMED = 0.2;
const HINT = "Point at a block, or move with the arrow keys, to see which sequence holds it.";
const rankOf = (value) => (value === FREE ? 0 : value === CACHED ? 1 : 2);
const MEANINGS = { [FREE]: "free", [CACHED]: "cached", [SHARED]: "shared by several sequences" };

function numBlocksWith(pool, wanted) {
  return pool.blocks.reduce((sum, [value, length]) => sum + (value === wanted ? length : 0), 0);
}

/** How many blocks of a pool are held by sequences. */
export const numBlocksHeld = (pool) => pool.num_blocks - numBlocksWith(pool, FREE) - numBlocksWith(pool, CACHED);

/** The map of one pool; `caption` is the line that says what is pointed at. */
export class BlockMap {
  #canvas = element("canvas", { tabIndex: 0, role: "application", "aria-label": "Block pool" });
  #summary = element("p", { className: "caption summary" });
  #values = [];  // one a block
  #numShown = 0;  // the blocks after these are free
  #runs = "";
  #examined = null;  // a cell
  #layout = null;

  constructor(caption) {
    this.caption = caption;
    this.node = element("div", { className: "pool" }, this.#summary, this.#canvas);
    this.redraw = drawing(this.#canvas, () => this.#draw());
    whenHighlightChanges(this.redraw);
    makeExaminable(this.#canvas, {
      at: (x, y) => this.#cellAt(x, y),
      step: (cell, key) => this.#neighbour(cell, key),
      choose: (cell) => {
        this.#examined = cell;
        const value = cell === null ? FREE : this.#valueOf(cell);
        highlight(value > 0 ? value : null);
        this.#showCaption();
        this.redraw();
        return this.caption.textContent;
      },
    });
  }

  show(pool) {
    const kind = pool.window === null ? "" : `Window of ${count(pool.window)} tokens: `;
    const runs = JSON.stringify(pool.blocks);
    if (runs !== this.#runs) this.#take(pool.blocks);
    this.#runs = runs;
    const numHidden = pool.num_blocks - this.#numShown;
    const hidden = numHidden > 0 ? `; ${count(numHidden)} more at the end are free` : "";
    const blocks = pool.block_size === null ? counted(pool.num_blocks, "state")
      : `${counted(pool.num_blocks, "block")} of ${counted(pool.block_size, "token")}`;
    setText(this.#summary, `${kind}${blocks}; ` +
      `${count(numBlocksHeld(pool))} in use, ${count(numBlocksWith(pool, CACHED))} cached${hidden}`);
  }

  // Of a large pool, the map begins with its first blocks and grows as far as they are used.
  #take(runs) {
    this.#values = runs.flatMap(([value, length]) => new Array(length).fill(value));
    const numUsed = this.#values.findLastIndex((value) => value !== FREE) + 1;
    this.#numShown = Math.max(this.#numShown, LEAST_SHOWN);
    while (this.#numShown < numUsed) this.#numShown *= 2;
    this.#numShown = Math.min(this.#numShown, this.#values.length);
    this.#showCaption();
    this.redraw();
  }

  #draw() {
    const width = this.#canvas.clientWidth;
    const layout = this.#layout = layOut(this.#numShown, width);
    const context = clearedContext(this.#canvas, layout.rows * layout.size);
    const colors = palette();
    const highlighted = highlightedSequence();
    const gap = layout.size >= 6 ? 1.5 : 1;
    for (let cell = 0; cell < layout.numCells; cell++) {
      const value = this.#valueOf(cell);
      const x = (cell % layout.columns) * layout.size;
      const y = Math.floor(cell / layout.columns) * layout.size;
      context.globalAlpha = highlighted === null || value === highlighted || value <= FREE ? 1 : DIMMED;
      context.fillStyle = colorOf(value, colors);
      context.fillRect(x, y, layout.size - gap, layout.size - gap);
      if (cell !== this.#examined) continue;
      context.globalAlpha = 1;
      context.strokeStyle = colors.text;
      context.lineWidth = 1.5;
      context.strokeRect(x, y, layout.size - gap, layout.size - gap);
    }
  }

  // Of several blocks in a cell, one that is held stands for them, else a cached one.
  #valueOf(cell) {
    const { perCell } = this.#layout;
    let best = FREE;
    for (const value of this.#values.slice(cell * perCell, (cell + 1) * perCell)) {
      if (rankOf(value) > rankOf(best)) best = value;
    }
    return best;
  }

  #cellAt(x, y) {
    const { columns, size, numCells } = this.#layout;
    const cell = Math.floor(y / size) * columns + Math.floor(x / size);
    return x >= 0 && x < columns * size && cell >= 0 && cell < numCells ? cell : null;
  }

  #neighbour(cell, key) {
    if (cell === null) return 0;
    const { columns, numCells } = this.#layout;
    const to = cell + { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns }[key];
    return to >= 0 && to < numCells ? to : cell;
  }

  #showCaption() {
    setText(this.caption, this.#examined === null ? HINT : this.#captionOf(this.#examined));
  }

  #captionOf(cell) {
    const { perCell } = this.#layout;
    const first = cell * perCell;
    const last = Math.min(first + perCell, this.#numShown) - 1;
    const value = this.#valueOf(cell);
    const name = first === last ? `Block ${first}` : `Blocks ${first} to ${last}`;
    return `${name}: ${MEANINGS[value] ?? `held by sequence ${value}`}`;
  }
}

// The largest cells that let the whole pool fit; with the smallest, as many blocks a cell as needed.
function layOut(numBlocks, width) {
  const fit = (size, perCell) => {
    const numCells = Math.ceil(numBlocks / perCell);
    const columns = Math.max(1, Math.floor(width / size));
    return { size, perCell, numCells, columns, rows: Math.ceil(numCells / columns) };
  };
  const sizes = CELL_SIZES.map((size) => fit(size, 1));
  const whole = sizes.find(({ rows, size }) => rows * size <= MOST_HEIGHT);
  if (whole) return whole;
  const { columns, size } = sizes.at(-1);
  return fit(size, Math.ceil(numBlocks / (columns * Math.floor(MOST_HEIGHT / size))));
}

function colorOf(value, colors) {
  if (value > 0) return colors.sequence(value);
  return value === SHARED ? colors.shared : value === CACHED ? colors.cached : colors.free;
}
