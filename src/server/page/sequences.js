// The table of running and waiting sequences.
import { setHue } from "./colors.js";
import { byId, element, setText } from "./dom.js";
import { count, duration } from "./format.js";
import { highlight } from "./highlight.js";
import { makeRoving } from "./roving.js";

const MOST_ROWS = 64;
const NUM_NUMBERS = 6;
const OPTIONAL = new Set([1, 4, 5]);  // of the numbers: left out on a narrow screen
const rows = new Map();  // of sequences
const ofThisPage = new Set();  // ids of requests

/** Marks the rows of a request as this page's own. */
export function markAsOurs(id) {
  ofThisPage.add(id);
}

/** Prepares the table: pointing at a row, or moving to it with the arrow keys, brings its sequence out. */
export function setUpSequences() {
  const body = byId("sequences");
  makeRoving(body, "tr");
  const point = (event) => {
    const row = event.target.closest("tr[data-sequence]");
    highlight(row ? Number(row.dataset.sequence) : null);
  };
  body.addEventListener("pointerover", point);
  body.addEventListener("focusin", point);
  body.addEventListener("pointerleave", () => highlight(null));
  body.addEventListener("focusout", () => highlight(null));
}

/** Shows the sequences there are, the running ones first. */
export function showSequences(data) {
  const body = byId("sequences");
  const shown = data.slice(0, MOST_ROWS);
  const present = new Set(shown.map(({ sequence }) => sequence));
  for (const [sequence, row] of rows) {
    if (present.has(sequence)) continue;
    if (row.matches(":hover, :focus")) highlight(null);
    row.remove();
    rows.delete(sequence);
  }
  shown.forEach((entry, i) => {
    const row = rows.get(entry.sequence) ?? newRow(entry);
    fill(row, entry);
    if (body.children[i] !== row) body.insertBefore(row, body.children[i] ?? null);
  });
  if (body.firstChild && !body.querySelector('tr[tabindex="0"]')) body.firstChild.tabIndex = 0;
  byId("sequences").closest("table").hidden = data.length === 0;
  setText(byId("sequences-note"), noteOn(data));
}

function noteOn(data) {
  if (data.length === 0) return "No sequence is running or waiting.";
  const notes = [];
  if (data.length > MOST_ROWS) notes.push(`${count(data.length - MOST_ROWS)} more aren't shown.`);
  if (data.some(({ preemptions }) => preemptions > 0)) notes.push("↺: so often preempted, to make room for others.");
  return notes.join(" ");
}

function newRow({ sequence, id }) {
  const swatch = element("span", { className: "swatch", "aria-hidden": "true" });
  const name = element("th", { scope: "row", title: id }, swatch, String(sequence));
  if (ofThisPage.has(id)) name.append(element("span", { className: "ours", title: "sent by this page" }, "here"));
  const row = element("tr", { tabIndex: -1 }, name, element("td"));
  for (let i = 0; i < NUM_NUMBERS; i++) {
    row.append(element("td", { className: OPTIONAL.has(i) ? "number optional" : "number" }));
  }
  row.dataset.sequence = sequence;
  setHue(row, sequence);
  rows.set(sequence, row);
  return row;
}

function fill(row, entry) {
  const texts = [
    stateOf(entry),
    count(entry.prompt_tokens),
    count(entry.cached_tokens),
    entry.max_tokens ? `${count(entry.output_tokens)} / ${count(entry.max_tokens)}` : count(entry.output_tokens),
    count(entry.blocks),
    duration(1000 * entry.queue_s),
    duration(1000 * entry.age_s),
  ];
  texts.forEach((text, i) => setText(row.children[i + 1], text));
  row.classList.toggle("is-waiting", entry.state === "waiting");
}

function stateOf({ state, output_tokens: numTokens, preemptions }) {
  const name = state === "running" && numTokens === 0 ? "prefill" : state;
  return preemptions > 0 ? `${name} ↺ ${count(preemptions)}` : name;
}
