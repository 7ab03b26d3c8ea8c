// What is kept between visits. A browser may refuse to keep anything; the page then works without.

/** The value kept under a name, or null. */
export function recall(name, store = "localStorage") {
  try {
    return window[store].getItem(`paceline.${name}`);
  } catch {
    return null;
  }
}

/** Keeps a value under a name; null forgets it. */
export function keep(name, value, store = "localStorage") {
  try {
    if (value === null) window[store].removeItem(`paceline.${name}`);
    else window[store].setItem(`paceline.${name}`, value);
  } catch {
    // Nothing is kept.
  }
}
