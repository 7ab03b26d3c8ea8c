#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json_cursor.h"
#include "base/mapped_file.h"
#include "engine/engine.h"
#include "load/cache_sizing.h"
#include "load/device_choice.h"
#include "load/generation_config.h"
#include "load/loaded_model.h"
#include "load/model_path.h"
#include "load/open_device.h"
#include "load/step_defaults.h"
#include "load/stored_model.h"
#include "models/decoder.h"
#include "runner/model_runner.h"
#include "state/state_cache.h"
#include "tests/expect_error.h"
#include "tests/source_path.h"
#include "tests/test_directory.h"
#include "tests/tokenizer/small_tokenizer.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

class LoadTest : public ::testing::Test {
 protected:
  void write(const fs::path& name, const std::string& text) { temporary_.write(name, text); }

  TestDirectory temporary_;
  fs::path directory_ = temporary_.path();
};

class ModelPath : public LoadTest {};

TEST_F(ModelPath, ADirectoryIsItself) { EXPECT_EQ(find_model(directory_.string()), directory_); }

TEST_F(ModelPath, AGgufFileIsItselfAndStandsForItsDirectory) {
  write("models/a.gguf", "x");
  EXPECT_EQ(find_model((directory_ / "models/a.gguf").string()), directory_ / "models/a.gguf");
  EXPECT_EQ(find_model((directory_ / "models").string()), directory_ / "models/a.gguf");
  write("models/b.gguf", "x");
  expect_error(ErrorCode::invalid, {"2 GGUF files", "a.gguf"},
               [&] { find_model((directory_ / "models").string()); });
  write("models/config.json", "{}");
  EXPECT_EQ(find_model((directory_ / "models").string()), directory_ / "models");
  for (const char* name : {"00001", "00002", "00003"}) {
    write(fs::path("split") / ("m-" + std::string(name) + "-of-00003.gguf"), "x");
  }
  EXPECT_EQ(find_model((directory_ / "split").string()),
            directory_ / "split/m-00001-of-00003.gguf");
}

TEST_F(ModelPath, OrgAndNameAreFoundInTheHuggingFaceCache) {
  ::setenv("HF_HOME", directory_.c_str(), 1);
  ::unsetenv("HF_HUB_CACHE");
  const fs::path repository = fs::path("hub") / "models--acme--tiny-1b";
  expect_error(ErrorCode::not_found, {"hf download acme/tiny-1b"},
               [&] { find_model("acme/tiny-1b"); });
  write(repository / "refs" / "main", "abc123\n");
  expect_error(ErrorCode::not_found, {"hf download acme/tiny-1b"},
               [&] { find_model("acme/tiny-1b"); });
  write(repository / "snapshots" / "abc123" / "config.json", "{}");
  EXPECT_EQ(find_model("acme/tiny-1b"), directory_ / repository / "snapshots/abc123");
  ::unsetenv("HF_HOME");
}

TEST_F(ModelPath, OnlyWhatCouldBeANameOfTheHubIsOne) {
  ::setenv("HF_HOME", directory_.c_str(), 1);
  ::unsetenv("HF_HUB_CACHE");
  write("models/tiny-llama/config.json", "{}");
  const std::string folder = (directory_ / "models").string();
  const auto message = [](const std::string& name) {
    return error_text([&] { find_model(name); });
  };
  EXPECT_NE(message(folder + "/tiny-lama").find("did you mean " + folder + "/tiny-llama?"),
            std::string::npos);
  for (const char* path : {"./acme", "acme/", "acme/tiny/1b", "acme/tiny.gguf", "tiny.safetensors",
                           "~/models/tiny", "/acme/tiny", "acme:tiny"}) {
    EXPECT_NE(message(path).find("there is no such directory or file"), std::string::npos) << path;
    EXPECT_EQ(message(path).find("hf download"), std::string::npos) << path;
  }
  EXPECT_NE(message("tiny").find("`hf download tiny` brings it"), std::string::npos);
  const fs::path before = fs::current_path();
  fs::current_path(directory_);
  EXPECT_EQ(message("models/other").find("hf download"), std::string::npos);
  fs::current_path(before);
  const fs::path cached = fs::path("hub") / "models--tiny";
  write(cached / "refs" / "main", "abc123");
  write(cached / "snapshots" / "abc123" / "config.json", "{}");
  EXPECT_EQ(find_model("tiny"), directory_ / cached / "snapshots/abc123");
  ::unsetenv("HF_HOME");
}

