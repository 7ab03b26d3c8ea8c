// Numbers as people read them.

/** A whole number with separators: 12,345. */
export const count = (value) => Math.round(value).toLocaleString("en");

/** A number and its noun: "1 token", "2 tokens". */
export const counted = (value, noun) => `${count(value)} ${noun}${value === 1 ? "" : "s"}`;

/** A share of one as a percentage; small ones keep two digits. */
export function percent(share) {
  const value = 100 * share;
  if (value === 0 || value >= 9.95) return `${Math.round(value)} %`;
  return value < 0.01 ? "< 0.01 %" : `${value.toPrecision(2)} %`;
}

/** A rate: 7.3, 512, 12,345. */
export const rate = (value) => (value < 9.95 ? value.toFixed(1) : count(value));

/** A time in milliseconds with the unit that suits it. */
export function duration(ms) {
  if (ms < 9.95) return `${ms.toFixed(1)} ms`;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(ms < 9950 ? 2 : 1)} s`;
  const seconds = Math.floor(ms / 1000);
  const minutes = Math.floor(seconds / 60);
  return minutes < 60 ? `${minutes} min ${seconds % 60} s` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** A token's text with what can't be seen made visible. */
export const visible = (text) => text.replace(/\n/g, "↵").replace(/\t/g, "⇥").replace(/ /g, "␣") || "∅";
