// The library's calls with adapters: each takes the named one, and the base stays as it is.
#include <gtest/gtest.h>

#include "load/loaded_model.h"
#include "load/stored_model.h"
#include "models/decoder_config.h"
#include "paceline/llm.h"
#include "tests/expect_error.h"
#include "tests/models/adapter_directory.h"
#include "tests/models/random_adapter.h"
#include "tests/source_path.h"

namespace paceline::testing {
namespace {

const std::vector<int32_t> kAdapterPrompt = {57, 75, 187, 186, 44, 182, 183, 254, 16, 122, 73, 82};

class LlmAdapters : public ::testing::Test {
 protected:
  LlmAdapters() {
    const DecoderConfig config =
        read_model_config(open_model_source(options_.model), LoadFormat::files);
    options_.loras = {{.name = "first", .path = directory_.write("a", config, {.seed = 1})},
                      {.name = "second", .path = directory_.write("b", config, {.seed = 2})}};
  }

  AdapterDirectory directory_;
  LoadOptions options_ = {.model = source_path("tests/goldens/models/qwen3_tied"),
                          .num_threads = 1};
};

TEST_F(LlmAdapters, ManyInOneBatchAreEachAsAlone) {
  LLM llm = LLM::load(options_);
  LoadOptions plain_options = options_;
  plain_options.loras.clear();
  LLM plain = LLM::load(plain_options);
  std::vector<LLM::Request> requests;
  std::vector<std::vector<int32_t>> alone;
  for (const std::string name : {"", "first", "second", "first", "", "second"}) {
    requests.push_back({kAdapterPrompt, {.max_tokens = 12, .temperature = 0.0f, .lora = name}});
    alone.push_back(llm.generate(kAdapterPrompt, requests.back().options).completion().token_ids);
  }
  EXPECT_EQ(alone[0], plain.generate(kAdapterPrompt, requests[0].options).completion().token_ids);
  EXPECT_NE(alone[0], alone[1]);
  EXPECT_NE(alone[1], alone[2]);
  const auto together = llm.batch_generate(requests);
  for (size_t i = 0; i < requests.size(); ++i) {
    EXPECT_EQ(std::get<Completion>(together[i]).token_ids, alone[i]) << i;
  }
}

TEST_F(LlmAdapters, ScoresAndClassesAreTheAdapters) {
  LLM llm = LLM::load(options_);
  const auto last = [&](const std::string& name) {
    return llm.score(kAdapterPrompt, {.lora = name}).back().logprob;
  };
  EXPECT_NE(last(""), last("first"));
  EXPECT_NE(last("second"), last("first"));
  EXPECT_EQ(last("first"), last("first"));
  const auto row = [&](const std::string& name) {
    return llm.classify(kAdapterPrompt, {.with_logits = true, .sampling = {.lora = name}}).logits;
  };
  EXPECT_NE(row(""), row("first"));
  EXPECT_EQ(row("second"), row("second"));
}

TEST_F(LlmAdapters, AnUnknownNameIsAnErrorThatListsTheKnownOnes) {
  LLM llm = LLM::load(options_);
  expect_error(ErrorCode::not_found, {"lora: \"third\"", "first, second"},
               [&] { llm.generate(kAdapterPrompt, {.lora = "third"}); });
  options_.loras.clear();
  LLM plain = LLM::load(options_);
  expect_error(ErrorCode::not_found, {"lora: \"first\"", "--lora first=DIR"},
               [&] { plain.generate(kAdapterPrompt, {.lora = "first"}); });
}

}  // namespace
}  // namespace paceline::testing
