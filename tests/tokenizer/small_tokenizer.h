// A tokenizer.json small enough to read, for tests that change one thing in it.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/error.h"
#include "paceline/tokenizer.h"
#include "tests/expect_error.h"

namespace paceline {

inline constexpr std::string_view kSmallTokenizer = R"({
  "version": "1.0", "truncation": null, "padding": null,
  "added_tokens": [
    {"id": 8, "content": "<s>", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true},
    {"id": 9, "content": "<x>", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": false}
  ],
  "normalizer": {"type": "NFC"},
  "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
  "post_processor": {"type": "TemplateProcessing",
    "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
    "pair": [],
    "special_tokens": {"<s>": {"id": "<s>", "ids": [8], "tokens": ["<s>"]}}},
  "decoder": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true},
  "model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
    "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false, "ignore_merges": false,
    "vocab": {"a": 0, "b": 1, "c": 2, "Ġ": 3, "ab": 4, "abc": 5, "Ġa": 6, "Ã": 7},
    "merges": [["a", "b"], "ab c", ["Ġ", "a"]]}
})";

// kSmallTokenizer with the first `from` replaced by `to`.
inline std::string changed(std::string_view from, std::string_view to) {
  std::string json(kSmallTokenizer);
  const size_t at = json.find(from);
  if (at == std::string::npos) throw std::logic_error("not in the file: " + std::string(from));
  return json.replace(at, from.size(), to);
}

// The error that refuses a file, as "code: message"; empty if it is accepted.
inline std::string refusal(std::string_view json) {
  return error_text([&] { Tokenizer::from_json(json, "t.json"); });
}

}  // namespace paceline
