// One streamed answer of the server, from the request to its usage and times.
import { events, request } from "./api.js";
import { tokensOf } from "./logprobs.js";

const LEAST_MS = 250;  // tokens come in bursts: a shorter time tells no rate
const PATHS = { chat: "/v1/chat/completions", completion: "/v1/completions" };

/** A request that streams; what is known of it can be read at any time. */
export class Generation {
  id = null;
  usage = null;
  numCounted = 0;
  firstMs = null;
  lastMs = null;
  #isCutOff = false;
  #timings = [];  // of the choices that have ended, as the server measured them

  constructor(kind, body) {
    this.kind = kind;
    this.body = { ...body, stream: true, return_token_ids: true, timings: true,
      stream_options: { include_usage: true, include_accepted: true } };
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
        this.#isCutOff ||= piece.finish === "length";
        if (choice.timings) this.#timings.push(choice.timings);
        onPiece(piece);
      }
    }
  }

  /** How many tokens came: as the usage says, else as many as the pieces had. */
  get numTokens() {
    return this.usage?.completion_tokens ?? this.numCounted;
  }

  /** Tokens per second after the first one, as the server says, else as they came; null while that tells nothing. */
  get tokensPerSecond() {
    const decoded = this.#timings.reduce((sum, { predicted_n: number }) => sum + number, 0);
    const decodedMs = Math.max(0, ...this.#timings.map(({ predicted_ms: ms }) => ms));
    if (this.#timings.length > 0) return decodedMs > 0 ? (1000 * decoded) / decodedMs : null;
    const [tokens, ms] = [this.numTokens - 1, this.lastMs - this.firstMs];
    return tokens > 0 && ms >= LEAST_MS ? (1000 * tokens) / ms : null;
  }

  /** Whether the answer ended before its token limit because the model's context is full. */
  get hasFilledContext() {
    const { n = 1, max_tokens: most = Infinity, max_completion_tokens: mostOfChat = most } = this.body;
    return this.#isCutOff && n === 1 && this.usage !== null && this.usage.completion_tokens < mostOfChat;
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
    reasoning: choice.delta?.reasoning_content ?? choice.delta?.reasoning ?? "",
    calls: choice.delta?.tool_calls ?? [],
    numTokens: choice.token_ids?.length ?? (text === "" ? 0 : 1),
    parts: choice.pieces ?? [{ text, accepted: false }],
    tokens: tokensOf(choice.logprobs),
    finish: choice.finish_reason ?? null,
    seed: choice.seed ?? null,
  };
}
