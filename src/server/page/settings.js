// The settings, made of the options that the server offers, and the request fields they stand for.
import { byId, element, setText } from "./dom.js";
import { OPTIONS } from "./options.js";

// What the page begins with; the other fields are empty.
const INITIAL = { temperature: "0.8", top_p: "0.95", max_tokens: "1024" };
const NUMBERS = [...OPTIONS.map((option) => option.name), "n"];
const MOST_COMPLETION_ALTERNATIVES = 5;

const controls = () => byId("composer").elements;

/** Prepares the controls; `onTint` is called with whether tokens are coloured by probability. */
export function setUpSettings(onTint) {
  const settings = byId("settings");
  byId("answers-field").before(...OPTIONS.map(field));
  const update = () => {
    showBrief();
    onTint(controls().tint.checked);
  };
  settings.addEventListener("input", update);
  byId("settings-reset").addEventListener("click", () => {
    for (const control of settings.querySelectorAll("input, textarea")) {
      control.value = control.defaultValue;
      control.checked = control.defaultChecked;
    }
    update();
  });
  byId("composer").noValidate = true;
  update();
}

// A labelled number: "top_p" is Top-p, "presence_penalty" Presence, with the rest for listeners.
function field({ name, help, min, max, whole, unset }) {
  const words = name.replace(/_(?=.$)/, "-").split("_");
  const isPenalty = words.at(-1) === "penalty";
  const shown = (isPenalty ? words.slice(0, -1) : words).join(" ");
  const label = element("label", { title: help }, shown[0].toUpperCase() + shown.slice(1), " ");
  if (isPenalty) label.append(element("span", { className: "hidden" }, "penalty"), " ");
  const step = whole ? 1 : max > 2 ? 0.1 : 0.01;
  const input = element("input", { type: "number", name, step, placeholder: unset });
  input.min = whole ? Math.max(min, 0) : min;
  input.max = max;
  input.defaultValue = INITIAL[name] ?? "";
  label.append(input);
  return label;
}

/** Opens or closes the controls. */
export function toggleSettings() {
  const settings = byId("settings");
  settings.open = !settings.open;
  settings.querySelector("summary").focus();
}

/** Whether every number is in its range and what should be JSON is; shows the first that isn't. */
export function settingsAreValid() {
  for (const name of ["schema", "tools"]) {
    const control = controls()[name];
    control.setCustomValidity(isJsonOrEmpty(control.value) ? "" : "This is not JSON.");
    if (control.validity.valid) continue;
    byId("settings").open = true;
    control.reportValidity();
    return false;
  }
  for (const name of [...NUMBERS, "alternatives"]) {
    const { validity } = controls()[name];
    if (!validity.badInput && !validity.rangeUnderflow && !validity.rangeOverflow) continue;
    byId("settings").open = true;
    controls()[name].reportValidity();
    return false;
  }
  return true;
}

/** Offers the switch of speculative decoding where the server has a drafter. */
export function offerSpeculation(hasDrafter) {
  byId("speculation-field").hidden = !hasDrafter;
}

/** The system prompt, or nothing. */
export const systemPrompt = () => controls().system.value.trim();

/** Sets the system prompt of the chat that is shown. */
export function setSystemPrompt(text) {
  controls().system.value = text;
  showBrief();
}

/** The sampling fields of a request; `kind` is "chat" or "completion". */
export function requestFields(kind) {
  const fields = {};
  for (const name of NUMBERS) {
    const { value } = controls()[name];
    if (value !== "") fields[name] = Number(value);
  }
  if (kind === "chat" && "max_tokens" in fields) {
    fields.max_completion_tokens = fields.max_tokens;
    delete fields.max_tokens;
  }
  const stop = controls().stop.value.split("\n").filter((line) => line !== "");
  if (stop.length) fields.stop = stop.map((line) => line.replaceAll("\\n", "\n"));
  const schema = controls().schema.value.trim();
  if (schema !== "") {
    fields.response_format = { type: "json_schema", json_schema: { name: "answer", schema: JSON.parse(schema) } };
  }
  const tools = controls().tools.value.trim();
  if (kind === "chat" && tools !== "") fields.tools = JSON.parse(tools);
  if (!controls().speculation.checked) fields.speculation = false;
  if (controls().logprobs.checked) Object.assign(fields, logprobFields(kind));
  return fields;
}

function isJsonOrEmpty(text) {
  try {
    return text.trim() === "" || JSON.parse(text) !== undefined;
  } catch {
    return false;
  }
}

function logprobFields(kind) {
  const alternatives = Number(controls().alternatives.value);
  if (kind === "chat") return { logprobs: true, top_logprobs: alternatives };
  return { logprobs: Math.min(alternatives, MOST_COMPLETION_ALTERNATIVES) };
}

const showBrief = () => setText(byId("settings-brief"), brief());

function brief() {
  const { system, temperature, top_p: topP, max_tokens: most, n, seed, schema, tools, logprobs, speculation } = controls();
  const parts = [];
  if (system.value.trim() !== "") parts.push("system prompt");
  if (temperature.value !== "") parts.push(`temperature ${temperature.value}`);
  if (topP.value !== "") parts.push(`top-p ${topP.value}`);
  if (most.value !== "") parts.push(`${most.value} tokens`);
  if (seed.value !== "") parts.push(`seed ${seed.value}`);
  if (Number(n.value) > 1) parts.push(`${n.value} answers`);
  if (schema.value.trim() !== "") parts.push("JSON schema");
  if (tools.value.trim() !== "") parts.push("tools");
  if (logprobs.checked) parts.push("log-probabilities");
  if (!speculation.checked) parts.push("no drafts");
  return parts.join(" · ");
}