TEST_F(ModelPath, ADownloadIsNotAdvisedForWhatCannotBeRun) {
  ::setenv("HF_HOME", directory_.c_str(), 1);
  ::unsetenv("HF_HUB_CACHE");
  for (const char* name :
       {"acme/Tiny-1B-EXL2", "acme/tiny-AQLM", "acme/tiny-eetq", "acme/longcat-flash-chat",
        "acme/rwkv-7", "acme/electra-base-discriminator", "acme/t5-small", "acme/zamba2-1b"}) {
    const std::string text = error_text([&] { find_model(name); });
    EXPECT_EQ(text.find("hf download"), std::string::npos) << text;
    EXPECT_NE(text.find("by its name it could not be run either"), std::string::npos) << text;
  }
  for (const char* name :
       {"acme/Tiny-1B-GPTQ", "acme/tiny-AWQ", "acme/tiny-FP8-dynamic", "acme/bert-base-uncased",
        "acme/DeepSeek-R1-Distill-Qwen-7B", "acme/DeepSeek-V3-0324", "acme/DeepSeek-R1",
        "acme/Albertus-1b", "acme/Kimi-Linear-48B", "mamba/tiny"}) {
    EXPECT_NE(error_text([&] { find_model(name); }).find("hf download"), std::string::npos);
  }
  ::unsetenv("HF_HOME");
}

TEST_F(ModelPath, NamesThatWouldLeaveTheCacheAreNoNames) {
  ::setenv("HF_HOME", directory_.c_str(), 1);
  for (const char* name : {"../no-such-model", "a/../b", "a/b/c", "/nowhere", "a", "a/", "./a b"}) {
    expect_error(ErrorCode::not_found, {"no such directory"}, [&] { find_model(name); });
  }
  ::unsetenv("HF_HOME");
  write("file", "x");
  expect_error(ErrorCode::invalid, {"a file"}, [&] { find_model((directory_ / "file").string()); });
}

class LoadedModelStops : public LoadTest {};

// A chat model stops at its end-of-turn token even if generation_config.json lacks it.
TEST_F(LoadedModelStops, TheTokenizerKnowsMoreOfThem) {
  const fs::path model = fs::path(PACELINE_SOURCE_DIR) / "tests/goldens/models/llama_plain";
  for (const char* name : {"config.json", "model.safetensors"}) {
    fs::copy_file(model / name, directory_ / name);
  }
  write("generation_config.json", R"({"eos_token_id": [3]})");
  const LoadOptions options{.model = directory_.string()};
  EXPECT_EQ(load_model(options)->generation.eos_tokens, (std::vector<int32_t>{3}));
  write("tokenizer.json", changed(R"("content": "<x>")", R"("content": "<|im_end|>")"));
  write("tokenizer_config.json", R"({"eos_token": "<s>"})");
  EXPECT_EQ(load_model(options)->generation.eos_tokens, (std::vector<int32_t>{3, 8, 9}));
}

class LoadedModelTokenizer : public LoadTest {};

TEST_F(LoadedModelTokenizer, OfAnotherModelIsRefusedByName) {
  const fs::path model = fs::path(PACELINE_SOURCE_DIR) / "tests/goldens/models/llama_plain";
  for (const char* name : {"config.json", "model.safetensors"}) {
    fs::copy_file(model / name, directory_ / name);
  }
  const LoadOptions options{.model = directory_.string()};
  constexpr std::string_view kAdded =
      R"("content": "<x>", "single_word": false, "lstrip": false, "rstrip": false, )"
      R"("normalized": false, "special": )";
  const std::string ordinary = R"({"id": 9, )" + std::string(kAdded) + "false}";
  const std::string special = R"({"id": 256, )" + std::string(kAdded) + "true}";
  write("tokenizer.json", changed(ordinary, special));
  EXPECT_NO_THROW(load_model(options));
  write("tokenizer.json", changed(R"("b": 1,)", R"("b": 256,)"));
  expect_error(ErrorCode::corrupt,
               {"tokenizer.json: token 256 is \"b\"", "256 tokens", "another model"},
               [&] { load_model(options); });
}

class LoadedModelWeights : public LoadTest {};

