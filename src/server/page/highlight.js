// The sequence that is pointed at anywhere on the page; every drawing brings it out.

const listeners = [];
let highlighted = null;

/** The sequence brought out now, or null. */
export const highlightedSequence = () => highlighted;

/** Brings out one sequence; null ends that. */
export function highlight(sequence) {
  if (sequence === highlighted) return;
  highlighted = sequence;
  for (const listener of listeners) listener();
}

/** Calls a function after each change. */
export function whenHighlightChanges(listener) {
  listeners.push(listener);
}
