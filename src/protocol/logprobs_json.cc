#include "protocol/logprobs_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/utf8.h"

namespace paceline {
namespace {

// The API's number for "very unlikely"; JSON has no infinity.
constexpr float kVeryUnlikely = -9999.0f;

float told(float logprob) {
  return std::isfinite(logprob) ? std::max(logprob, kVeryUnlikely) : kVeryUnlikely;
}

// An array of what `write` writes of each token.
template <class Write>
void write_each(JsonWriter& writer, std::span<const ReportedToken> tokens, const Write& write) {
  writer.begin_array();
  for (const ReportedToken& reported : tokens) write(reported);
  writer.end_array();
}

std::string id_name(int32_t id) { return fmt::format("token_id:{}", id); }

// The token's text, with U+FFFD for ill-formed bytes.
std::string chat_name(const NamedToken& token, TokenNaming naming) {
  if (naming == TokenNaming::id || !token.bytes) return id_name(token.id);
  return replace_invalid_utf8(*token.bytes);
}

// Different tokens get different names, as they are keys of an object.
std::string completion_name(const NamedToken& token, TokenNaming naming) {
  if (naming == TokenNaming::id || !token.bytes) return id_name(token.id);
  if (is_valid_utf8(*token.bytes)) return *token.bytes;
  std::string name = "bytes:";
  for (const char byte : *token.bytes) {
    name += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
  }
  return name;
}

// Writes one object of alternatives; of two tokens with the same name, the likelier one.
void write_alternatives(JsonWriter& writer, const ReportedToken& reported, TokenNaming naming) {
  if (!reported.logprob) {
    writer.null();
    return;
  }
  std::vector<std::string> names;
  const auto write_one = [&](const NamedToken& token, float logprob) {
    std::string name = completion_name(token, naming);
    if (std::find(names.begin(), names.end(), name) != names.end()) return;
    writer.member(name, told(logprob));
    names.push_back(std::move(name));
  };
  writer.begin_object();
  for (const RankedToken& ranked : reported.top) write_one(ranked.token, ranked.logprob);
  write_one(reported.token, *reported.logprob);
  writer.end_object();
}

bool begins_inside_character(std::string_view text) {
  return !text.empty() && (static_cast<unsigned char>(text.front()) & 0xC0) == 0x80;
}

void write_offsets(JsonWriter& writer, std::span<const ReportedToken> tokens, std::string_view text,
                   int64_t offset) {
  write_each(writer.key("text_offset"), tokens, [&](const ReportedToken& reported) {
    // A token that begins inside a character has the offset of that character.
    writer.integer(offset - (begins_inside_character(text) ? 1 : 0));
    const size_t size = std::min(reported.text_bytes, text.size());
    offset += count_code_points(text.substr(0, size));
    text.remove_prefix(size);
  });
}

void write_chat_token(JsonWriter& writer, const NamedToken& token, float logprob,
                      TokenNaming naming) {
  writer.member("token", chat_name(token, naming)).member("logprob", told(logprob)).key("bytes");
  if (!token.bytes) {
    writer.null();
    return;
  }
  writer.begin_array();
  for (const char byte : *token.bytes) writer.integer(static_cast<unsigned char>(byte));
  writer.end_array();
}

// Writes an array of objects, each with an array of alternatives; `write` writes the members of
// both kinds of object.
template <class Write>
void write_with_alternatives(JsonWriter& writer, std::span<const ReportedToken> tokens,
                             const Write& write) {
  write_each(writer, tokens, [&](const ReportedToken& reported) {
    writer.begin_object();
    write(reported.token, reported.logprob.value_or(kVeryUnlikely));
    writer.key("top_logprobs").begin_array();
    for (const RankedToken& ranked : reported.top) {
      writer.begin_object();
      write(ranked.token, ranked.logprob);
      writer.end_object();
    }
    writer.end_array().end_object();
  });
}

void write_prompt_entry(JsonWriter& writer, const RankedToken& entry, std::optional<int64_t> rank) {
  writer.key(std::to_string(entry.token.id)).begin_object();
  writer.member("logprob", told(entry.logprob)).member("rank", rank);
  writer.member("decoded_token", entry.token.bytes);
  writer.end_object();
}

}  // namespace

void write_completion_logprobs(JsonWriter& writer, std::span<const ReportedToken> tokens,
                               std::string_view text, TokenNaming naming, int64_t first_offset) {
  writer.begin_object();
  write_each(writer.key("tokens"), tokens, [&](const ReportedToken& reported) {
    writer.string(completion_name(reported.token, naming));
  });
  write_each(writer.key("token_logprobs"), tokens, [&](const ReportedToken& reported) {
    reported.logprob ? writer.number(told(*reported.logprob)) : writer.null();
  });
  write_each(writer.key("top_logprobs"), tokens,
             [&](const ReportedToken& reported) { write_alternatives(writer, reported, naming); });
  write_offsets(writer, tokens, text, first_offset);
  writer.end_object();
}

void write_chat_logprobs(JsonWriter& writer, std::span<const ReportedToken> tokens,
                         TokenNaming naming) {
  write_with_alternatives(writer, tokens, [&](const NamedToken& token, float logprob) {
    write_chat_token(writer, token, logprob, naming);
  });
}

void write_probabilities(JsonWriter& writer, std::span<const ReportedToken> tokens,
                         TokenNaming naming) {
  write_with_alternatives(writer, tokens, [&](const NamedToken& token, float logprob) {
    writer.member("id", token.id);
    write_chat_token(writer, token, logprob, naming);
  });
}

void write_prompt_logprobs(JsonWriter& writer, std::span<const ReportedToken> tokens) {
  write_each(writer, tokens, [&](const ReportedToken& reported) {
    if (!reported.logprob) {
      writer.null();
      return;
    }
    writer.begin_object();
    bool has_own = false;
    int64_t rank = 0;
    for (const RankedToken& ranked : reported.top) {
      write_prompt_entry(writer, ranked, ++rank);
      has_own = has_own || ranked.token.id == reported.token.id;
    }
    if (!has_own) write_prompt_entry(writer, {reported.token, *reported.logprob}, std::nullopt);
    writer.end_object();
  });
}

void write_chat_choice_logprobs(JsonWriter& writer, const ReportedTokens& tokens,
                                TokenNaming naming) {
  writer.key("logprobs");
  if (!tokens) {
    writer.null();
    return;
  }
  writer.begin_object().key("content");
  write_chat_logprobs(writer, *tokens, naming);
  writer.key("refusal").null().end_object();
}

}  // namespace paceline
