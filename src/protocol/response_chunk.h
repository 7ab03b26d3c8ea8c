// ResponseChunk is one piece of a streamed answer: the tokens of one choice since its last piece.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/response.h"

namespace paceline {

// A part of a chunk's text: of drafted tokens, or of others.
struct TextPiece {
  std::string text;
  bool is_accepted = false;
};

// What a piece says of a turn that is taken apart: parts of its texts, or of one call.
struct TurnDelta {
  std::string reasoning;
  std::string content;
  std::optional<size_t> call_index;
  bool begins_call = false;  // with `call_id` and `call_name`
  std::string call_id;
  std::string call_name;
  std::string arguments;
};

struct ResponseChunk {
  int64_t index = 0;                          // of the choice
  bool has_role = false;                      // the first chunk of a chat's choice
  std::optional<std::string_view> text = {};  // nothing without a tokenizer
  const TurnDelta* turn = nullptr;            // instead of the text, where it is taken apart
  // With the text of its tokens, and the characters of the choice's text before that.
  ReportedTokens logprobs = {};
  std::string_view named_text = {};
  int64_t text_offset = 0;
  std::optional<std::vector<int32_t>> token_ids = {};
  std::vector<TextPiece> pieces = {};       // reported if there are any
  int64_t cached_tokens = 0;                // of the choice's prompt
  std::optional<ResponseUsage> usage = {};  // so far, when every chunk reports it
  // In the last chunk of a choice. Its text, log-probabilities and ids are ignored.
  const ResponseChoice* ending = nullptr;
};

// The members finish_reason, pieces and token_ids; in the last chunk also stop_reason and the
// others.
void write_chunk_end(JsonWriter& writer, const ResponseChunk& chunk);

}  // namespace paceline
