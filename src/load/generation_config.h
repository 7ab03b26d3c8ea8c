// Reads a model's GenerationConfig from generation_config.json and config.json.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/model_files.h"
#include "text/generation_config.h"

namespace paceline {

// Reads generation_config.json and, if missing there, the eos and bos ids of config.json; both
// files may be absent. Ids outside [0, vocab_size) are noted and left out, numbers out of their
// ranges noted and replaced by the nearest; what can't be obeyed becomes the problem. Throws Error
// invalid for a file that isn't a JSON object.
GenerationConfig read_generation_config(const ModelFiles& files, int64_t vocab_size);

// What to say about it when a model is loaded that generates.
std::vector<std::string> generation_notes(const GenerationConfig& config);

enum class GenerationFieldUse : uint8_t {
  obeyed,
  refused,  // unless it is null or neutral
  without_effect,
};

// A field of transformers' class GenerationConfig.
struct GenerationField {
  std::string_view name;
  GenerationFieldUse use = GenerationFieldUse::obeyed;
  std::string_view why = {};      // of one that isn't obeyed
  std::string_view neutral = {};  // JSON of the value that changes nothing; empty: null alone
};

// All of them, and nothing else.
std::span<const GenerationField> generation_config_fields();

}  // namespace paceline