TEST_F(LoadedModelWeights, OfOtherMethodsAndFormatsAreRefusedByName) {
  const fs::path model = fs::path(PACELINE_SOURCE_DIR) / "tests/goldens/models/llama_plain";
  fs::copy_file(model / "config.json", directory_ / "config.json");
  const LoadOptions options{.model = directory_.string()};
  write("pytorch_model.bin", "x");
  expect_error(ErrorCode::unsupported, {"pytorch_model.bin", "safetensors"},
               [&] { load_model(options); });
  write("model.safetensors", "a header of another type of numbers");
  write("config.json", R"({"model_type": "llama", "quantization_config": {
        "quant_method": "quark", "activation_scheme": "dynamic"}})");
  for (const auto& read : std::vector<std::function<void()>>{
           [&] { load_model(options); },
           [&] { read_model_config(ModelSource(directory_), LoadFormat::files); },
           [&] { read_model_tensors(ModelSource(directory_)); }}) {
    expect_error(ErrorCode::unsupported,
                 {"quantization_config.quant_method", "quark", "--quantize"}, read);
  }
}

class LoadedModelQuantized : public LoadTest {};

TEST_F(LoadedModelQuantized, PlainOrDummyWeightsMayBeAndPackedOnesMayNot) {
  LoadOptions options{.model = source_path("tests/goldens/models/llama_plain"),
                      .quantize = LoadQuantization::q4};
  const size_t parameters = static_cast<size_t>(load_model(options)->decoder->num_parameters());
  EXPECT_GT(parameters, 0u);
  options.load_format = LoadFormat::dummy;
  options.quantize = LoadQuantization::q8;
  EXPECT_EQ(static_cast<size_t>(load_model(options)->decoder->num_parameters()), parameters);
  options = {.model = source_path("tests/goldens/mlx/model"), .quantize = LoadQuantization::q8};
  expect_error(ErrorCode::invalid, {"--quantize: ", "quantised already"},
               [&] { load_model(options); });
  options.load_format = LoadFormat::dummy;  // ignores the files' contents
  EXPECT_EQ(static_cast<size_t>(load_model(options)->decoder->num_parameters()), parameters);
}

TEST_F(LoadedModelQuantized, PackedFilesAreDescribedAsTheModelReadsThem) {
  const ModelSource model(source_path("tests/goldens/mlx/model"));
  EXPECT_EQ(read_model_config(model, LoadFormat::files).num_heads, 4);
  int64_t parameters = 0;
  for (const CheckpointEntry& entry : read_model_tensors(model)) {
    EXPECT_EQ(entry.dtype, DType::bf16) << entry.name;
    parameters += entry.shape.rank() == 2 ? entry.shape[0] * entry.shape[1] : entry.shape[0];
  }
  EXPECT_EQ(parameters, load_model({.model = model.path()})->decoder->num_parameters());
}

class LoadedModelOptions : public LoadTest {
 protected:
  LoadOptions options_{.model = source_path("tests/goldens/models/llama_plain")};
};

TEST_F(LoadedModelOptions, ACacheBeyondTheMachinesMemoryIsRefusedBeforeTheWeightsAreRead) {
  options_.kv_cache_memory_bytes = size_t{1} << 60;
  options_.progress = [](uint64_t, uint64_t) { FAIL() << "the weights are read"; };
  expect_error(ErrorCode::exhausted, {"--kv-cache-memory-bytes: 1073741824.0 GiB", "GiB of memory"},
               [&] { load_model(options_); });
  options_.kv_cache_memory_bytes.reset();
  options_.max_model_len = 1 << 30;
  expect_error(ErrorCode::invalid, {"--max-model-len: 1073741824"}, [&] { load_model(options_); });
  options_.max_model_len.reset();
  options_.loras = {{.name = "a", .path = directory_ / "nowhere"}};
  expect_error(ErrorCode::not_found, {"--lora: ", "nowhere"}, [&] { load_model(options_); });
}

TEST_F(LoadedModelOptions, ProgressReachesTheBytesOfAllTensors) {
  uint64_t last = 0, whole = 0;
  options_.progress = [&](uint64_t done, uint64_t total) {
    EXPECT_GE(done, last);
    EXPECT_LE(done, total);
    last = done;
    whole = total;
  };
  load_model(options_);
  EXPECT_GT(2 * last, whole);  // what the last tensor adds isn't reported
  options_.load_format = LoadFormat::dummy;
  last = 0;
  options_.progress = [&](uint64_t done, uint64_t total) {
    EXPECT_EQ(total, 0u);
    last = done;
  };
  load_model(options_);
  EXPECT_GT(last, 0u);
}

class GenerationConfigFile : public LoadTest {};

