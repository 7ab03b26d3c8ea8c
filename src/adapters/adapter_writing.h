// What the writers of all formats share.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "adapters/adapter.h"
#include "adapters/pair_collector.h"
#include "base/json_writer.h"

namespace paceline {

struct MatrixFile {
  std::string_view format;  // of the file's metadata
  std::function<std::string(const LoraPair& pair, LoraSide side)> name_of;
  bool transposed = false;  // [in, rank] and [rank, out]
};

// Writes all matrices to a new safetensors file.
void write_matrices(const Adapter& adapter, const std::filesystem::path& path,
                    const MatrixFile& file);

// An alpha and a scale as numbers of a config, from which the pair's float32 scale can be computed
// again: the pair's own where its alpha / rank is the scale, else scale x rank, which is exact.
double alpha_to_write(const LoraPair& pair);
double scale_to_write(const LoraPair& pair);

// An integer where it is one: PEFT's alphas usually are.
void write_number(JsonWriter& json, double value);

}  // namespace paceline
