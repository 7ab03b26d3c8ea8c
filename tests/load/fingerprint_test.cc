#include "load/fingerprint.h"
#include "tests/test_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <functional>

namespace paceline {
namespace {

namespace fs = std::filesystem;

class Fingerprint : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::copy(fs::path(PACELINE_SOURCE_DIR) / "tests/goldens/models/llama_plain", directory_);
  }

  std::string fingerprint(const std::function<void(LoadOptions&)>& change = [](LoadOptions&) {}) {
    LoadOptions options{.model = directory_.string(),
                        .kv_cache_memory_bytes = 1 << 20,
                        .num_threads = 1,
                        .fingerprint = true};
    change(options);
    return load_model(options)->fingerprint;
  }

  void append(const std::string& name, const std::string& text) {
    std::ofstream(directory_ / name, std::ios::app) << text;
  }

  TestDirectory temporary_;
  fs::path directory_ = temporary_.path() / "model";
};

TEST_F(Fingerprint, IsOneNameForWhatGivesTheSameBits) {
  const std::string usual = fingerprint();
  EXPECT_THAT(usual, ::testing::MatchesRegex("fp_[0-9a-f]{16}"));
  EXPECT_EQ(fingerprint(), usual);
  EXPECT_EQ(fingerprint([](LoadOptions& options) {
              options.num_threads = 2;
              options.block_size = 8;
              options.max_num_batched_tokens = 64;
              options.prefix_caching = false;
            }),
            usual);
  EXPECT_EQ(fingerprint([&](LoadOptions& options) {
              options.speculative_method = DraftMethod::ngram;
              options.num_speculative_tokens = 3;
              options.prompt_lookup_max = 4;
            }),
            usual);
  EXPECT_EQ(
      fingerprint([&](LoadOptions& options) { options.speculative_model = directory_.string(); }),
      usual);
}

TEST_F(Fingerprint, IsOneForAllNamesOfASetting) {
  const auto of = [&](Activations activations) {
    return fingerprint([&](LoadOptions& options) { options.activations = activations; });
  };
  EXPECT_EQ(of(Activations::int8), of(Activations::automatic));
  EXPECT_NE(of(Activations::int8), of(Activations::bfloat16));
}

TEST_F(Fingerprint, IsAnotherForWhatMayNot) {
  const std::string usual = fingerprint();
  EXPECT_NE(fingerprint([](LoadOptions& options) { options.dtype = DataType::bfloat16; }), usual);
  EXPECT_NE(fingerprint([](LoadOptions& options) { options.kv_cache_dtype = DataType::bfloat16; }),
            usual);
  EXPECT_NE(fingerprint([](LoadOptions& options) { options.kv_cache_dtype = DataType::int8; }),
            usual);
  EXPECT_NE(fingerprint([](LoadOptions& options) { options.kv_cache_dtype = DataType::int8; }),
            fingerprint([](LoadOptions& options) { options.kv_cache_dtype = DataType::bfloat16; }));
  const auto of_hybrid = [&](const std::string& name, DataType dtype) {
    return fingerprint([&](LoadOptions& options) {
      options.model = (fs::path(PACELINE_SOURCE_DIR) / "tests/goldens/hybrids" / name).string();
      options.state_dtype = dtype;
    });
  };
  EXPECT_EQ(of_hybrid("qwen3_5_text", DataType::float32),
            of_hybrid("qwen3_5_text", DataType::automatic));
  EXPECT_NE(of_hybrid("qwen3_5_text", DataType::float32),
            of_hybrid("qwen3_5_text", DataType::bfloat16));
  EXPECT_EQ(of_hybrid("lfm2_tied", DataType::float32), of_hybrid("lfm2_tied", DataType::bfloat16));
  EXPECT_NE(fingerprint([](LoadOptions& options) { options.max_kv_size = 8; }), usual);
  EXPECT_NE(fingerprint([](LoadOptions& options) { options.spec_accept = SpecAccept::rejection; }),
            usual);
  EXPECT_NE(fingerprint([](LoadOptions& options) { options.quantize = LoadQuantization::q4; }),
            usual);
  EXPECT_NE(fingerprint([](LoadOptions& options) { options.quantize = LoadQuantization::q8; }),
            fingerprint([](LoadOptions& options) { options.quantize = LoadQuantization::q4; }));
  const auto dummy = [&](uint64_t seed) {
    return fingerprint([seed](LoadOptions& options) {
      options.load_format = LoadFormat::dummy;
      options.seed = seed;
    });
  };
  EXPECT_NE(dummy(1), usual);
  EXPECT_NE(dummy(1), dummy(2));
  append("config.json", "\n");
  const std::string other_config = fingerprint();
  EXPECT_NE(other_config, usual);
  append("chat_template.jinja", "{{ messages }}");
  EXPECT_NE(fingerprint(), other_config);
}

TEST_F(Fingerprint, CostsNothingUnlessItIsAskedFor) {
  EXPECT_EQ(fingerprint([](LoadOptions& options) { options.fingerprint = false; }), "");
}

}  // namespace
}  // namespace paceline
