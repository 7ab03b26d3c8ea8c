// Each request gets the same bits alone, batched, in chunks, preempted, on a warm cache, and as
// choices of one prompt.
#include "tests/llm/equalities.h"
#include "engine/channel.h"
#include "engine/step_engine.h"
#include "engine/step_record.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <set>
#include <string>

#include "engine/run_alone.h"
#include "load/loaded_model.h"
#include "tests/test_scale.h"
#include "text/completion_builder.h"
#include "text/make_request.h"

namespace paceline::testing {
namespace {

namespace fs = std::filesystem;

const fs::path& source() {
  static const fs::path path = PACELINE_SOURCE_DIR;
  return path;
}

std::vector<std::string> golden_models() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(source() / "tests/goldens/models")) {
    if (fs::exists(entry.path() / "config.json")) names.push_back(entry.path().filename());
  }
  std::sort(names.begin(), names.end());
  // Of latent attention one with experts in groups and one without experts; layers that differ.
  for (const char* const other : {"../latents/deepseek_v3_yarn", "../latents/minicpm3_longrope",
                                  "../mixed/gemma3n_streams", "../mixed/gemma4_layer_inputs"}) {
    names.emplace_back(other);
  }
  return names;
}

class Equalities : public ::testing::TestWithParam<std::string> {
 protected:
  LoadOptions model() const {
    return {.model = (source() / "tests/goldens/models" / GetParam()).string(),
            .max_model_len = 160,
            .num_threads = 1};
  }
};

TEST_P(Equalities, BatchedOrAlone) {
  const auto requests = mixed_requests(256, 20);
  const auto expected = alone(model(), requests);
  for (const auto& [name, change] : executions()) {
    SCOPED_TRACE(name);
    LoadOptions options = model();
    change(options);
    const int64_t preemptions = expect_same_together(options, requests, expected);
    // A cache of nothing but windows is never so tight.
    const bool is_all_windows =
        GetParam().find("_window") != std::string::npos || GetParam() == "cohere2_bias";
    if (name == "a_tight_cache" && !is_all_windows) {
      EXPECT_GT(preemptions, 0);
    }
  }
}

TEST_P(Equalities, FourChoicesOrFourRequests) {
  LLM llm = LLM::load(model());
  for (LLM::Request request : mixed_requests(256, 16)) {
    const auto choices = llm.generate_choices(request.prompt, request.options, 4);
    ASSERT_EQ(choices.size(), 4u);
    const uint64_t seed = *request.options.seed;
    for (uint64_t k = 0; k < 4; ++k) {
      request.options.seed = seed + k;
      expect_same_completion(choices[k], alone(model(), {request}).front());
    }
  }
}

TEST_P(Equalities, ClassifyAndScoreToo) {
  std::vector<Prompt> prompts;
  for (const LLM::Request& request : mixed_requests(256, 1)) prompts.push_back(request.prompt);
  LoadOptions one = model();
  one.max_num_seqs = 1;
  one.prefix_caching = false;
  LLM single = LLM::load(one);
  LoadOptions many = model();
  many.num_threads = 2;
  LLM batch = LLM::load(many);
  ClassifyOptions options{.with_logits = true};
  options.sampling.seed = 5;
  const auto results = batch.classify(prompts, options);
  for (size_t i = 0; i < prompts.size(); ++i) {
    const Classification expected = single.classify(prompts[i], options);
    const auto& found = std::get<Classification>(results[i]);
    EXPECT_EQ(found.token_id, expected.token_id);
    EXPECT_EQ(found.logits, expected.logits);
    const auto scored = batch.score(prompts[i], {.num_top_logprobs = 2});
    const auto expected_scores = single.score(prompts[i], {.num_top_logprobs = 2});
    ASSERT_EQ(scored.size(), expected_scores.size());
    for (size_t t = 0; t < scored.size(); ++t) {
      EXPECT_EQ(scored[t].logprob, expected_scores[t].logprob);
    }
  }
}

// Every third model under a sanitizer.
INSTANTIATE_TEST_SUITE_P(all, Equalities, ::testing::ValuesIn(cases_to_run(golden_models(), 0, 3)),
                         [](const auto& golden) {
                           return fs::path(golden.param).filename().string();
                         });

