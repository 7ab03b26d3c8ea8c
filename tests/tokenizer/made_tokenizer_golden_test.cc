// Tokenizers made of other files than tokenizer.json against the packages that read these files.
#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/mapped_file.h"
#include "tests/source_path.h"
#include "tests/tokenizer/golden_file.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

const fs::path& goldens() {
  static const fs::path folder = source_path("tests/goldens/made_tokenizers");
  return folder;
}

std::vector<std::string> names() {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(goldens())) {
    names.insert(entry.path().filename().string());
  }
  return {names.begin(), names.end()};
}

class MadeTokenizerGolden : public ::testing::TestWithParam<std::string> {};

TEST_P(MadeTokenizerGolden, IdsAndTextsAreThoseOfThePackage) {
  const fs::path folder = goldens() / GetParam();
  ASSERT_FALSE(fs::exists(folder / "tokenizer.json"));
  const Tokenizer tokenizer = Tokenizer::load(folder);
  const std::string text = read_text_file(folder / "golden.jsonl", size_t{64} << 20);
  size_t num_lines = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const Json line = parse_json(text.substr(begin, end - begin), "golden.jsonl");
    begin = end + 1;
    ++num_lines;
    const std::string& input = line.find("text")->as_string("text");
    SCOPED_TRACE(input);
    const std::vector<TokenId> ids = golden_ids(*line.find("ids"));
    EXPECT_EQ(tokenizer.encode(input, {.specials_as_text = true}), ids);
    const Json* special = line.find("ids_special");
    EXPECT_EQ(tokenizer.encode(input), special == nullptr ? ids : golden_ids(*special));
    EXPECT_EQ(tokenizer.encode_with_spans(input).ids, tokenizer.encode(input));
    if (const Json* decoded = line.find("decoded")) {
      EXPECT_EQ(tokenizer.decode(ids), decoded->as_string("decoded"));
    }
  }
  EXPECT_GT(num_lines, 100u);
}

INSTANTIATE_TEST_SUITE_P(all, MadeTokenizerGolden, ::testing::ValuesIn(names()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace paceline
