// The split patterns of byte-level BPE, by the names in GGUF files (tokenizer.ggml.pre).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/json_writer.h"

namespace paceline {

struct GgufSplit {
  enum class Digits : uint8_t { as_others, first, last };  // single ones are split off

  std::string_view name;                            // tokenizer.ggml.pre
  std::span<const std::string_view> patterns = {};  // applied in order; none: GPT-2's
  Digits digits = Digits::as_others;
  bool composed = false;         // text is normalised to NFC first
  bool ignore_merges = false;    // a piece that is a token needs no merges
  bool begins_with_bos = false;  // the default of add_bos_token
};

// All splits. The empty name is that of older files without the key, and means GPT-2's pattern.
std::span<const GgufSplit> gguf_splits();

// Throws Error unsupported "FILE: KEY: ..." with the name, the nearest supported ones and all.
const GgufSplit& find_gguf_split(std::string_view name, std::string_view file);

// The values of `normalizer` and `pre_tokenizer` in a tokenizer.json.
void write_normalizer(const GgufSplit& split, JsonWriter& writer);
void write_pre_tokenizer(const GgufSplit& split, JsonWriter& writer);

}  // namespace paceline
