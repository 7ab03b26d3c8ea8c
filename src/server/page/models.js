// The choice of the model: the base and its adapters, as the server lists them.
import { getJson } from "./api.js";
import { byId, element } from "./dom.js";

let listed = [];  // as /v1/models has them
let chosen = "";  // a name; empty: the first one listed

/** The name of the chosen model. */
export const chosenModel = () => byId("model").value || chosen;

/** Chooses a model by name, whether or not the server has it; an empty name chooses the base. */
export function chooseModel(name) {
  chosen = name;
  show();
}

/** Reads the server's models again; the choice stays. */
export async function loadModels() {
  listed = (await getJson("/v1/models")).data;
  show();
}

/** Calls `onChoice` when the visitor has chosen another model. */
export function setUpModels(onChoice) {
  byId("model").addEventListener("change", () => {
    chooseModel(byId("model").value);
    onChoice();
  });
}

// An adapter that the server no longer has stays chosen, so that no other model answers in its place.
function show() {
  if (listed.length === 0) return;
  const name = chosen || listed[0].id;
  const option = ({ id }) => element("option", { value: id }, id);
  const adapters = listed.filter(({ parent }) => parent);
  const options = listed.filter(({ parent }) => !parent).map(option);
  if (adapters.length > 0) options.push(element("optgroup", { label: "Adapters" }, ...adapters.map(option)));
  if (!listed.some(({ id }) => id === name)) {
    options.push(element("option", { value: name }, `${name} (not on this server)`));
  }
  byId("model").replaceChildren(...options);
  byId("model").value = name;
}
