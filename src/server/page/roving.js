// Lists and grids that are one stop of the Tab key; arrow keys move inside.

const STEPS = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };

/** Lets the arrow keys, Home and End move the focus among the elements of `container` that match; `onMove` gets each. */
export function makeRoving(container, selector, onMove = () => {}) {
  container.addEventListener("keydown", (event) => {
    const from = event.target.closest(selector);
    if (!from || event.ctrlKey || event.metaKey || event.altKey) return;
    const items = [...container.querySelectorAll(selector)];
    const to = target(items, items.indexOf(from), event.key);
    if (!to) return;
    event.preventDefault();
    to.focus();
    onMove(to);
  });
  container.addEventListener("focusin", (event) => {
    const item = event.target.closest(selector);
    if (!item) return;
    for (const other of container.querySelectorAll(`${selector}[tabindex="0"]`)) other.tabIndex = -1;
    item.tabIndex = 0;
  });
}

function target(items, index, key) {
  if (key === "Home") return items[0];
  if (key === "End") return items.at(-1);
  return key in STEPS ? items[index + STEPS[key]] : undefined;
}
