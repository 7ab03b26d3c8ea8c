// The choice of the model: the models and their adapters, as the server lists them. One that isn't loaded is loaded when it
// is chosen.
import { getJson } from "./api.js";
import { byId, element } from "./dom.js";

const LOADING_MS = 500;

let listed = [];  // as /models has them
let chosen = "";  // a name; empty: the first one listed
let timer = 0;

/** The name of the chosen model. */
export const chosenModel = () => byId("model").value || chosen;

/** The chosen model's name if the server has it and it isn't the first one, else none. */
export const furtherModel = () => (listed.slice(1).some(({ id }) => id === chosenModel()) ? chosenModel() : "");

/** Chooses a model by name, whether or not the server has it; an empty name chooses the base. */
export function chooseModel(name) {
  chosen = name;
  show();
}

/** Reads the server's models again, and goes on while one is being loaded; the choice stays. */
export async function loadModels() {
  listed = (await getJson("/models")).data;
  show();
  clearTimeout(timer);
  const isChanging = listed.some(({ status }) => ["loading", "unloading"].includes(status.value));
  if (isChanging) timer = setTimeout(() => loadModels().catch(() => {}), LOADING_MS);
}

/** Calls `onChoice` when the visitor has chosen another model. */
export function setUpModels(onChoice) {
  byId("model").addEventListener("change", () => {
    chooseModel(byId("model").value);
    onChoice();
    load().catch(() => {});  // an answer says why it can't be loaded
  });
}

async function load() {
  const model = listed.find(({ id }) => id === chosenModel());
  if (model?.status.value !== "unloaded") return;
  await getJson("/models/load", { body: { model: model.id } });
  await loadModels();
}

const textOf = ({ id, status }) => (status.value === "loaded" ? id : `${id} (${status.failed ? "failed" : status.value})`);

// An adapter that the server no longer has stays chosen, so that no other model answers in its place.
function show() {
  if (listed.length === 0) return;
  const name = chosen || listed[0].id;
  const option = (model) => element("option", { value: model.id }, textOf(model));
  const adapters = listed.filter(({ parent }) => parent);
  const options = listed.filter(({ parent }) => !parent).map(option);
  if (adapters.length > 0) options.push(element("optgroup", { label: "Adapters" }, ...adapters.map(option)));
  if (!listed.some(({ id }) => id === name)) {
    options.push(element("option", { value: name }, `${name} (not on this server)`));
  }
  byId("model").replaceChildren(...options);
  byId("model").value = name;
}
