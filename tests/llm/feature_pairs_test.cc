// Every pair of request features has the same completion, to the last bit, in every way of running
// it.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <string>

#include "base/option_names.h"
#include "load/loaded_model.h"
#include "load/stored_model.h"
#include "models/decoder_config.h"
#include "paceline/llm.h"
#include "tests/llm/stored_formats.h"
#include "tests/models/adapter_directory.h"
#include "tests/models/random_adapter.h"
#include "tests/source_path.h"
#include "tests/test_scale.h"

namespace paceline {
namespace {

const std::vector<int32_t> kPrompt = {57, 75, 187, 186, 44, 182, 183, 254, 16,  122, 73, 82,
                                      79, 17, 142, 48,  38, 175, 23,  87,  207, 253, 184};

using Feature = std::function<void(GenerateOptions&)>;

const std::map<std::string, Feature>& features() {
  static const std::map<std::string, Feature> all = {
      {"greedy", [](GenerateOptions& o) { o.temperature = 0.0f; }},
      {"seeded", [](GenerateOptions& o) { o.seed = 1234; }},
      {"logprobs", [](GenerateOptions& o) { o.logprobs = 5; }},
      {"prompt_logprobs", [](GenerateOptions& o) { o.prompt_logprobs = true; }},
      {"repetition_penalty", [](GenerateOptions& o) { o.repetition_penalty = 1.3f; }},
      {"other_penalties",
       [](GenerateOptions& o) {
         o.frequency_penalty = 0.4f;
         o.presence_penalty = 0.3f;
       }},
      {"logit_bias",
       [](GenerateOptions& o) {
         o.logit_bias.insert(o.logit_bias.end(), {{10, 2.5f}, {200, -100.0f}});
       }},
      {"allowed_token_ids",
       [](GenerateOptions& o) {
         for (int32_t id = 0; id < 256; id += 3) o.allowed_token_ids.push_back(id);
         o.logit_bias.emplace_back(99, -std::numeric_limits<float>::infinity());
       }},
      {"logprob_token_ids",
       [](GenerateOptions& o) {
         o.logprobs = 0;
         o.logprob_token_ids = {201, 7, 30};
       }},
      {"truncation",
       [](GenerateOptions& o) {
         o.top_k = 30;
         o.top_p = 0.9f;
         o.min_p = 0.01f;
       }},
      {"rarer_truncation",
       [](GenerateOptions& o) {
         o.typical_p = 0.8f;
         o.top_n_sigma = 2.0f;
       }},
      {"mlx_order",
       [](GenerateOptions& o) {
         o.mlx_sampler_order = true;
         o.top_p = 0.8f;
         o.temperature = 0.7f;
       }},
      {"adapter", [](GenerateOptions& o) { o.lora = "first"; }},
      {"stop_tokens",
       [](GenerateOptions& o) {
         o.stop_token_ids = {3, 99, 140, 201};
       }},
  };
  return all;
}

struct PairsDirectory {
  std::filesystem::path path =
      std::filesystem::path(::testing::TempDir()) / ("feature_pairs_" + std::to_string(::getpid()));
  ~PairsDirectory() { std::filesystem::remove_all(path); }
};

// A cache for sixteen sequences that has keys and values of one. Where layers have states, it has
// half as much more for these: else a single sequence would run, and none would be preempted.
size_t scarce_memory(const LoadOptions& options) {
  const ModelInfo model = LLM::load(options).model_info();
  return model.num_states == 0 ? model.kv_cache_bytes : model.kv_cache_bytes * 3 / 2;
}

// Little more than what one sequence needs, from `bytes` on.
void take_least_memory(LoadOptions& options, size_t bytes) {
  for (;; bytes += bytes / 4) {
    options.kv_cache_memory_bytes = bytes;
    try {
      LLM::load(options);
      return;
    } catch (const Error& error) {
      ASSERT_EQ(error.code(), ErrorCode::exhausted);
    }
  }
}

const std::map<std::string, std::function<void(LoadOptions&)>>& executions() {
  static const std::map<std::string, std::function<void(LoadOptions&)>> all = {
      {"two_threads", [](LoadOptions& o) { o.num_threads = 2; }},
      {"chunks_of_1", [](LoadOptions& o) { o.max_num_batched_tokens = 1; }},
      {"chunks_of_7", [](LoadOptions& o) { o.max_num_batched_tokens = 7; }},
      {"blocks_of_5", [](LoadOptions& o) { o.block_size = 5; }},
      {"preempted",
       [](LoadOptions& o) {
         o.block_size = 1;
         o.max_model_len = 64;
         o.kv_cache_memory_bytes = scarce_memory(o);
       }},
      {"drafted_by_itself",
       [](LoadOptions& o) {
         o.speculative_model = o.model;
         o.num_speculative_tokens = 5;
         o.adaptive_drafts = false;
       }},
      {"drafted_from_the_text",
       [](LoadOptions& o) {
         o.speculative_method = DraftMethod::ngram;
         o.num_speculative_tokens = 3;
         o.prompt_lookup_min = 1;
         o.adaptive_drafts = false;
         o.num_threads = 2;
         o.block_size = 5;
       }},
      {"drafted_and_preempted",
       [](LoadOptions& o) {
         o.block_size = 1;
         o.max_model_len = 64;
         const ModelInfo model = LLM::load(o).model_info();
         // The draft model gets half.
         const size_t bytes = model.num_states == 0 ? model.kv_cache_bytes : 2 * scarce_memory(o);
         o.speculative_model = o.model;
         o.num_speculative_tokens = 8;
         o.adaptive_drafts = false;
         take_least_memory(o, bytes);
       }},
      {"all_together",
       [](LoadOptions& o) {
         o.num_threads = 3;
         o.pin_threads = true;
         o.max_num_batched_tokens = 3;
         o.block_size = 64;
       }},
      {"mapped",
       [](LoadOptions& o) {
         static const PairsDirectory directory;
         o.weights_cache = directory.path.string();
         LLM::load(o);
         EXPECT_EQ(LLM::load(o).model_info().weights_cache.outcome,
                   WeightsCacheUse::Outcome::reused);
       }},
  };
  return all;
}

void expect_same_logprobs(const std::vector<Logprob>& a, const std::vector<Logprob>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].id, b[i].id);
    EXPECT_EQ(a[i].logprob, b[i].logprob);
    ASSERT_EQ(a[i].top.size(), b[i].top.size());
    for (size_t t = 0; t < a[i].top.size(); ++t) {
      EXPECT_EQ(a[i].top[t].id, b[i].top[t].id);
      EXPECT_EQ(a[i].top[t].logprob, b[i].top[t].logprob);
    }
  }
}