TEST_F(GenerationConfigFile, EosMayBeAnIdOrAListAndFallsBackToTheConfig) {
  EXPECT_TRUE(read_generation_config(directory_, 100).eos_tokens.empty());
  write("config.json", R"({"eos_token_id": 7, "bos_token_id": 3})");
  EXPECT_EQ(read_generation_config(directory_, 100).eos_tokens, (std::vector<int32_t>{7}));
  write("generation_config.json", R"({"eos_token_id": [1, 2], "temperature": 0.6, "top_k": 20,
        "top_p": 0.95, "repetition_penalty": 1.1, "max_new_tokens": 77})");
  const GenerationConfig config = read_generation_config(directory_, 100);
  EXPECT_EQ(config.eos_tokens, (std::vector<int32_t>{1, 2}));
  EXPECT_EQ(config.bos_token, 3);
  EXPECT_EQ(config.defaults.temperature, 0.6f);
  EXPECT_EQ(config.defaults.top_k, 20);
  EXPECT_EQ(config.defaults.top_p, 0.95f);
  EXPECT_EQ(config.defaults.repetition_penalty, 1.1f);
  EXPECT_EQ(config.defaults.max_tokens, 77);
}

TEST_F(GenerationConfigFile, ATextConfigIsLookedInto) {
  write("config.json", R"({"text_config": {"eos_token_id": [9, 8]}})");
  EXPECT_EQ(read_generation_config(directory_, 100).eos_tokens, (std::vector<int32_t>{9, 8}));
}

TEST_F(GenerationConfigFile, DoSampleFalseIsGreedy) {
  write("generation_config.json", R"({"do_sample": false, "temperature": 0.7})");
  EXPECT_EQ(read_generation_config(directory_, 100).defaults.temperature, 0.0f);
}

TEST_F(GenerationConfigFile, ErrorsNameFileAndField) {
  write("generation_config.json", "{");
  expect_error(ErrorCode::invalid, {"not valid JSON"},
               [&] { read_generation_config(directory_, 100); });
}

// The table has exactly the fields of transformers' class (make_generation_config_goldens.py).
TEST_F(GenerationConfigFile, EveryFieldOfTheClassHasARow) {
  const std::string path = source_path("tests/goldens/generation_config/fields.json");
  const Json json = parse_json(read_text_file(path, 1 << 20), path);
  std::set<std::string_view> expected, found;
  for (const JsonCursor& name : JsonCursor(json, path).items()) expected.insert(name.string());
  for (const GenerationField& field : generation_config_fields()) {
    EXPECT_TRUE(found.insert(field.name).second) << field.name;
    EXPECT_EQ(field.use == GenerationFieldUse::obeyed, field.why.empty()) << field.name;
  }
  EXPECT_EQ(found, expected);
}

TEST_F(GenerationConfigFile, WhatIsObeyedNeedsNoRefusal) {
  write("generation_config.json", R"({"suppress_tokens": [5, 6], "begin_suppress_tokens": [7],
        "bad_words_ids": [[1, 2], [3], [9]], "eos_token_id": 9, "stop_strings": ["END", ""],
        "min_new_tokens": 4, "min_length": 6, "max_length": 50, "num_beams": 1, "num_beam_groups": 1.0,
        "sequence_bias": {}, "epsilon_cutoff": 0.0, "forced_eos_token_id": null, "use_cache": false,
        "output_scores": true, "top_p": 0, "typical_p": 1})");
  const GenerationConfig config = read_generation_config(directory_, 100);
  using Sequences = std::vector<std::vector<int32_t>>;
  EXPECT_EQ(config.banned, (Sequences{{5}, {6}, {1, 2}, {3}}));
  EXPECT_EQ(config.not_first, (std::vector<int32_t>{7}));
  EXPECT_EQ(config.stop_strings, (std::vector<std::string>{"END"}));
  EXPECT_EQ(config.defaults.min_tokens, 4);
  EXPECT_EQ(config.min_length, 6);
  EXPECT_EQ(config.max_length, 50);
  EXPECT_EQ(config.defaults.top_p, 0.0f);
  EXPECT_EQ(config.problem, "");
  EXPECT_EQ(config.notes, std::vector<std::string>{});
}

TEST_F(GenerationConfigFile, WhatCantBeObeyedStopsGeneratingByName) {
  const std::pair<std::string_view, const char*> values[] = {
      {"max_time", "2.5"},
      {"top_h", "0.5"},
      {"forced_bos_token_id", "3"},
      {"dola_layers", R"("high")"},
      {"sequence_bias", "[[[1, 2], -1.5]]"},
      {"watermarking_config", R"({"bias": 2.5})"},
      {"constraints", "[1]"},
      {"force_words_ids", "[[3]]"},
      {"token_healing", "true"}};
  for (const GenerationField& field : generation_config_fields()) {
    const auto* const own = std::find_if(std::begin(values), std::end(values),
                                         [&](const auto& v) { return v.first == field.name; });
    const std::string value = own == std::end(values) ? "7" : own->second;
    write("generation_config.json", "{\"" + std::string(field.name) + "\": " + value + "}");
    const std::string problem = read_generation_config(directory_, 100).problem;
    if (field.use != GenerationFieldUse::refused) {
      EXPECT_TRUE(problem.empty() || field.use == GenerationFieldUse::obeyed) << problem;
      continue;
    }
    EXPECT_TRUE(
        problem.starts_with("generation_config.json: " + std::string(field.name) + ": found "))
        << problem;
    EXPECT_NE(problem.find(field.why), problem.npos) << problem;
  }
}

