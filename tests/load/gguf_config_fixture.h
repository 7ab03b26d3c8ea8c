// GGUF files of a few keys, and the configs that they are read as.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "load/gguf_config.h"
#include "models/family.h"
#include "tests/expect_error.h"
#include "tests/weights/gguf_writer.h"
#include "tests/weights/written_files.h"
#include "weights/checkpoint.h"

namespace paceline {

// The required keys of an architecture, except `left_out`.
inline GgufWriter small_file(const std::string& arch, std::string_view left_out = {}) {
  GgufWriter writer;
  writer.string("general.architecture", arch);
  const auto size = [&](std::string_view key, uint32_t value) {
    if (key != left_out) writer.number(arch + "." + std::string(key), value);
  };
  size("block_count", 6);
  size("context_length", 512);
  size("embedding_length", 32);
  size("feed_forward_length", 64);
  size("attention.head_count", 4);
  size("attention.head_count_kv", 2);
  if (left_out != "attention.layer_norm_rms_epsilon") {
    writer.number(arch + ".attention.layer_norm_rms_epsilon", 1e-5f);
  }
  writer.floats("token_embd.weight", {10, 32}, std::vector<float>(320));
  return writer;
}

class GgufConfigTest : public ::testing::Test {
 protected:
  Json config(const GgufWriter& writer) {
    directory_.write("model.gguf", writer.file());
    return gguf_config(GgufFile(directory_.path() / "model.gguf"));
  }

  // The config as the model's family reads it.
  DecoderConfig decoder(const GgufWriter& writer) {
    const auto weights = make_dummy_checkpoint(DType::f32, 0, memory_);
    return read_decoder_config(config(writer), WeightReader(*weights), "config.json");
  }

  void expect_refused(ErrorCode code, const std::vector<std::string>& parts,
                      const GgufWriter& writer) {
    expect_error(code, parts, [&] { decoder(writer); });
  }

  TestDirectory directory_;
  Memory memory_;
};

inline std::vector<int64_t> windows_of(const DecoderConfig& config) {
  std::vector<int64_t> windows;
  for (const LayerConfig& layer : config.layers) windows.push_back(layer.window);
  return windows;
}

}  // namespace paceline