void expect_same(const Completion& a, const Completion& b) {
  EXPECT_EQ(a.token_ids, b.token_ids);
  EXPECT_EQ(a.text, b.text);
  EXPECT_EQ(a.finish_reason, b.finish_reason);
  EXPECT_EQ(a.stop_reason, b.stop_reason);
  EXPECT_EQ(a.usage.completion_tokens, b.usage.completion_tokens);
  expect_same_logprobs(a.logprobs, b.logprobs);
  expect_same_logprobs(a.prompt_logprobs, b.prompt_logprobs);
}

// Features that need a tokenizer.
const std::map<std::string, Feature>& text_features() {
  static const std::map<std::string, Feature> all = [] {
    std::map<std::string, Feature> more = features();
    more["bad_words"] = [](GenerateOptions& o) { o.bad_words = {"the", "and", "was a", "e"}; };
    more["skip_special_tokens"] = [](GenerateOptions& o) {
      o.skip_special_tokens = false;
      o.ignore_eos = true;
      o.logit_bias.emplace_back(4097, 6.0f);  // <|im_start|>
    };
    // Most of its text is forced; the rest is masked. Restrictions of other features leave enough
    // tokens to write it.
    more["json_schema"] = [](GenerateOptions& o) {
      for (int32_t id = 0; !o.allowed_token_ids.empty() && id < 1024; ++id) {
        o.allowed_token_ids.push_back(id);
      }
      o.constraint = {.kind = ConstraintSpec::Kind::json_schema,
                      .text = R"({"type": "object", "required": ["id", "tags"], "properties":
                      {"id": {"type": "string", "maxLength": 12},
                       "tags": {"type": "array", "items": {"enum": ["old", "now", "no"]}}}})"};
    };
    more["regex"] = [](GenerateOptions& o) {
      o.constraint = {.kind = ConstraintSpec::Kind::regex, .text = "([a-z]+[ ,.]? ?)+"};
    };
    return more;
  }();
  return all;
}