// Every value that transformers loads leaves the model usable.
TEST_F(GenerationConfigFile, WhatItStatesNeverStopsTheLoad) {
  write("generation_config.json", R"({"eos_token_id": [100, 5, -1], "top_p": 1.5, "temperature": -1,
        "suppress_tokens": [3, 50256], "bad_words_ids": [[1, 999], [2]], "user_token_id": 195})");
  const GenerationConfig config = read_generation_config(directory_, 100);
  EXPECT_EQ(config.eos_tokens, (std::vector<int32_t>{5}));
  EXPECT_EQ(config.defaults.top_p, 1.0f);
  EXPECT_EQ(config.defaults.temperature, 0.0f);
  EXPECT_EQ(config.banned, (std::vector<std::vector<int32_t>>{{3}, {2}}));
  EXPECT_EQ(config.problem, "");
  const std::vector<std::string> notes = {
      "generation_config.json: user_token_id: isn't a field of generation: it is ignored",
      "generation_config.json: eos_token_id[0]: 100 is outside the vocabulary (0..99): it is never "
      "drawn",
      "generation_config.json: eos_token_id[2]: -1 is outside the vocabulary (0..99): it is never "
      "drawn",
      "generation_config.json: temperature: found -1, 0 is used",
      "generation_config.json: top_p: found 1.5, 1 is used",
      "generation_config.json: suppress_tokens[1]: 50256 is outside the vocabulary (0..99): it is "
      "never drawn",
      "generation_config.json: bad_words_ids[0][1]: 999 is outside the vocabulary (0..99): it is "
      "never drawn"};
  EXPECT_EQ(config.notes, notes);
  const std::pair<const char*, const char*> problems[] = {
      {R"({"top_p": "high"})", "generation_config.json: top_p"},
      {R"({"eos_token_id": "</s>"})", "generation_config.json: eos_token_id"},
      {R"({"typical_p": 0})", "generation_config.json: typical_p: found 0"},
      {R"({"top_k": 2.5})", "generation_config.json: top_k"},
      {R"({"bad_words_ids": [3]})", "generation_config.json: bad_words_ids[0]"},
      {R"({"stop_strings": [3]})", "generation_config.json: stop_strings[0]"}};
  for (const auto& [json, problem] : problems) {
    write("generation_config.json", json);
    EXPECT_TRUE(read_generation_config(directory_, 100).problem.starts_with(problem)) << json;
  }
}

DecoderConfig two_windows() {
  DecoderConfig config;
  config.num_kv_heads = 2;
  config.head_dim = 8;
  config.max_position = 4096;
  config.layers = {{.window = 0}, {.window = 64}, {.window = 0}};
  return config;
}

TEST(CacheSizing, FullGroupsShareTheBudgetAndWindowedOnesAreBounded) {
  const CacheRequest request{.max_batched_tokens = 32, .max_num_seqs = 2, .dtype = DType::bf16};
  const CacheSize size = size_cache(two_windows(), request, size_t{8} << 20);
  ASSERT_EQ(size.groups.size(), 2u);
  EXPECT_EQ(size.groups[0].window, 0);
  EXPECT_EQ(size.groups[0].num_blocks, 4096 / 16 * 2);  // the budget holds two whole contexts
  EXPECT_EQ(size.groups[1].num_blocks, ((64 + 32) / 16 + 1) * 2);
  EXPECT_EQ(size.max_model_len, 4096);
}

TEST(CacheSizing, ASmallBudgetShortensTheContextButNeverBelowTheMinimum) {
  CacheRequest request{.max_num_seqs = 256, .dtype = DType::bf16};
  DecoderConfig config = two_windows();
  config.max_position = 131072;
  const CacheSize least = size_cache(config, request, 1);
  EXPECT_EQ(least.groups[0].num_blocks, kMinCacheBlocks);
  EXPECT_EQ(least.max_model_len, kMinCacheBlocks * 16);
  request.memory_bytes = size_t{1} << 20;
  const CacheSize given = size_cache(config, request, size_t{1} << 40);
  EXPECT_LE(given.bytes, size_t{1} << 20);
  EXPECT_LT(given.max_model_len, 131072);
}

