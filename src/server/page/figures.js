// The line of figures below each answer: hidden until the visitor asks for it, and then until it is asked away.
import { button } from "./dom.js";
import { keep, recall } from "./storage.js";

const SHOWN = "has-figures";
const isShown = () => document.body.classList.contains(SHOWN);

/** Shows the lines where an earlier visit showed them. */
export function setUpFigures() {
  show(recall("figures") === "shown");
}

/** A button that shows or hides the lines of all answers. */
export function figuresButton() {
  return button("Figures", () => {
    keep("figures", isShown() ? null : "shown");
    show(!isShown());
  }, { className: "figures", "aria-pressed": String(isShown()), title: "Tokens, times and seeds below each answer" });
}

function show(areShown) {
  document.body.classList.toggle(SHOWN, areShown);
  for (const other of document.querySelectorAll("button.figures")) other.setAttribute("aria-pressed", String(areShown));
}
