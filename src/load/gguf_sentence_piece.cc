// Makes the tokenizer.json of GGUF files with a sentencepiece vocabulary.
#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <limits>
#include <unordered_set>

#include "base/error.h"
#include "load/gguf_tokenizer.h"
#include "load/gguf_tokenizer_parts.h"
#include "tokenizer/piece_merges.h"

namespace paceline {
namespace {

constexpr std::string_view kSpaceMark = "\u2581";  // sentencepiece's for a space

// A sentencepiece vocabulary as transformers converts it. Files write user-defined tokens with
// spaces, the vocabulary writes them with marks. Runs of spaces are merged like other pieces, with
// the same ids; other tokens with a space become added tokens only.
struct SentencePieces {
  std::deque<std::string> marked;
  std::vector<std::string_view> texts;  // by id; empty: not in the vocabulary
  std::vector<bool> added;              // by id
  std::vector<ScoredPiece> merging;
  std::string_view unknown;
  bool byte_fallback = false;
};

std::string with_marks(std::string_view text) {
  std::string marked;
  for (const char c : text) {
    if (c == ' ') {
      marked += kSpaceMark;
    } else {
      marked += c;
    }
  }
  return marked;
}

std::vector<float> read_scores(const GgufMetadata& metadata, size_t num_tokens) {
  constexpr std::string_view kKey = "tokenizer.ggml.scores";
  auto scores = metadata.numbers(kKey);
  const auto fail = [&](const std::string& what) {
    throw Error(ErrorCode::corrupt, fmt::format("{}: {}: {}", metadata.file(), kKey, what));
  };
  if (!scores) fail("missing, expected a score for each token");
  if (scores->size() != num_tokens) {
    fail(fmt::format("{} entries for {} tokens", scores->size(), num_tokens));
  }
  const auto nan = std::find_if(scores->begin(), scores->end(), [](float x) { return x != x; });
  if (nan != scores->end()) fail(fmt::format("[{}] is not a number", nan - scores->begin()));
  return std::move(*scores);
}

SentencePieces sentence_pieces(const GgufMetadata& metadata, const GgufTokenTexts& tokens) {
  const std::vector<float> scores = read_scores(metadata, tokens.size());
  SentencePieces pieces;
  pieces.byte_fallback = tokens.has_type(GgufTokenType::byte);
  std::unordered_set<std::string_view> unmarked;
  for (size_t id = 0; id < tokens.size(); ++id) unmarked.insert(tokens.text(id));
  for (size_t id = 0; id < tokens.size(); ++id) {
    const GgufTokenType type = tokens.type(id);
    std::string_view text = tokens.text(id);
    pieces.added.push_back(tokens.is_added(id));
    if (type == GgufTokenType::user_defined && text.find(' ') != text.npos) {
      const bool only_spaces = text.find_first_not_of(' ') == text.npos;
      text = pieces.marked.emplace_back(only_spaces ? with_marks(text) : "");
      if (unmarked.contains(text)) text = {};
      pieces.added.back() = text.empty();
    }
    pieces.texts.push_back(text);
    if (type == GgufTokenType::unknown && pieces.unknown.empty()) pieces.unknown = text;
    const bool merges = type == GgufTokenType::normal || type == GgufTokenType::user_defined;
    // sentencepiece never cuts a user-defined token.
    const float score =
        type == GgufTokenType::user_defined ? std::numeric_limits<float>::infinity() : scores[id];
    if (merges && !text.empty()) pieces.merging.push_back({text, score});
  }
  return pieces;
}

// `space_first`: a space is put before a text (sentencepiece's dummy prefix).
void write_space_steps(bool space_first, JsonWriter& writer) {
  writer.key("normalizer").begin_object().member("type", "Sequence").key("normalizers");
  writer.begin_array();
  if (space_first) {
    writer.begin_object().member("type", "Prepend").member("prepend", kSpaceMark).end_object();
  }
  writer.begin_object().member("type", "Replace").key("pattern").begin_object();
  writer.member("String", " ").end_object().member("content", kSpaceMark).end_object();
  writer.end_array().end_object().key("pre_tokenizer").null();
}

void write_space_decoder(bool space_first, JsonWriter& writer) {
  writer.key("decoder").begin_object().member("type", "Sequence").key("decoders").begin_array();
  writer.begin_object().member("type", "Replace").key("pattern").begin_object();
  writer.member("String", kSpaceMark).end_object().member("content", " ").end_object();
  writer.begin_object().member("type", "ByteFallback").end_object();
  writer.begin_object().member("type", "Fuse").end_object();
  if (space_first) {
    writer.begin_object().member("type", "Strip").member("content", " ");
    writer.member("start", 1).member("stop", 0).end_object();
  }
  writer.end_array().end_object();
}

// Those of the file, as Gemma 4 has them, or those that the pieces' scores make.
void write_merges(const GgufMetadata& metadata, const SentencePieces& pieces, JsonWriter& writer) {
  if (metadata.string("tokenizer.ggml.model") == "gemma4") {
    constexpr std::string_view kMerges = "tokenizer.ggml.merges";
    const auto merges = metadata.strings(kMerges);
    if (!merges) {
      throw Error(ErrorCode::corrupt, fmt::format("{}: {} is missing", metadata.file(), kMerges));
    }
    for (const std::string_view merge : *merges) writer.string(merge);
    return;
  }
  for (const auto& [left, right] : merges_of_pieces(pieces.merging)) {
    writer.begin_array().string(left).string(right).end_array();
  }
}

}  // namespace

std::string gguf_sentence_piece_json(const GgufMetadata& metadata) {
  for (const char* key : {"tokenizer.ggml.precompiled_charsmap"}) {
    if (!metadata.contains(key)) continue;
    throw Error(ErrorCode::unsupported,
                fmt::format("{}: {} isn't supported", metadata.file(), key));
  }
  const GgufTokenTexts tokens(read_gguf_tokens(metadata));
  const SentencePieces pieces = sentence_pieces(metadata, tokens);
  const bool space_first = metadata.boolean("tokenizer.ggml.add_space_prefix").value_or(true);
  std::string json;
  JsonWriter writer(json);
  begin_tokenizer_json(writer);
  write_added_tokens(tokens, pieces.added, writer);
  write_space_steps(space_first, writer);
  writer.key("post_processor");
  write_gguf_frame(metadata, tokens, BeginningToken::yes, writer);
  write_space_decoder(space_first, writer);
  begin_bpe_model({.unknown = pieces.unknown, .byte_fallback = pieces.byte_fallback}, pieces.texts,
                  writer);
  writer.key("merges").begin_array();
  write_merges(metadata, pieces, writer);
  writer.end_array().end_object().end_object();
  return json;
}

}  // namespace paceline