TEST(CacheSizing, ABudgetThatHoldsNoBlockIsRefused) {
  CacheRequest request{.max_num_seqs = 1, .memory_bytes = 1000, .dtype = DType::bf16};
  const auto expect_refusal = [&](const DecoderConfig& config, const std::string& reason) {
    expect_error(ErrorCode::exhausted,
                 {"--kv-cache-memory-bytes: 1000 bytes, expected at least", reason},
                 [&] { size_cache(config, request, size_t{1} << 40); });
  };
  DecoderConfig config = two_windows();
  expect_refusal(config,
                 "(a block of 16 tokens and 37 blocks for a window of 64 tokens and the 512 of a "
                 "step: a smaller --max-num-batched-tokens");
  config.layers = {{.window = 64}};
  expect_refusal(config, "(37 blocks for a window of 64 tokens");
  config.layers = {{.window = 0}};
  expect_refusal(config, "(a block of 16 tokens)");
}

TEST(CacheSizing, NoMoreIsTakenThanTheSequencesCanUse) {
  CacheRequest request{.max_num_seqs = 1, .dtype = DType::bf16};
  const CacheSize one = size_cache(two_windows(), request, size_t{1} << 40);
  EXPECT_EQ(one.groups[0].num_blocks, 4096 / 16);
  request.max_num_seqs = 3;
  EXPECT_EQ(size_cache(two_windows(), request, size_t{1} << 40).bytes, 3 * one.bytes);
}

TEST(CacheSizing, StatesGetAtMostWhatKeysAndValuesGet) {
  DecoderConfig config = two_windows();
  config.layers = {{.mixer = MixerKind::delta_net}, {.window = 0}, {.mixer = MixerKind::delta_net}};
  config.delta_net = {.key_heads = 1, .value_heads = 1, .key_dim = 8, .value_dim = 8, .taps = 4};
  const LayerStateElements elements = config.delta_net->state_elements();
  const auto state_bytes = 2 * static_cast<size_t>(elements.state()) * sizeof(float);
  const auto open_bytes = 2 * static_cast<size_t>(elements.open_rows()) * sizeof(float);
  CacheRequest request{.max_num_seqs = 2, .memory_bytes = 1 << 20, .dtype = DType::bf16};
  for (const size_t budget : {size_t{60'000}, size_t{100'000}}) {
    request.memory_bytes = budget;
    const CacheSize size = size_cache(config, request, 1);
    ASSERT_EQ(size.groups.size(), 3u);
    EXPECT_FALSE(size.groups[0].is_recurrent);
    EXPECT_TRUE(size.groups[1].is_recurrent);
    EXPECT_TRUE(size.groups[2].holds_open_rows);
    EXPECT_EQ(size.groups[2].num_blocks, 2) << "of those that run";
    const size_t states = static_cast<size_t>(size.groups[1].num_blocks) * state_bytes +
                          static_cast<size_t>(size.groups[2].num_blocks) * open_bytes;
    EXPECT_LE(size.bytes, budget);
    EXPECT_LE(states, size.bytes - states);
    EXPECT_GT(states + state_bytes, size.bytes - states);
  }
  // Two sequences of 4,096 tokens need no more than a state each, and one for 512 tokens.
  request.memory_bytes.reset();
  EXPECT_EQ(size_cache(config, request, size_t{1} << 40).groups[1].num_blocks, 2 * (2 + 8));
  // Where contexts are short, states have what keys and values leave.
  const CacheRequest brief{.max_num_seqs = 8, .max_model_len = 32, .dtype = DType::bf16};
  EXPECT_EQ(size_cache(config, brief, size_t{1} << 40).groups[1].num_blocks, 2 * 8);
  // A context that is asked for leaves few of them in a small cache, or is too long for one.
  const size_t context_bytes = 4096 * kv_token_bytes(config, DType::bf16);
  request.max_model_len = 4096;
  request.memory_bytes = context_bytes + 3 * state_bytes + 2 * open_bytes;
  EXPECT_EQ(size_cache(config, request, 1).groups[1].num_blocks, 3);
  EXPECT_EQ(size_cache(config, request, 1).max_model_len, 4096);
  const size_t smallest = context_bytes + state_bytes + open_bytes;
  request.memory_bytes = smallest - 1;
  expect_error(ErrorCode::exhausted, {std::to_string(smallest)},
               [&] { size_cache(config, request, 1); });
  request.max_model_len.reset();
  request.memory_bytes = 1000;
  expect_error(ErrorCode::exhausted, {"(a block of 16 tokens, and a state of a sequence)"},
               [&] { size_cache(config, request, size_t{1} << 40); });
}

