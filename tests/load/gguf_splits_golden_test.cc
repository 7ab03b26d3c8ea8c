// Byte-level tokenizers made from GGUF metadata against HF tokenizers, for every
// tokenizer.ggml.pre.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/mapped_file.h"
#include "load/gguf_model.h"
#include "load/gguf_splits.h"
#include "paceline/tokenizer.h"
#include "tests/expect_error.h"
#include "tests/source_path.h"
#include "tests/tokenizer/golden_file.h"
#include "tests/weights/gguf_writer.h"
#include "tests/weights/written_files.h"

namespace paceline {
namespace {

class GgufSplitsGolden : public ::testing::Test {
 protected:
  const Json& field(const char* name) const { return *golden_.find(name); }

  std::vector<std::string> texts(const char* name) const {
    std::vector<std::string> texts;
    for (const Json& text : field(name).as_array("")) texts.push_back(text.as_string(""));
    return texts;
  }

  // With the golden's vocabulary, whose merges cross every border that a split makes.
  Tokenizer tokenizer(const std::string& pre) {
    const std::vector<std::string> tokens = texts("tokens");
    std::vector<int32_t> types(tokens.size(), 1);
    types[0] = 3;
    GgufWriter writer;
    writer.string("general.architecture", "llama").string("tokenizer.ggml.model", "gpt2");
    writer.strings("tokenizer.ggml.tokens", tokens).numbers("tokenizer.ggml.token_type", types);
    writer.strings("tokenizer.ggml.merges", texts("merges"));
    writer.number("tokenizer.ggml.bos_token_id", uint32_t{0});
    if (!pre.empty()) writer.string("tokenizer.ggml.pre", pre);
    directory_.write("model.gguf", writer.file());
    return Tokenizer::load(
        gguf_model_files(std::make_shared<const GgufFile>(directory_.path() / "model.gguf")));
  }

  TestDirectory directory_;
  Json golden_ = parse_json(read_text_file(source_path("tests/goldens/gguf/splits.json"), 1 << 20),
                            "splits.json");
};

TEST_F(GgufSplitsGolden, IdsAreHuggingFacesForEveryName) {
  const std::vector<std::string> texts = this->texts("texts");
  std::set<std::string> names;
  for (const Json& split : field("splits").as_array("")) {
    const auto& ids = split.find("ids")->as_array("");
    ASSERT_EQ(ids.size(), texts.size());
    for (const Json& name : split.find("names")->as_array("")) {
      const std::string& pre = name.as_string("");
      const Tokenizer tokenizer = this->tokenizer(pre);
      for (size_t i = 0; i < texts.size(); ++i) {
        EXPECT_EQ(tokenizer.encode(texts[i]), golden_ids(ids[i])) << pre << ": " << texts[i];
      }
      const size_t framed = split.find("begins_with_bos")->as_bool("") ? 2 : 1;
      EXPECT_EQ(tokenizer.encode("a", {.add_special = true}).size(), framed) << pre;
      names.insert(pre);
    }
  }
  for (const GgufSplit& split : gguf_splits()) {
    EXPECT_TRUE(split.name.empty() || names.contains(std::string(split.name))) << split.name;
  }
}

TEST_F(GgufSplitsGolden, AnUnknownNameIsRefusedWithTheNearest) {
  expect_error(ErrorCode::unsupported,
               {"tokenizer.ggml.pre: \"gpt4o\" isn't supported (the nearest is \"gpt-4o\")",
                "deepseek-coder"},
               [&] { tokenizer("gpt4o"); });
  expect_error(ErrorCode::unsupported, {"\"jais-twenty\" isn't supported; default, gpt-2, "},
               [&] { tokenizer("jais-twenty"); });
}

}  // namespace
}  // namespace paceline
