// A weights key identifies everything that decides the bytes of a model's packed weights.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/mapped_file.h"
#include "tensor/dtype.h"

namespace paceline {

// What weights are made of and how.
struct WeightsOrigin {
  std::span<const MappedFile> files;  // the checkpoint's
  std::string_view config;            // the text of config.json
  DType dtype = DType::f32;           // of plain weights
  std::string_view quantize;          // --quantize
  bool keeps_quantised = true;        // false: quantised ones are made plain
};

// Lines of ASCII: the program's build, the layout of panels, the settings, a digest of the config,
// and for each file its name, size, times and a digest of its beginning, where the header is. The
// instruction set, threads, the type of activations and windows change no panel and don't enter.
std::string weights_key(const WeightsOrigin& origin);

// 32 hex digits of a digest of the key, and ".weights".
std::string weights_file_name(std::string_view key);

// Whether the paths still lead to the files that were mapped, and none was written to since.
bool are_unchanged(std::span<const MappedFile> files);

}  // namespace paceline