// Requests of all pairs, in the map's order; every twelfth under a sanitizer.
using Crossed = std::map<std::string, Feature>;
std::vector<LLM::Request> all_pairs(
    const Crossed& crossed, const Prompt& prompt, const GenerateOptions& start,
    const std::function<bool(const std::string&, const std::string&)>& takes = {}) {
  std::vector<LLM::Request> requests;
  for (auto first = crossed.begin(); first != crossed.end(); ++first) {
    for (auto second = first; second != crossed.end(); ++second) {
      if (takes && !takes(first->first, second->first)) continue;
      GenerateOptions options = start;
      first->second(options);
      if (second != first) second->second(options);
      requests.push_back({prompt, options});
    }
  }
  return cases_to_run(requests, 0, 12);
}

std::vector<Completion> one_by_one(LLM& llm, const std::vector<LLM::Request>& requests) {
  std::vector<Completion> completions;
  for (const LLM::Request& request : requests) {
    completions.push_back(llm.generate(request.prompt, request.options).completion());
  }
  return completions;
}

// Those at first, first + step, first + 2 * step and so on.
template <class T>
std::vector<T> every(const std::vector<T>& all, size_t step, size_t first = 0) {
  std::vector<T> some;
  for (size_t i = first; i < all.size(); i += step) some.push_back(all[i]);
  return some;
}

// Requests of every sixth pair of features from `first` on; of all pairs at full scale.
std::vector<LLM::Request> sixth_of_pairs(size_t first, int64_t max_tokens) {
  const bool is_full = is_full_scale();
  const auto all =
      all_pairs(features(), kPrompt, {.max_tokens = is_full ? 24 : max_tokens, .seed = 7});
  return is_full ? all : every(all, 6, first);
}

// Runs each request as the third of four choices of a request with a seed two lower.
std::vector<Completion> as_choices(LLM& llm, std::vector<LLM::Request> requests) {
  std::vector<Completion> completions;
  for (LLM::Request& request : requests) {
    *request.options.seed -= 2;
    completions.push_back(llm.generate_choices(request.prompt, request.options, 4)[2]);
  }
  return completions;
}

std::vector<Completion> together(LLM& llm, const std::vector<LLM::Request>& requests) {
  std::vector<Completion> completions;
  for (auto& result : llm.batch_generate(requests)) {
    completions.push_back(std::get<Completion>(std::move(result)));
  }
  return completions;
}

void expect_all_same(const std::vector<Completion>& found,
                     const std::vector<Completion>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    SCOPED_TRACE(i);
    expect_same(found[i], expected[i]);
  }
}

// Adapters of the model, of which requests use the first.
std::vector<LoraSource> adapters_of(const LoadOptions& options,
                                    const testing::AdapterDirectory& directory) {
  const DecoderConfig config =
      read_model_config(open_model_source(options.model), LoadFormat::files);
  return {{.name = "first", .path = directory.write("first", config, {.size = 0.1f})},
          {.name = "second", .path = directory.write("second", config, {.seed = 2})}};
}

// Runs the requests in every way, or in the named ways. Returns how often sequences were preempted
// in each.
std::map<std::string, int64_t> cross_all(LoadOptions base,
                                         const std::vector<LLM::Request>& requests,
                                         const std::set<std::string>& ways = {}) {
  std::map<std::string, int64_t> preemptions;
  const testing::AdapterDirectory directory;
  base.loras = adapters_of(base, directory);
  LLM plain = LLM::load(base);
  const std::vector<Completion> expected = one_by_one(plain, requests);
  for (const auto& [name, change] : executions()) {
    if (!ways.empty() && !ways.contains(name)) continue;
    SCOPED_TRACE(name);
    LoadOptions options = base;
    change(options);
    LLM llm = LLM::load(options);
    expect_all_same(one_by_one(llm, requests), expected);
    options.max_num_seqs = 16;
    LLM many = LLM::load(options);
    {
      SCOPED_TRACE("together, then again with what the first left in the cache");
      expect_all_same(together(many, requests), expected);
      expect_all_same(together(many, requests), expected);
    }
    SCOPED_TRACE("as choices");
    const size_t step = is_full_scale() ? 1 : 4;
    expect_all_same(as_choices(many, every(requests, step)), every(expected, step));
    preemptions[name] = many.metrics().preemptions;
  }
  return preemptions;
}

constexpr std::array kPairedModels = {"qwen3_tied",
                                      "gemma3_text_pattern2",
                                      "../mixed/gemma4_layer_inputs",
                                      "mistral_window",
                                      "cohere2_tied",
                                      "phi3_longrope_long",
                                      "qwen2_moe_sparse_step",
                                      "../latents/deepseek_v3_yarn"};

