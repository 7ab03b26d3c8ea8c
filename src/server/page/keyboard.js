// Keyboard shortcuts and the dialog that lists them.
import { byId, element } from "./dom.js";
import { keep, recall } from "./storage.js";

/** Prepares shortcuts: [{ key, name, does, run }]; `escape` is called for Esc outside of dialogs. */
export function setUpKeyboard(shortcuts, escape) {
  const dialog = byId("help-dialog");
  const singleKeys = byId("single-keys");
  const showHelp = () => dialog.showModal();
  const all = [...shortcuts, { key: "?", does: "show this list", run: showHelp }];

  singleKeys.checked = recall("single-keys") !== "off";
  singleKeys.addEventListener("change", () => keep("single-keys", singleKeys.checked ? null : "off"));
  byId("open-help").addEventListener("click", showHelp);
  byId("help-close").addEventListener("click", () => dialog.close());
  list([{ key: "Enter", does: "send the message" }, { key: "Shift Enter", does: "start a new line" },
    { key: "Esc", does: "stop the answer" },
    { key: "↑", does: "edit the last message, while the field is empty" }, ...all,
    { key: "F2", does: "rename the chat that has the focus" }, { key: "Delete", does: "delete it" },
    { key: "← →", does: "move among tokens, steps, blocks, tabs and rows" }]);

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (document.querySelector("dialog[open]")) return;
    if (event.key === "Escape") escape();
    if (!singleKeys.checked || isTextField(event.target)) return;
    const shortcut = all.find(({ key }) => key === event.key);
    if (!shortcut) return;
    event.preventDefault();
    shortcut.run();
  });
}

function list(entries) {
  byId("shortcuts").append(...entries.map(({ key, does }) => element("div", {},
    element("dt", {}, ...key.split(" ").map((name) => element("kbd", {}, name))), element("dd", {}, does))));
}

const isTextField = (node) => node.matches("textarea, select, input:not([type=checkbox])");
