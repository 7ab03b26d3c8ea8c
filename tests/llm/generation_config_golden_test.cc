// What generation_config.json asks for, against transformers
// (tools/goldens/make_generation_config_goldens.py).
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/json_cursor.h"
#include "base/json_writer.h"
#include "base/mapped_file.h"
#include "paceline/llm.h"
#include "tests/expect_error.h"
#include "tests/source_path.h"
#include "tests/test_directory.h"

namespace paceline {
namespace {

class GenerationConfigGolden : public ::testing::Test {
 protected:
  GenerationConfigGolden() {
    std::filesystem::copy(source_path("tests/goldens/embeddings/reranker"), directory_.path(),
                          std::filesystem::copy_options::recursive);
  }

  LLM load_with(const std::string& generation_config) {
    std::ofstream(directory_.path() / "generation_config.json") << generation_config;
    LoadOptions options;
    options.model = directory_.path().string();
    options.kv_cache_memory_bytes = 1 << 20;
    options.num_threads = 2;
    return LLM::load(options);
  }

  TestDirectory directory_;
};

TEST_F(GenerationConfigGolden, DefaultsAndBansAreThoseOfTransformers) {
  const std::string path = source_path("tests/goldens/generation_config/cases.json");
  const Json golden = parse_json(read_text_file(path, 1 << 20), path);
  const JsonCursor cases(golden, path);
  EXPECT_EQ(cases.num_items(), 10u);
  for (const JsonCursor& one : cases.items()) {
    SCOPED_TRACE(one.at("name").string());
    LLM llm = load_with(to_json(one.at("config").node().json()));
    const Completion found = llm.generate("the old house").completion();
    if (const auto text = one.find("text")) {
      EXPECT_EQ(found.text, text->string());
      EXPECT_EQ(found.finish_reason, "stop");
      continue;
    }
    std::vector<int32_t> ids;
    for (const JsonCursor& id : one.at("ids").items()) {
      ids.push_back(static_cast<int32_t>(id.integer()));
    }
    EXPECT_EQ(found.token_ids, ids);
  }
}

// Lengths that a request states override the files'.
TEST_F(GenerationConfigGolden, RequestsOverrideLengths) {
  LLM llm = load_with(R"({"do_sample": false, "eos_token_id": 107, "min_new_tokens": 9,
                          "max_length": 18, "min_length": 14})");
  EXPECT_EQ(llm.generate("the old house").completion().token_ids.size(), 7u);
  EXPECT_EQ(llm.generate("the old house", {.max_tokens = 3}).completion().token_ids.size(), 3u);
  EXPECT_EQ(llm.generate("the old house", {.min_tokens = 0}).completion().token_ids,
            (std::vector<int32_t>{247, 89, 168, 37}));
  const std::vector<int32_t> long_prompt(18, 5);
  expect_error(ErrorCode::invalid, {"max_tokens", "max_length 18", "18 tokens"},
               [&] { llm.generate(long_prompt).completion(); });
  EXPECT_EQ(llm.generate(long_prompt, {.max_tokens = 2}).completion().token_ids.size(), 2u);
}

TEST_F(GenerationConfigGolden, WhatIsRefusedStopsGeneratingAndNothingElse) {
  LLM llm = load_with(R"({"num_beams": 4, "eos_token_id": 70000})");
  expect_error(ErrorCode::unsupported,
               {"generation_config.json: num_beams: found 4, expected 1: beam search"},
               [&] { llm.generate("the old house").completion(); });
  EXPECT_EQ(llm.embed("the old house").values.size(), 32u);
  EXPECT_EQ(llm.score("the old house").size(), 11u);
  const std::vector<std::string> notes = llm.model_info().generation_notes;
  ASSERT_EQ(notes.size(), 2u);
  EXPECT_NE(notes[0].find("eos_token_id: 70000"), std::string::npos) << notes[0];
  EXPECT_NE(notes[1].find("num_beams"), std::string::npos) << notes[1];
}

}  // namespace
}  // namespace paceline
