// Adapters' files truncated or changed at every byte: each loads, or throws an Error that names it,
// and none takes more memory than its file has bytes (of Q8_0: four times that).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>
#include <iostream>

#include "base/mapped_file.h"
#include "base/random.h"
#include "tests/adapters/written_adapters.h"
#include "tests/source_path.h"
#include "tests/test_scale.h"

namespace paceline {
namespace {

constexpr size_t kMaxFileBytes = 1 << 20;

// Names the modules of any file, so that damage reaches the tensors behind them.
std::optional<GgufModule> any_module(const GgufMetadata&, std::string_view tensor) {
  return GgufModule{"layers.0." + std::string(tensor), tensor.find("attn_q") != tensor.npos};
}

class AdapterDamage : public testing::TestWithParam<std::pair<std::string, std::string>> {
 protected:
  AdapterDamage() {
    base_.gguf_module = any_module;
    const std::filesystem::path source = source_path("tests/goldens/adapters/" + GetParam().first);
    if (!std::filesystem::is_directory(source)) {
      whole_ = read_text_file(source, kMaxFileBytes);
      path_ = directory_.path() / GetParam().second;
      opened_ = path_;
      return;
    }
    for (const auto& entry : std::filesystem::directory_iterator(source)) {
      std::filesystem::copy(entry.path(), directory_.path());
    }
    path_ = directory_.path() / GetParam().second;
    opened_ = directory_.path();
    whole_ = read_text_file(path_, kMaxFileBytes);
  }

  bool loads(const std::string& content) {
    directory_.write(path_.filename().string(), content);
    memory_.clear_cache();
    memory_.reset_peak();
    bool loaded = false;
    try {
      read_adapter(opened_, base_, memory_);
      loaded = true;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr(directory_.path().string()));
      EXPECT_NE(error.code(), ErrorCode::internal) << error.what();
    }
    EXPECT_LE(memory_.stats().peak_bytes, kMaxPeakBytes);
    return loaded;
  }

  static constexpr size_t kMaxPeakBytes = 256 << 10;
  TestDirectory directory_;
  std::filesystem::path path_;
  std::filesystem::path opened_;
  std::string whole_;
  Memory memory_;
  AdapterBase base_;  // not known: shapes aren't checked against one
};

TEST_P(AdapterDamage, CutAnywhereIsRefused) {
  ASSERT_TRUE(loads(whole_));
  const size_t content_end = whole_.find_last_not_of('\n') + 1;
  const size_t step = whole_.size() / static_cast<size_t>(scaled(100, 100'000)) + 1;
  for (size_t size = 0; size < content_end; size += step) {
    EXPECT_FALSE(loads(whole_.substr(0, size))) << size;
  }
}

TEST_P(AdapterDamage, OneChangedByteLoadsOrIsRefused) {
  const auto num_cases = static_cast<uint64_t>(scaled(300, 100'000));
  uint64_t num_loaded = 0;
  for (uint64_t i = 0; i < num_cases; ++i) {
    const auto draw = philox4x32(23, i);
    std::string changed = whole_;
    change_byte(changed, draw[0] % changed.size(), draw[1]);
    num_loaded += loads(changed) ? 1 : 0;
  }
  EXPECT_GT(num_loaded, num_cases / 20);
  EXPECT_LT(num_loaded, num_cases - num_cases / 100);
}

TEST_P(AdapterDamage, SeveralChangedBytesLoadOrAreRefused) {
  constexpr std::string_view kLikely = "{}[]\",:0123456789-.eE\\u x\0\xFF()*+";
  const auto num_cases = static_cast<uint64_t>(scaled(300, 100'000));
  for (uint64_t i = 0; i < num_cases; ++i) {
    std::string changed = whole_;
    for (uint64_t j = 0; j < 2 + i % 6; ++j) {
      const auto draw = philox4x32(29, i, j);
      changed[draw[0] % std::min<size_t>(changed.size(), 1200)] = kLikely[draw[1] % kLikely.size()];
    }
    loads(changed);
  }
}

INSTANTIATE_TEST_SUITE_P(Files, AdapterDamage,
                         testing::Values(std::pair{"peft_llama_rslora",
                                                   "adapter_model.safetensors"},
                                         std::pair{"peft_llama_rslora", "adapter_config.json"},
                                         std::pair{"peft_llama", "adapter_config.json"},
                                         std::pair{"mlx_llama", "adapters.safetensors"},
                                         std::pair{"mlx_llama", "adapter_config.json"},
                                         std::pair{"llama.gguf", "llama.gguf"}));

// Patterns from strangers end, whatever the names.
TEST(AdapterPatterns, HostileConfigsEndQuickly) {
  const TestDirectory directory;
  Memory memory;
  const AdapterBase base = small_base(200);
  std::vector<FileTensor> tensors;
  for (int layer = 0; layer < 200; ++layer) {
    tensors = joined(
        tensors, peft_pair("model.layers." + std::to_string(layer) + ".self_attn.q_proj", {8, 4}));
  }
  std::string patterns;
  for (int i = 0; i < 2000; ++i) {
    patterns +=
        (i == 0 ? "" : ",") + std::string("\"(a|.){1,9}(.*)*") + std::to_string(i) + "[xy]\": 2";
  }
  write_peft(directory, peft_config("\"rank_pattern\": {" + patterns + "},"), tensors);
  const std::clock_t start = std::clock();
  const std::string text = error_text([&] { read_adapter(directory.path(), base, memory); });
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  EXPECT_THAT(text, testing::HasSubstr("exhausted"));
  EXPECT_LT(seconds, 30.0);
}

// As after AdaLoRA or EVA: a rank for each module.
TEST(AdapterPatterns, APatternForEachModuleIsQuick) {
  const TestDirectory directory;
  Memory memory;
  const AdapterBase base = small_base(126);
  std::vector<FileTensor> tensors;
  std::string patterns;
  for (const std::string& module : base.modules) {
    if (module == "lm_head") continue;
    const auto pair = peft_pair("model." + module, *base.size_of(module));
    tensors.insert(tensors.end(), pair.begin(), pair.end());
    patterns += (patterns.empty() ? "\"model." : ",\"model.") + module + "\": 2";
  }
  write_peft(
      directory,
      peft_config("\"rank_pattern\": {" + patterns + "}, \"alpha_pattern\": {" + patterns + "},"),
      tensors);
  const std::clock_t start = std::clock();
  const Adapter adapter = read_adapter(directory.path(), base, memory);
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  EXPECT_EQ(adapter.pairs().size(), 126u * 7);
  EXPECT_EQ(adapter.pairs().back().scale, 1);
  std::cout << "882 pairs, 882 patterns of ranks and of alphas: " << seconds << " s\n";
  EXPECT_LT(seconds, 10.0);
}

}  // namespace
}  // namespace paceline