class FeaturePairs : public ::testing::TestWithParam<size_t> {};

TEST_P(FeaturePairs, ChangeNoBitHoweverTheyAreRun) {
  const auto pairs = all_pairs(features(), kPrompt, {.max_tokens = 24, .seed = 7});
  // Each pair in two of the models; at full scale in all.
  const bool takes_all = is_full_scale() || runs_fewer_cases();
  cross_all({.model = source_path(std::string("tests/goldens/models/") + kPairedModels[GetParam()]),
             .max_num_seqs = 1,
             .num_threads = 1},
            takes_all ? pairs : every(pairs, 3, GetParam() % 3));
}

// Weights and products in fewer bits: --quantize and --activations.
class QuantisedPairs : public ::testing::TestWithParam<std::pair<LoadQuantization, Activations>> {};

TEST_P(QuantisedPairs, ChangeNoBitHoweverTheyAreRun) {
  LoadOptions options{.model = source_path("tests/goldens/models/qwen3_tied"),
                      .quantize = GetParam().first,
                      .activations = GetParam().second,
                      .max_num_seqs = 1,
                      .num_threads = 1};
  cross_all(options, sixth_of_pairs(0, 12));
  LLM quantised = LLM::load(options);
  options.quantize = LoadQuantization::none;
  LLM plain = LLM::load(options);
  // Else a drawn end of text would leave no token.
  const GenerateOptions scored{
      .max_tokens = 4, .temperature = 0, .ignore_eos = true, .logprobs = 3};
  EXPECT_NE(quantised.generate(kPrompt, scored).completion().logprobs[0].top[0].logprob,
            plain.generate(kPrompt, scored).completion().logprobs[0].top[0].logprob);
}

INSTANTIATE_TEST_SUITE_P(all, QuantisedPairs,
                         ::testing::Values(std::pair{LoadQuantization::q4, Activations::int8},
                                           std::pair{LoadQuantization::q8, Activations::int8},
                                           std::pair{LoadQuantization::q4, Activations::bfloat16},
                                           std::pair{LoadQuantization::q8, Activations::bfloat16}),
                         [](const auto& param) {
                           return fmt::format("{}_{}", option_name(param.param.first),
                                              option_name(param.param.second));
                         });

// Weights as files store them: all formats in one model, and in full runs each of them, with inputs
// of products in bfloat16, too.
class FormatPairs : public ::testing::TestWithParam<std::pair<testing::StoredFormat, Activations>> {
};

TEST_P(FormatPairs, ChangeNoBitHoweverTheyAreRun) {
  const auto& [format, activations] = GetParam();
  cross_all({.model = testing::stored_model(format),
             .activations = activations,
             .max_num_seqs = 1,
             .num_threads = 1},
            sixth_of_pairs(1, 6));
}

