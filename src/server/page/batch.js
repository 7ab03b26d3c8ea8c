// The batch of each step: a column a step, a segment for each sequence's rows.
import { clearedContext, drawing, makeExaminable } from "./canvas.js";
import { palette } from "./colors.js";
import { byId, setText } from "./dom.js";
import { count, counted, duration } from "./format.js";
import { highlightedSequence, whenHighlightChanges } from "./highlight.js";

const NUM_COLUMNS = 64, HEIGHT = 112, TIMES_HEIGHT = 18, MOST_UNIT = 14;
const DIMMED = 0.2;
const unitsOf = (rows) => 1 + Math.log2(rows) / 2;

/** Prepares the drawing; returns what shows new steps. */
export function setUpBatch() {
  const canvas = byId("batch");
  const caption = byId("batch-caption");
  let steps = [];
  let examined = null;  // a step's number

  const showCaption = () => setText(caption, captionOf(steps, examined));
  const redraw = drawing(canvas, () => draw(canvas, steps, examined));
  whenHighlightChanges(redraw);
  makeExaminable(canvas, {
    at: (x) => steps[indexAt(canvas, steps, x)]?.step ?? null,
    step: (current, key) => neighbour(steps, current, key),
    choose: (step) => {
      examined = step;
      showCaption();
      redraw();
      return caption.textContent;
    },
  });
  return (newSteps) => {
    const changed = newSteps.at(-1)?.step !== steps.at(-1)?.step;
    steps = newSteps.slice(-NUM_COLUMNS);
    if (!steps.some(({ step }) => step === examined)) examined = null;
    showCaption();
    if (changed) redraw();
  };
}

const columnWidth = (canvas) => canvas.clientWidth / NUM_COLUMNS;

// The newest step is at the right edge.
const indexAt = (canvas, steps, x) => Math.floor(x / columnWidth(canvas)) - (NUM_COLUMNS - steps.length);

function neighbour(steps, current, key) {
  const index = steps.findIndex(({ step }) => step === current);
  if (index < 0) return steps.at(-1)?.step ?? null;
  const to = index + (key === "ArrowRight" || key === "ArrowUp" ? 1 : -1);
  return steps[Math.max(0, Math.min(steps.length - 1, to))].step;
}

function captionOf(steps, examined) {
  const step = examined === null ? steps.at(-1) : steps.find((other) => other.step === examined);
  if (!step) return "No step yet. Send a message, and each step's batch appears here.";
  const drafts = draftsOf(step);
  const prefills = step.slices.filter(([sequence, rows]) => rows > 1 && !drafts.has(sequence));
  const numRows = prefills.reduce((sum, [, rows]) => sum + rows, 0);
  const parts = [];
  if (step.slices.length > prefills.length) parts.push(`${step.slices.length - prefills.length} decoding`);
  if (drafts.size > 0) parts.push(draftsText([...drafts.values()]));
  if (prefills.length) parts.push(`${prefills.length} in prefill with ${counted(numRows, "row")}`);
  return `${examined === null ? "Last step" : `Step ${count(step.step)}`}: ${parts.join(", ")}; ${duration(step.ms)}`;
}

// The drafted and accepted rows of a step by sequence; they are the last rows of its slice.
const draftsOf = ({ drafts }) => new Map((drafts ?? []).map(([sequence, drafted, accepted]) => [sequence, { drafted, accepted }]));

function draftsText(drafts) {
  const sum = (name) => drafts.reduce((total, draft) => total + draft[name], 0);
  return `${counted(sum("drafted"), "drafted row")}, ${count(sum("accepted"))} accepted`;
}

function draw(canvas, steps, examined) {
  const context = clearedContext(canvas, HEIGHT);
  const colors = palette();
  const width = columnWidth(canvas);
  const height = HEIGHT - TIMES_HEIGHT - 4;
  const tallest = Math.max(1, ...steps.map(({ slices }) => slices.reduce((sum, [, rows]) => sum + unitsOf(rows), 0)));
  const unit = Math.min(MOST_UNIT, height / tallest);
  const slowest = Math.max(...steps.map(({ ms }) => ms));
  const hatch = hatching(context, colors.surface);
  context.fillStyle = colors.free;
  context.fillRect(0, height, canvas.clientWidth, 1);
  steps.forEach((step, i) => {
    const x = (NUM_COLUMNS - steps.length + i) * width;
    if (step.step === examined) {
      context.globalAlpha = 1;
      context.fillStyle = colors.free;
      context.fillRect(x, 0, width, HEIGHT);
    }
    drawSlices(context, step, { x, bottom: height, width: Math.max(1, width - 1), unit, colors, hatch });
    context.globalAlpha = 1;
    context.fillStyle = colors.cached;
    const time = (TIMES_HEIGHT * step.ms) / slowest;
    context.fillRect(x, HEIGHT - time, Math.max(1, width - 1), time);
  });
}

function drawSlices(context, step, { x, bottom, width, unit, colors, hatch }) {
  const highlighted = highlightedSequence();
  const drafts = draftsOf(step);
  const gap = unit >= 3 ? 1 : 0;
  let y = bottom;
  let units = 0;
  for (const [sequence, rows] of step.slices) {
    const top = Math.round(bottom - unit * (units += unitsOf(rows)));
    const height = y - top;
    y = top;
    context.globalAlpha = highlighted === null || highlighted === sequence ? 1 : DIMMED;
    context.fillStyle = colors.sequence(sequence);
    context.fillRect(x, y, width, height - gap);
    if (rows === 1) continue;
    const draft = drafts.get(sequence);
    if (draft) {
      drawDraft(context, draft, rows, { x, y, width, height: height - gap, colors });
      continue;
    }
    context.fillStyle = hatch;
    context.fillRect(x, y, width, height - gap);
  }
}

// The upper part of a slice: accepted rows are lighter, rejected ones are hardly coloured.
function drawDraft(context, { drafted, accepted }, rows, { x, y, width, height, colors }) {
  const alpha = context.globalAlpha;
  context.fillStyle = colors.surface;
  for (const [count, strength] of [[drafted - accepted, 0.85], [accepted, 0.45]]) {
    const part = (height * count) / rows;
    context.globalAlpha = strength;
    context.fillRect(x, y, width, part);
    y += part;
  }
  context.globalAlpha = alpha;
}

function hatching(context, color) {
  const tile = new OffscreenCanvas(4, 4);
  const pen = tile.getContext("2d");
  pen.strokeStyle = color;
  pen.lineWidth = 1.1;
  for (const shift of [-4, 0, 4]) {
    pen.beginPath();
    pen.moveTo(shift, 4);
    pen.lineTo(shift + 4, 0);
    pen.stroke();
  }
  return context.createPattern(tile, "repeat");
}
