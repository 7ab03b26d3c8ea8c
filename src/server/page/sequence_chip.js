// A sequence's number in its colour, beside the answer it belongs to.
import { setHue } from "./colors.js";
import { element } from "./dom.js";
import { whenEngineChanges } from "./engine.js";

/** A chip that shows the sequence of a request's choice as soon as the engine tells it. */
export function sequenceChip(id, choice = 0) {
  const chip = element("span", { className: "chip" });
  const forget = whenEngineChanges(({ live }) => {
    if (!chip.isConnected) return forget();
    const entry = live?.data.find((other) => other.id === id && other.choice === choice);
    if (!entry) return undefined;
    setHue(chip, entry.sequence);
    chip.replaceChildren(element("span", { className: "swatch", "aria-hidden": "true" }), `sequence ${entry.sequence}`);
    return forget();
  });
  return chip;
}
