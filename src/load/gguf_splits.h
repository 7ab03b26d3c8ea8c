// The split patterns of byte-level BPE, by the names in GGUF files (tokenizer.ggml.pre).
#pragma once

#include <array>
#include <string_view>

#include "base/json_writer.h"

namespace paceline {

struct GgufSplit {
  std::string_view name;                          // tokenizer.ggml.pre
  std::array<std::string_view, 3> patterns = {};  // applied in order; none: GPT-2's
  bool single_digits = false;                     // digits are split off first
  bool composed = false;                          // text is normalised to NFC first
  bool ignore_merges = false;                     // a piece that is a token needs no merges
  bool begins_with_bos = false;                   // the default of add_bos_token
};

// An empty `name` is that of older files without the key, and means GPT-2's pattern. Throws Error
// unsupported "FILE: KEY: ..." with the name and the supported ones.
const GgufSplit& find_gguf_split(std::string_view name, std::string_view file);

// The values of `normalizer` and `pre_tokenizer` in a tokenizer.json.
void write_normalizer(const GgufSplit& split, JsonWriter& writer);
void write_pre_tokenizer(const GgufSplit& split, JsonWriter& writer);

}  // namespace paceline