TEST(CacheSizing, AnExplicitContextIsHeldOrRefused) {
  CacheRequest request{.max_num_seqs = 1, .max_model_len = 65536, .dtype = DType::f32};
  DecoderConfig config = two_windows();
  config.max_position = 131072;
  EXPECT_EQ(size_cache(config, request, 1).max_model_len, 65536);
  request.memory_bytes = 1 << 20;
  expect_error(ErrorCode::exhausted, {"65536"}, [&] { size_cache(config, request, 1); });
}

TEST(GpuOptions, KeysAndValuesHaveWhatWeightsAndOthersLeaveOfAShare) {
  EXPECT_EQ(useful_device_bytes(1000, 900, 0.5), 400u);
  EXPECT_EQ(useful_device_bytes(1000, 1000, 1.0), 1000u);
  EXPECT_EQ(useful_device_bytes(1000, 300, 0.5), 0u);
}

TEST(StepDefaults, AGpuTakesMoreTokensAStepIfItsMemoryHasRoom) {
  const DecoderConfig config = two_windows();
  EXPECT_EQ(step_tokens({}, nullptr, config), 512);
  const auto tokens = [&](size_t bytes, int64_t asked = 0) {
    const auto device = cuda::make_emulated_device({.total_bytes = bytes});
    return step_tokens({.max_num_batched_tokens = asked}, device.get(), config);
  };
  EXPECT_EQ(tokens(size_t{4} << 30), 8192);
  EXPECT_EQ(tokens(16 * runner_activation_bytes(config, {.max_rows = 8192}) - 16), 4096);
  EXPECT_EQ(tokens(16 * runner_activation_bytes(config, {.max_rows = 2048})), 2048);
  EXPECT_EQ(tokens(1 << 20), 512);
  EXPECT_EQ(tokens(size_t{4} << 30, 100), 100);
  EXPECT_EQ(step_tokens({.max_num_batched_tokens = 100}, nullptr, config), 100);
}

TEST(StepDefaults, ShortStepsOfAGpuAreFreeUnlessASlowdownIsGiven) {
  const auto device = cuda::make_emulated_device();
  const auto limit = [](double asked, const cuda::CudaDevice* on) {
    const StepSlowdown found = step_slowdown({.max_step_slowdown = asked}, on);
    return std::pair(found.factor, found.free_seconds);
  };
  EXPECT_EQ(limit(kSmoothSteps, nullptr), std::pair(2.5, 0.0));
  EXPECT_EQ(limit(kSmoothSteps, device.get()), std::pair(2.5, 0.025));
  EXPECT_EQ(limit(3, device.get()), std::pair(3.0, 0.0));
  EXPECT_EQ(limit(0, device.get()), std::pair(0.0, 0.0));
}

// The emulation of a GPU is opened while it lives.
class EmulatedDevice {
 public:
  EmulatedDevice() { ::setenv("PACELINE_CUDA_EMULATION", "1", 1); }
  ~EmulatedDevice() { ::unsetenv("PACELINE_CUDA_EMULATION"); }
};

class GpuLimits : public LoadTest {};

// One more than a GPU's kernels take, then as many.
TEST_F(GpuLimits, ShapesThatNoKernelTakesAreRefusedBeforeTheWeightsAreRead) {
  const EmulatedDevice emulated;
  struct Field {
    std::string model, name;
    int64_t stored, most;
  };
  for (const auto& [model, name, stored, most] :
       std::vector<Field>{{"hybrids/qwen3_5_tied_pattern", "linear_key_head_dim", 8, 256},
                          {"hybrids/mamba2_alone", "state_size", 12, 256},
                          {"hybrids/mamba_plain", "state_size", 5, 64},
                          {"hybrids/jamba_dense", "mamba_d_state", 16, 64},
                          {"hybrids/nemotron_h_pattern", "ssm_state_size", 20, 256},
                          {"hybrids/falcon_h1_plain", "mamba_d_state", 12, 256},
                          {"models/qwen3_tied", "head_dim", 16, 512}}) {
    SCOPED_TRACE(model);
    const std::string config =
        read_text_file(source_path("tests/goldens/" + model + "/config.json"), 1 << 16);
    const std::string field = "\"" + name + "\": ";
    const size_t at = config.find(field + std::to_string(stored));
    ASSERT_NE(at, config.npos);
    const auto load_with = [&](int64_t value, const std::string& device) {
      std::string changed = config;
      changed.replace(at, field.size() + std::to_string(stored).size(),
                      field + std::to_string(value));
      write("config.json", changed);
      load_model({.model = directory_.string(),
                  .load_format = LoadFormat::dummy,
                  .kv_cache_memory_bytes = size_t{64} << 20,
                  .device = device});
    };
    expect_error(ErrorCode::unsupported,
                 {"config.json: " + name + ": found " + std::to_string(most + 2) +
                      ", expected at most " + std::to_string(most),
                  "--device cpu"},
                 [&] { load_with(most + 2, "cuda"); });
    EXPECT_NO_THROW(load_with(most, "cuda"));
    EXPECT_NO_THROW(load_with(most + 2, "cpu"));
  }
}

