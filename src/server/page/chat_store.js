// The chats that this browser keeps, each under a name of its own in its local storage.

const PREFIX = "paceline.chat.";
const ENDINGS = ["stop", "tool_calls", "length", "content_filter", "stopped", "failed", "unfinished"];

/** The chats there are: { id, title, isNamed, changedAt, system, model, exchanges }, the last as Conversation has them. */
export function readChats() {
  try {
    return Object.keys(localStorage).filter((name) => name.startsWith(PREFIX)).map(readChat).filter(Boolean);
  } catch {
    return [];
  }
}

/** Keeps a chat; returns "kept", "full" where the storage has no room for it, or "refused" where there is none. */
export function saveChat(chat) {
  try {
    localStorage.setItem(PREFIX + chat.id, JSON.stringify(chat));
    return "kept";
  } catch (error) {
    return error.name === "QuotaExceededError" ? "full" : "refused";
  }
}

/** Forgets a chat. */
export function forgetChat(id) {
  try {
    localStorage.removeItem(PREFIX + id);
  } catch {
    // There was nothing to forget.
  }
}

/** Calls a function when another tab has changed the chats: with the chat's id, or null when all of them are gone. */
export function whenAnotherTabChangesChats(listener) {
  addEventListener("storage", ({ key }) => {
    if (key === null) listener(null);
    else if (key.startsWith(PREFIX)) listener(key.slice(PREFIX.length));
  });
}

// Anything may stand in the storage: a chat is taken with what has the right shape, or left out.
function readChat(name) {
  let chat = null;
  try {
    chat = JSON.parse(localStorage.getItem(name));
  } catch {
    return null;
  }
  if (!chat || !Array.isArray(chat.exchanges)) return null;
  return {
    id: name.slice(PREFIX.length),
    title: textOf(chat.title),
    isNamed: chat.isNamed === true,
    changedAt: Number(chat.changedAt) || 0,
    system: textOf(chat.system),
    model: textOf(chat.model),
    exchanges: readExchanges(chat.exchanges),
  };
}

const readExchanges = (list) => list.filter((exchange) => textOf(exchange?.prompt) !== "").map(readExchange);

function readExchange({ prompt, answer, ending, others, place }) {
  const branches = Array.isArray(others) ? others.filter(Array.isArray).map(readExchanges) : [];
  return {
    prompt,
    answer: textOf(answer),
    ending: ENDINGS.includes(ending) ? ending : null,
    others: branches.filter((branch) => branch.length > 0),
    place: Number.isInteger(place) ? place : 0,
  };
}

const textOf = (value) => (typeof value === "string" ? value : "");
