// A weights key identifies everything that the bytes of a model's packed weights depend on.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/mapped_file.h"
#include "tensor/dtype.h"

namespace paceline {

// The files and settings that packed weights are made from.
struct WeightsOrigin {
  std::span<const MappedFile> files;  // the checkpoint's
  std::string_view config;            // the text of config.json
  DType dtype = DType::f32;           // of plain weights
  std::string_view quantize;          // --quantize
  bool keeps_quantised = true;        // false: quantised ones are dequantised
};

// Lines of ASCII: the program's build, the layout of panels, the settings, a digest of the config,
// and for each file its name, size, times and a digest of its beginning, where the header is. The
// instruction set, threads, type of activations and windows don't affect panels and aren't
// included.
std::string weights_key(const WeightsOrigin& origin);

// 32 hex digits of a digest of the key, and ".weights".
std::string weights_file_name(std::string_view key);

// Whether the paths still lead to the mapped files, and none was modified since.
bool are_unchanged(std::span<const MappedFile> files);

}  // namespace paceline