// Records the progress of each victim.
class PreemptionWatch : public StepObserver {
 public:
  void on_submitted(const Sequence&, int64_t) override {}
  void on_cancelled(RequestId, int64_t) override {}
  void on_step(const StepRecord& record) override {
    for (const auto& token : record.tokens) ++drawn_[token.id];
    // Preemption comes before the step's draws, and a victim draws nothing in it.
    for (const int64_t id : record.preempted) preempted_at.insert(drawn_[id]);
  }
  std::set<int64_t> preempted_at;

 private:
  std::map<int64_t, int64_t> drawn_;
};

// Two requests on pools of every size that holds one of them: the younger one is preempted after
// every possible number of drawn tokens.
TEST(EqualitiesPreempted, AtEveryPossibleStep) {
  constexpr int64_t kOutput = 12;
  LoadOptions options{.model = (source() / "tests/goldens/models/qwen3_tied").string(),
                      .max_model_len = 64,
                      .block_size = 1,
                      .num_threads = 1};
  const auto requests = mixed_requests(256, kOutput);
  std::vector<LLM::Request> pair = {requests[1], requests[3]};
  for (size_t i = 0; i < pair.size(); ++i) {
    auto ids = std::get<std::vector<int32_t>>(requests[4].prompt);
    ids.resize(20 - i);
    ids.front() = static_cast<int32_t>(i);  // nothing is shared
    pair[i].prompt = ids;
    pair[i].options.max_tokens = kOutput;
    pair[i].options.ignore_eos = true;
  }
  const auto expected = alone(options, pair);
  LoadOptions one = options;
  one.max_num_seqs = 1;
  const size_t context_bytes = LLM::load(one).model_info().kv_cache_bytes;
  std::set<int64_t> preempted_at;
  for (int64_t blocks = 32; blocks <= 64; ++blocks) {
    LoadOptions tight = options;
    tight.max_model_len = 32;
    tight.kv_cache_memory_bytes = context_bytes / 64 * static_cast<size_t>(blocks);
    const auto model = load_model(tight);
    const TextModel text = text_model(*model);
    PreemptionWatch watch;
    model->engine->set_observer(&watch);
    std::vector<CompletionBuilder> builders;
    const auto channel = std::make_shared<Channel>();
    for (size_t i = 0; i < pair.size(); ++i) {
      GenerateRequest request = make_request(text, pair[i].prompt, pair[i].options);
      builders.emplace_back(text, completion_shape(request));
      model->engine->submit(std::move(request), channel, static_cast<int64_t>(i));
    }
    std::vector<TokenEvent> events;
    while (model->engine->step()) {
      static_cast<StepEngine&>(*model->engine).check_integrity();
      channel->poll(events);
      for (TokenEvent& event : events) builders[static_cast<size_t>(event.tag)].add(event);
    }
    channel->poll(events);
    for (TokenEvent& event : events) builders[static_cast<size_t>(event.tag)].add(event);
    for (size_t i = 0; i < builders.size(); ++i) {
      SCOPED_TRACE(::testing::Message() << blocks << " blocks, request " << i);
      expect_same_completion(builders[i].completion(), expected[i]);
    }
    preempted_at.insert(watch.preempted_at.begin(), watch.preempted_at.end());
  }
  // With every token drawn there is nothing left to preempt.
  for (int64_t drawn = 1; drawn < kOutput; ++drawn) {
    EXPECT_TRUE(preempted_at.contains(drawn))
        << drawn << " of " << ::testing::PrintToString(preempted_at);
  }
}

// Text and stop strings, on the bundled model.
TEST(EqualitiesText, BatchedOrAloneWithStopStrings) {
  const fs::path path = source() / "models/paceline-10m";
  if (!fs::exists(path / "model.safetensors")) GTEST_SKIP() << "the bundled model isn't here";
  const LoadOptions model{.model = path.string(), .max_model_len = 256, .num_threads = 1};
  std::vector<LLM::Request> requests = mixed_requests(4096, is_full_scale() ? 24 : 10);
  const char* const texts[] = {"It was a dark and stormy night, and the old man",
                               "It was a dark and stormy night, and the young lady"};
  for (size_t i = 0; i < requests.size(); ++i) {
    if (i % 2 == 0) requests[i].prompt = texts[i / 2 % 2];
    requests[i].options.stop = {" the ", "\n\n", "qz"};
  }
  const auto expected = alone(model, requests);
  for (const auto& [name, change] : executions()) {
    SCOPED_TRACE(name);
    LoadOptions options = model;
    change(options);
    expect_same_together(options, requests, expected);
  }
}

}  // namespace
}  // namespace paceline::testing
