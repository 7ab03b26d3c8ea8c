// Log-probabilities in the two shapes the API has, made into one.

/** The tokens of a choice's `logprobs`: { name, bytes, logprob, alternatives: [{ text, logprob }] }. */
export function tokensOf(logprobs) {
  if (!logprobs) return [];
  return logprobs.content ? logprobs.content.map(chatToken) : completionTokens(logprobs);
}

function chatToken({ token, logprob, bytes, top_logprobs: top }) {
  return {
    name: token,
    bytes: bytes ? Uint8Array.from(bytes) : bytesOf(token),
    logprob,
    alternatives: (top ?? []).map((other) => ({ text: other.token, logprob: other.logprob })),
  };
}

function completionTokens({ tokens = [], token_logprobs: logprobs, top_logprobs: tops }) {
  return tokens.map((token, i) => ({
    name: token,
    bytes: bytesOf(token),
    logprob: logprobs[i],
    alternatives: Object.entries(tops?.[i] ?? {})
      .map(([text, logprob]) => ({ text, logprob }))
      .sort((a, b) => b.logprob - a.logprob),
  }));
}

// A token that isn't well-formed text is named "bytes:\xe2\x80".
function bytesOf(name) {
  if (!/^bytes:(\\x[0-9a-f]{2})+$/.test(name)) return new TextEncoder().encode(name);
  return Uint8Array.from(name.slice(6).match(/[0-9a-f]{2}/g), (digits) => parseInt(digits, 16));
}

/** The step of likelihood of a probability, from 0 (very unlikely) to 4 (nearly certain). */
export function levelOf(probability) {
  return [0.05, 0.2, 0.5, 0.9].filter((least) => probability >= least).length;
}