std::vector<std::pair<testing::StoredFormat, Activations>> formats_with_codes() {
  const bool is_full = is_full_scale();
  std::vector<std::pair<testing::StoredFormat, Activations>> all;
  for (const testing::StoredFormat& format : testing::stored_formats()) {
    if (!format.has_codes() || !(is_full || format.is_mixed())) continue;
    all.emplace_back(format, Activations::int8);
    if (is_full) all.emplace_back(format, Activations::bfloat16);
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(all, FormatPairs, ::testing::ValuesIn(formats_with_codes()),
                         [](const auto& param) {
                           return fmt::format("{}_{}", param.param.first.name,
                                              option_name(param.param.second));
                         });

INSTANTIATE_TEST_SUITE_P(
    all, FeaturePairs, ::testing::Range(size_t{0}, kPairedModels.size()), [](const auto& model) {
      return std::filesystem::path(kPairedModels[model.param]).filename().string();
    });

// Layers with states, a draft model's too. Choices, preempted sequences and those that find a
// prefix go on from copies of states.
class HybridPairs : public ::testing::TestWithParam<std::string> {};

TEST_P(HybridPairs, ChangeNoBitHoweverTheyAreRun) {
  std::set<std::string> ways;
  if (is_full_scale()) {
    for (const auto& [name, change] : executions()) ways.insert(name);
  } else {
    ways = {"chunks_of_7", "preempted", "drafted_from_the_text", "all_together"};
    if (GetParam() == "qwen3_5_text") ways.insert("drafted_by_itself");
    if (GetParam() == "lfm2_bias") ways.insert("drafted_and_preempted");
  }
  const auto preemptions = cross_all({.model = source_path("tests/goldens/hybrids/" + GetParam()),
                                      .max_num_seqs = 1,
                                      .num_threads = 1},
                                     sixth_of_pairs(GetParam().size() % 6, 20), ways);
  // Delta nets of this size keep more than the keys and values of a request, of which there is then
  // room for all that run (RandomEqualities preempts such models).
  if (!GetParam().starts_with("lfm2")) return;
  EXPECT_GT(preemptions.at("preempted"), 0);
  if (ways.contains("drafted_and_preempted")) {
    EXPECT_GT(preemptions.at("drafted_and_preempted"), 0);
  }
}

INSTANTIATE_TEST_SUITE_P(all, HybridPairs,
                         ::testing::Values("qwen3_5_text", "qwen3_5_moe_text_stacked",
                                           "kimi_linear_groups", "lfm2_bias", "lfm2_moe_tied"),
                         [](const auto& golden) { return golden.param; });

// --state-dtype bfloat16: states are rounded where chunks end, whoever computes them.
TEST(Bf16StatePairs, ChangeNoBitHoweverTheyAreRun) {
  LoadOptions options{.model = source_path("tests/goldens/hybrids/qwen3_5_text"),
                      .state_dtype = DataType::bfloat16,
                      .max_num_seqs = 1,
                      .num_threads = 1};
  cross_all(options, sixth_of_pairs(3, 20),
            {"chunks_of_7", "preempted", "drafted_from_the_text", "all_together"});
  LLM rounded = LLM::load(options);
  EXPECT_EQ(rounded.model_info().state_dtype, "bfloat16");
  options.state_dtype = DataType::float32;
  LLM exact = LLM::load(options);
  const auto last = [&](LLM& llm) {
    std::vector<int32_t> ids;
    for (int32_t i = 0; i < 100; ++i) ids.push_back(4 + i * i % 200);
    return llm.score(ids).back().logprob.value();
  };
  const float found = last(rounded), expected = last(exact);
  EXPECT_NE(found, expected);
  EXPECT_NEAR(found, expected, 0.1);
}

// Keys and values as codes: --kv-cache-dtype int8.
class Int8CachePairs : public ::testing::TestWithParam<std::string> {};

TEST_P(Int8CachePairs, ChangeNoBitHoweverTheyAreRun) {
  LoadOptions options{.model = source_path("tests/goldens/models/" + GetParam()),
                      .kv_cache_dtype = DataType::int8,
                      .max_num_seqs = 1,
                      .num_threads = 1};
  cross_all(options, sixth_of_pairs(2, 12));
  LLM codes = LLM::load(options);
  options.kv_cache_dtype = DataType::float32;
  LLM exact = LLM::load(options);
  // Else a drawn end of text would leave no token.
  const GenerateOptions scored{
      .max_tokens = 4, .temperature = 0, .ignore_eos = true, .logprobs = 3};
  const float found = codes.generate(kPrompt, scored).completion().logprobs[0].top[0].logprob;
  const float expected = exact.generate(kPrompt, scored).completion().logprobs[0].top[0].logprob;
  EXPECT_NE(found, expected);
  EXPECT_NEAR(found, expected, 0.1);
}

INSTANTIATE_TEST_SUITE_P(all, Int8CachePairs,
                         ::testing::Values("qwen3_tied", "gemma3_text_pattern2", "mistral_window",
                                           "../latents/deepseek_v2_lite"),
                         [](const auto& golden) {
                           return std::filesystem::path(golden.param).filename().string();
                         });

TEST(FeaturePairsText, StopStringsAndTextToo) {
  const std::string model = source_path("models/paceline-10m");
  if (!std::filesystem::exists(model + "/model.safetensors")) {
    GTEST_SKIP() << "the bundled model isn't here";
  }
  const bool is_full = is_full_scale();
  // FeaturePairs crosses the others with each other.
  const auto needs_text = [is_full](const std::string& first, const std::string& second) {
    return is_full || !features().contains(first) || !features().contains(second);
  };
  cross_all({.model = model, .max_model_len = 256, .max_num_seqs = 1, .num_threads = 1},
            all_pairs(text_features(), "It was a dark and stormy night, and the old man",
                      {.max_tokens = is_full ? 24 : 8, .seed = 7, .stop = {" the ", "\n\n", "qz"}},
                      needs_text),
            is_full ? std::set<std::string>{}
                    : std::set<std::string>{"chunks_of_7", "preempted", "all_together", "mapped"});
}

}  // namespace
}  // namespace paceline
