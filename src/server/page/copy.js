// Copies text to the clipboard, and says whether that worked.
import { announce, element } from "./dom.js";

const SHOWN_MS = 1200;

/** Copies a text and shows on the button whether it is copied. */
export async function copy(text, button) {
  const isCopied = await write(text);
  announce(isCopied ? "Copied." : "The browser doesn't let the page copy.");
  const label = button.dataset.label ??= button.textContent;
  button.textContent = isCopied ? "Copied" : "Can't copy";
  setTimeout(() => { button.textContent = label; }, SHOWN_MS);
}

/** Lets the buttons of code blocks copy their code. */
export function setUpCodeCopying() {
  document.addEventListener("click", (event) => {
    const button = event.target.closest?.(".copy-code");
    if (button) copy(button.closest(".code").querySelector("code").textContent, button);
  });
}

async function write(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return writeFromField(text);
  }
}

// A page that came over plain HTTP from another machine has no clipboard, but may still copy what is selected.
function writeFromField(text) {
  const focused = document.activeElement;
  const field = element("textarea", { className: "hidden", value: text, readOnly: true, "aria-hidden": "true" });
  document.body.append(field);
  field.select();
  const isCopied = document.execCommand("copy");
  field.remove();
  focused?.focus();
  return isCopied;
}
