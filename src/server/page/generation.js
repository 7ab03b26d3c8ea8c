// One streamed answer of the server, from the request to its usage and times.
import { events, request } from "./api.js";
import { tokensOf } from "./logprobs.js";

const PATHS = { chat: "/v1/chat/completions", completion: "/v1/completions" };

/** A request that streams; what is known of it can be read at any time. */
export class Generation {
  id = null;
  usage = null;
  numCounted = 0;
  firstMs = null;
  lastMs = null;

  constructor(kind, body) {
    this.kind = kind;
    this.body = { ...body, stream: true, return_token_ids: true, stream_options: { include_usage: true, include_accepted: true } };
  }

  /**
   * Sends it and gives each piece { index, text, reasoning, calls, numTokens, parts, tokens, finish, seed } to `onPiece` until
   * the answer is whole.
   */
  async run(signal, onPiece) {
    let sentAt = 0;
    const onSend = () => { sentAt = performance.now(); };
    const response = await request(PATHS[this.kind], { body: this.body, signal, onSend });
    for await (const event of events(response)) {
      this.id ??= event.id;
      this.usage = event.usage ?? this.usage;
      for (const choice of event.choices) {
        const piece = pieceOf(choice);
        if (hasOutput(piece)) this.#time(performance.now() - sentAt);
        this.numCounted += piece.numTokens;
        onPiece(piece);
      }
    }
  }

  /** How many tokens came: as the usage says, else as many as the pieces had. */
  get numTokens() {
    return this.usage?.completion_tokens ?? this.numCounted;
  }

  /** Tokens per second after the first one, or null while there is none. */
  get tokensPerSecond() {
    const tokens = this.numTokens - 1;
    return tokens > 0 && this.lastMs > this.firstMs ? (1000 * tokens) / (this.lastMs - this.firstMs) : null;
  }

  #time(ms) {
    this.firstMs ??= ms;
    this.lastMs = ms;
  }
}

/** Whether a piece has something to show. */
export const hasOutput = ({ text, reasoning, calls, tokens }) => (
  text !== "" || reasoning !== "" || calls.length > 0 || tokens.length > 0);

function pieceOf(choice) {
  const text = choice.delta ? (choice.delta.content ?? "") : (choice.text ?? "");
  return {
    index: choice.index,
    text,
    reasoning: choice.delta?.reasoning_content ?? "",
    calls: choice.delta?.tool_calls ?? [],
    numTokens: choice.token_ids?.length ?? (text === "" ? 0 : 1),
    parts: choice.pieces ?? [{ text, accepted: false }],
    tokens: tokensOf(choice.logprobs),
    finish: choice.finish_reason ?? null,
    seed: choice.seed ?? null,
  };
}
