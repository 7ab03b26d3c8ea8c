// ResponseChunk is one piece of a streamed answer: what one choice has come to since the piece
// before.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/response.h"

namespace paceline {

struct ResponseChunk {
  int64_t index = 0;                          // of the choice
  bool has_role = false;                      // of a chat: the choice begins
  std::optional<std::string_view> text = {};  // nothing without a tokenizer
  // With the text that its tokens are of, which begins after so many characters of the choice's.
  std::optional<std::vector<ReportedToken>> logprobs = {};
  std::string_view named_text = {};
  int64_t text_offset = 0;
  std::optional<std::vector<int32_t>> token_ids = {};
  std::optional<ResponseUsage> usage = {};  // so far, when every chunk tells it
  // Of the last one. Its text and log-probabilities aren't looked at, its ids are those above.
  const ResponseChoice* ending = nullptr;
};

// What all chunks of a stream have in common.
struct ChunkStyle {
  TokenNaming naming = TokenNaming::text;
  bool has_usage = false;         // "usage": null, because a last chunk will have it
  bool as_probabilities = false;  // of /generate: "completion_probabilities" for "logprobs"
};

// JSON; of a chat its "delta" has the text.
std::string completion_chunk_json(const ResponseHead& head, const ResponseChunk& chunk,
                                  const ChunkStyle& style);
std::string chat_chunk_json(const ResponseHead& head, const ResponseChunk& chunk,
                            const ChunkStyle& style);

// The members finish_reason and token_ids, of the last chunk stop_reason and the others too.
void write_chunk_end(JsonWriter& writer, const ResponseChunk& chunk);

// The chunk behind all others, without choices.
std::string usage_chunk_json(const ResponseHead& head, std::string_view object,
                             const ResponseUsage& usage);

constexpr std::string_view kCompletionChunkObject = "text_completion";
constexpr std::string_view kChatChunkObject = "chat.completion.chunk";

}  // namespace paceline
