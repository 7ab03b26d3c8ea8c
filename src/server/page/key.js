// The dialog that asks for the API key.
import { hasKey, setKey, whenKeyIsNeeded } from "./api.js";
import { byId } from "./dom.js";

let pending = null;

/** Prepares the dialog and the button that opens it; `onChange` is called when the key has changed. */
export function setUpKey(onChange) {
  const dialog = byId("key-dialog");
  const input = byId("key-input");
  let accepted = false;

  const ask = (text) => {
    pending ??= new Promise((resolve) => {
      accepted = false;
      byId("key-text").textContent = text;
      input.value = "";
      dialog.showModal();
      dialog.addEventListener("close", () => {
        pending = null;
        resolve(accepted);
      }, { once: true });
    });
    return pending;
  };

  dialog.querySelector("form").addEventListener("submit", (event) => {
    event.preventDefault();
    accepted = true;
    setKey(input.value.trim());
    dialog.close();
    onChange();
  });
  byId("key-cancel").addEventListener("click", () => dialog.close());
  byId("open-key").addEventListener("click", () => ask(hasKey()
    ? "Enter another key, or leave it empty to forget the one in use."
    : "Enter the key if the server asks for one."));
  whenKeyIsNeeded((isRefused) => ask(isRefused
    ? "The server refused this key. Enter another one."
    : "This server asks for an API key."));
}
