// Training examples against mlx_lm.lora's, with the bundled tokenizer and with real ones.
#include <gtest/gtest.h>

#include <fstream>

#include "base/json_writer.h"
#include "tests/dataset/training_files.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

// The folder of a tokenizer that the goldens name.
fs::path tokenizer_folder(const std::string& name) {
  const fs::path source = PACELINE_SOURCE_DIR;
  const bool is_bundled = name == "paceline-10m";
  return is_bundled ? source / "models" / name : source.parent_path() / "shared/tokenizers" / name;
}

void expect_golden(const DatasetModel& model, const Json& row, const TrainingFiles& files) {
  const Json& line = *row.find("line");
  const bool is_masked = row.find("mask_prompt")->as_bool("mask_prompt");
  SCOPED_TRACE(to_json(line) + (is_masked ? ", masked" : ""));
  const DatasetOptions options{.loss_tokens = is_masked ? LossTokens::completion : LossTokens::all,
                               .now = "2026-03-07T12:00:00"};
  const Dataset dataset = read_dataset(files.write("a.jsonl", to_json(line)), model, options);
  std::vector<int32_t> tokens;
  for (const Json& token : row.find("tokens")->as_array("tokens")) {
    tokens.push_back(static_cast<int32_t>(token.as_int("token")));
  }
  const Example& example = dataset.examples.at(0);
  EXPECT_EQ(example.tokens, tokens);
  EXPECT_EQ(dataset.report.num_straddling, 0);
  const auto offset = static_cast<size_t>(row.find("offset")->as_int("offset"));
  EXPECT_EQ(is_masked, offset > 0);
  for (size_t i = 1; i < example.counts.size(); ++i) {
    EXPECT_EQ(example.counts[i], i >= offset ? 1 : 0) << i;
  }
}

class MlxDatasetGolden : public testing::TestWithParam<const char*> {};

TEST_P(MlxDatasetGolden, HasTheTokensAndTheLossOfMlxLm) {
  const fs::path folder = tokenizer_folder(GetParam());
  if (!fs::exists(folder / "tokenizer.json")) GTEST_SKIP() << folder << " isn't there";
  const Tokenizer tokenizer = Tokenizer::load(folder);
  const std::optional<ChatTemplate> chat_template = ChatTemplate::load(folder);
  const DatasetModel model{tokenizer, chat_template ? &*chat_template : nullptr,
                           end_of_text(tokenizer)};
  const TrainingFiles files;
  std::ifstream goldens(source_path("tests/goldens/dataset/mlx_lm.jsonl"));
  int num_rows = 0;
  for (std::string text; std::getline(goldens, text);) {
    const Json row = parse_json(text, "mlx_lm.jsonl");
    if (row.find("tokenizer")->as_string("tokenizer") != GetParam()) continue;
    ++num_rows;
    expect_golden(model, row, files);
  }
  EXPECT_GE(num_rows, 3);
}

INSTANTIATE_TEST_SUITE_P(Tokenizers, MlxDatasetGolden,
                         testing::Values("paceline-10m", "qwen3", "llama3.2", "gemma3",
                                         "deepseek_v3", "gpt2", "mistral_v1"));

}  // namespace
}  // namespace paceline
