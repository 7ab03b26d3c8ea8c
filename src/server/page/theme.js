// Light or dark: as the system says, or as the visitor chose.
import { keep, recall } from "./storage.js";

const system = matchMedia("(prefers-color-scheme: dark)");
const root = document.documentElement;
const listeners = [];

/** Whether the page is dark now. */
export const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);

/** Calls a function after each change of the theme. */
export function whenThemeChanges(listener) {
  listeners.push(listener);
}

/** Changes between light and dark; the system's own choice isn't kept. */
export function toggleTheme() {
  const wanted = isDark() ? "light" : "dark";
  const isSystems = system.matches === (wanted === "dark");
  if (isSystems) delete root.dataset.theme;
  else root.dataset.theme = wanted;
  keep("theme", isSystems ? null : wanted);
  for (const listener of listeners) listener();
}

const kept = recall("theme");
if (kept === "light" || kept === "dark") root.dataset.theme = kept;
system.addEventListener("change", () => { for (const listener of listeners) listener(); });