class AutomaticDevice : public LoadTest {
 protected:
  // What --device auto does with the dummy weights of a model.
  DeviceChoice choose(LoadOptions options = {}) {
    const std::string config = "tests/goldens/models/qwen3_tied/config.json";
    write("config.json", read_text_file(source_path(config), 1 << 16));
    options.model = directory_.string();
    options.load_format = LoadFormat::dummy;
    ThreadPool threads(1);
    return choose_device(options, threads);
  }
};

TEST_F(AutomaticDevice, IsTheGpuThatTheModelFits) {
  const EmulatedDevice emulated;
  const DeviceChoice found = choose();
  EXPECT_NE(found.device, nullptr);
  EXPECT_EQ(found.note, "the GPU computes: --device auto found emulation");
  EXPECT_NE(choose({.device = "cuda"}).device, nullptr);
  EXPECT_EQ(choose({.device = "cuda"}).note, "");
  // The note is the model's, too.
  const auto model = load_model({.model = directory_.string(),
                                 .load_format = LoadFormat::dummy,
                                 .kv_cache_memory_bytes = size_t{1} << 20});
  EXPECT_EQ(model->machine->device_note, found.note);
  EXPECT_EQ(text_model(*model).device, "emulation");
}

// The emulation has a GiB.
TEST_F(AutomaticDevice, IsTheCpuForAModelThatDoesNotFit) {
  const EmulatedDevice emulated;
  for (const LoadOptions& options : {LoadOptions{.kv_cache_memory_bytes = size_t{1} << 30},
                                     LoadOptions{.gpu_memory_utilization = 0.0001},
                                     LoadOptions{.memory_limit_bytes = size_t{1} << 16}}) {
    const DeviceChoice found = choose(options);
    EXPECT_EQ(found.device, nullptr);
    EXPECT_THAT(found.note, ::testing::StartsWith("the CPU computes: --device auto: emulation: the "
                                                  "model needs at least "));
  }
  // Layers that a GPU must compute aren't left for the CPU.
  EXPECT_NE(choose({.gpu_layers = 99, .gpu_memory_utilization = 0.0001}).device, nullptr);
}

TEST_F(AutomaticDevice, IsTheCpuWhereAnOptionNeedsIt) {
  const EmulatedDevice emulated;
  for (const LoadOptions& options : {LoadOptions{.weights_cache = directory_.string()},
                                     LoadOptions{.device = "cpu"}, LoadOptions{.gpu_layers = 0}}) {
    EXPECT_EQ(choose(options).device, nullptr);
    EXPECT_EQ(choose(options).note, "");
  }
}

TEST_F(AutomaticDevice, IsTheCpuWithoutAGpu) {
  if (cuda::num_cuda_devices() > 0) GTEST_SKIP() << "this machine has a GPU";
  EXPECT_EQ(choose().device, nullptr);
  EXPECT_EQ(choose().note, "");
}

TEST(GpuOptions, AGpuHasAllLayersOrNone) {
  check_gpu_layers({}, 16);
  check_gpu_layers({.gpu_layers = 16}, 16);
  check_gpu_layers({.gpu_layers = 99}, 16);
  expect_error(ErrorCode::unsupported, {"--gpu-layers: 15 of the model's 16 layers", "none (0)"},
               [] { check_gpu_layers({.gpu_layers = 15}, 16); });
  EXPECT_EQ(open_device({.device = "cuda", .gpu_layers = 0}, 1), nullptr);
  EXPECT_EQ(open_device({.gpu_layers = 0}, 1), nullptr);
}

TEST(GpuOptions, TheCpuComputesNoLayersOfAGpu) {
  expect_error(ErrorCode::unsupported, {"--gpu-layers: 5, but --device auto", "--device cuda"},
               [] { open_device({.gpu_layers = 5}, 1); });
}

}  // namespace
}  // namespace paceline
