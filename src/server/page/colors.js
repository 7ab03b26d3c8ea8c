// A colour for each sequence: far apart for neighbours, the same wherever the sequence appears.
import { isDark } from "./theme.js";

const GOLDEN_ANGLE = 137.508;
const hueOf = (sequence) => ((sequence * GOLDEN_ANGLE) % 360).toFixed(1);

/** Gives an element the hue of a sequence, for the style sheet's `--hue`. */
export function setHue(node, sequence) {
  node.style.setProperty("--hue", hueOf(sequence));
}

/** The colours of the drawings: `sequence(number)`, and what the legends' keys have. */
export function palette() {
  const [lightness, chroma] = isDark() ? [0.74, 0.13] : [0.62, 0.15];
  const background = (key) => getComputedStyle(document.querySelector(`.key.${key}`)).backgroundColor;
  const { color } = getComputedStyle(document.body);
  return {
    sequence: (number) => `oklch(${lightness} ${chroma} ${hueOf(number)})`,
    shared: background("shared"),
    cached: background("cached"),
    free: background("free"),
    surface: getComputedStyle(document.querySelector(".card")).backgroundColor,
    text: color,
    accent: getComputedStyle(document.querySelector(".mark i")).backgroundColor,
  };
}
