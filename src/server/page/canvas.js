// Canvases that are as sharp as the screen, and that can be examined with pointer and keyboard.
import { announce, oncePerFrame } from "./dom.js";
import { whenThemeChanges } from "./theme.js";

/** Fits a canvas to its box, in CSS pixels, and returns its cleared context. */
export function clearedContext(canvas, height) {
  const scale = devicePixelRatio || 1;
  const width = canvas.clientWidth;
  const [wide, high] = [Math.round(width * scale), Math.round(height * scale)];
  if (canvas.width !== wide) canvas.width = wide;
  if (canvas.height !== high) canvas.height = high;
  canvas.style.height = `${height}px`;
  const context = canvas.getContext("2d");
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.clearRect(0, 0, width, height);
  return context;
}

/** A function that draws in the next frame; also called when the width or the theme changes. */
export function drawing(canvas, draw) {
  const redraw = oncePerFrame(() => { if (canvas.clientWidth > 0) draw(); });
  new ResizeObserver(redraw).observe(canvas);
  whenThemeChanges(redraw);
  return redraw;
}

/**
 * Lets pointer and arrow keys choose an item of a drawing. `at(x, y)` is the item at a point or null; `step(item, key)`
 * the one an arrow key leads to; `choose(item)` is told the choice (null: none) and returns what to say about it.
 */
export function makeExaminable(canvas, { at, step, choose }) {
  let current = null;
  const set = (item) => {
    current = item;
    return choose(item);
  };
  canvas.addEventListener("pointermove", (event) => {
    const box = canvas.getBoundingClientRect();
    set(at(event.clientX - box.left, event.clientY - box.top));
  });
  canvas.addEventListener("pointerleave", () => set(null));
  canvas.addEventListener("blur", () => set(null));
  canvas.addEventListener("keydown", (event) => {
    if (!event.key.startsWith("Arrow") || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    announce(set(step(current, event.key)));
  });
}
