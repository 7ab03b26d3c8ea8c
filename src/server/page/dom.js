// What every part of the page needs of the document.

/** The element with this id. */
export const byId = (id) => document.getElementById(id);

/** A new element: names with a dash and `role` are attributes, others are properties. */
export function element(tag, properties = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name === "role" || name.includes("-")) node.setAttribute(name, value);
    else node[name] = value;
  }
  node.append(...children);
  return node;
}

/** A new button that calls `onclick`. */
export function button(label, onclick, properties = {}) {
  return element("button", { type: "button", onclick, ...properties }, label);
}

/** Says a text to people who listen to the page. */
export function announce(text) {
  const announcer = byId("announcer");
  announcer.textContent = "";
  requestAnimationFrame(() => { announcer.textContent = text; });
}

/** Writes a text only where it differs, so that nothing is laid out or read again for nothing. */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/** A copy of `work` that runs once in the next frame, however often it is called before. */
export function oncePerFrame(work) {
  let asked = false;
  return () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => {
      asked = false;
      work();
    });
  };
}
