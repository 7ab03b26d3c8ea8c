// The parts of tokenizer.json around the model: normalizer, pre-tokenizer, post-processor, decoder.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "base/json_document.h"
#include "paceline/tokenizer.h"
#include "tokenizer/normalizer.h"
#include "tokenizer/pre_tokenizer.h"
#include "tokenizer/token_decoder.h"

namespace paceline {

// The post-processor's changes to an encoded text.
struct SpecialFrame {
  std::vector<TokenId> before;  // special tokens around the text
  std::vector<TokenId> behind;
  // Spans are trimmed of white space at their ends, once per entry.
  struct Trim {
    bool add_prefix_space = true;  // one space before the text was added by the tokenizer
  };
  std::vector<Trim> trims;
  // A pair of texts, in order.
  struct Part {
    enum class Kind : uint8_t { first, second, tokens };
    Kind kind = Kind::tokens;
    std::vector<TokenId> ids = {};  // of tokens
    int32_t type_id = 0;
    int32_t bare_type_id = 0;  // without special tokens
  };
  std::vector<Part> pair = {{.kind = Part::Kind::first},
                            {.kind = Part::Kind::second, .type_id = 1, .bare_type_id = 1}};
  bool pairs = true;  // whether `pair` holds one of each text
};

struct PieceSplitter {
  std::unique_ptr<PreTokenizer> pre_tokenizer;
  bool byte_level = false;  // merging reads every byte of a piece as its byte-level character
};

// Each reads its field of tokenizer.json (nothing: absent or null). They throw Error unsupported
// naming the unimplemented part, corrupt naming the wrong field.

// Null when there is none.
std::unique_ptr<Normalizer> read_normalizer(const std::optional<DocumentCursor>& field);

// Puts Lowercase before a tokenizer's normalizer unless that has lower case among its steps, as
// sentence-transformers 6 does for its do_lower_case.
std::unique_ptr<Normalizer> with_lower_case(std::unique_ptr<Normalizer> normalizer);

// `prefix_space`: overrides add_prefix_space of ByteLevel.
PieceSplitter read_pre_tokenizer(const std::optional<DocumentCursor>& field,
                                 std::optional<bool> prefix_space = std::nullopt);

// The ids are the file's; the caller checks that they exist.
SpecialFrame read_post_processor(const std::optional<DocumentCursor>& field);

TokenDecoder read_decoder(const std::optional<DocumentCursor>& field);

// Throws Error unsupported "FILE: WHAT isn't supported"; the field is of that file.
[[noreturn]] void refuse_part(const DocumentCursor& field, std::string_view what);

// The parts of a field of type Sequence, from its member `list`, with nested ones flattened; else
// the field alone.
std::vector<DocumentCursor> parts_of(const DocumentCursor& field, std::string_view list);

// Reads {"String": ...} or {"Regex": ...}; `what` names the part in errors.
std::unique_ptr<TextPattern> read_pattern(const DocumentCursor& field, std::string_view what);

// A string of one character.
std::string_view read_character(const DocumentCursor& field);

}  // namespace paceline
