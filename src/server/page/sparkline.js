// Tokens per second over the last minute, as a line.
import { clearedContext, drawing } from "./canvas.js";
import { palette } from "./colors.js";
import { byId } from "./dom.js";
import { rate } from "./format.js";

const SPAN_MS = 60_000, HEIGHT = 48;

/** Prepares the line; returns what adds the rate of now. */
export function setUpSparkline() {
  const canvas = byId("sparkline");
  let points = [];  // { at, value }, the oldest first
  const redraw = drawing(canvas, () => draw(canvas, points));
  return (value) => {
    const now = performance.now();
    points.push({ at: now, value });
    points = points.filter(({ at }) => now - at <= SPAN_MS);
    const most = Math.max(...points.map((point) => point.value));
    canvas.setAttribute("aria-label",
      `Tokens per second over the last minute: now ${rate(value)}, at most ${rate(most)}`);
    redraw();
  };
}

function draw(canvas, points) {
  const context = clearedContext(canvas, HEIGHT);
  const width = canvas.clientWidth;
  const colors = palette();
  context.fillStyle = colors.free;
  context.fillRect(0, HEIGHT - 1, width, 1);
  if (points.length < 2) return;
  const newest = points.at(-1).at;
  const most = Math.max(1, ...points.map(({ value }) => value));
  const place = ({ at, value }) => [
    width - (width * (newest - at)) / SPAN_MS, HEIGHT - 2 - ((HEIGHT - 6) * value) / most];
  context.beginPath();
  for (const point of points) context.lineTo(...place(point));
  context.strokeStyle = colors.accent;
  context.lineWidth = 1.75;
  context.lineJoin = "round";
  context.stroke();
  context.lineTo(width, HEIGHT - 1);
  context.lineTo(place(points[0])[0], HEIGHT - 1);
  context.globalAlpha = 0.12;
  context.fillStyle = colors.accent;
  context.fill();
  context.globalAlpha = 1;
}
