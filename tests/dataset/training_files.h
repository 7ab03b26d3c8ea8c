// Files of training data, written for one test, and the bundled model's tokenizer and template.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dataset/dataset.h"
#include "tests/source_path.h"
#include "tests/test_directory.h"

namespace paceline {

// A directory that is removed with its owner.
class TrainingFiles {
 public:
  const std::filesystem::path& directory() const { return directory_.path(); }
  std::string write(std::string_view name, std::string_view text) const {
    directory_.write(name, text);
    return (directory() / name).string();
  }

 private:
  TestDirectory directory_;
};

// Tests of what files hold, with the bundled model, which has ChatML.
class DatasetTest : public testing::Test {
 protected:
  static const Tokenizer& tokenizer() {
    static const Tokenizer loaded = Tokenizer::load(source_path("models/paceline-10m"));
    return loaded;
  }
  static const ChatTemplate& chat_template() {
    static const ChatTemplate loaded =
        ChatTemplate::load(source_path("models/paceline-10m")).value();
    return loaded;
  }
  static DatasetModel model() { return {tokenizer(), &chat_template(), end_of_text(tokenizer())}; }
  static DatasetModel model_without_template() {
    return {tokenizer(), nullptr, end_of_text(tokenizer())};
  }

  Dataset read(std::string_view name, std::string_view text, const DatasetOptions& options = {},
               const DatasetModel& model = DatasetTest::model()) const {
    return read_dataset(files_.write(name, text), model, options);
  }
  std::vector<Example> read_lines(std::string_view text, const DatasetOptions& options = {}) const {
    return read("train.jsonl", text, options).examples;
  }

  // The text of the tokens that are part of the loss; "|" where some between them aren't.
  static std::string learnt_text(const Example& example) {
    std::string text;
    for (size_t i = 0; i < example.tokens.size(); ++i) {
      if (example.counts[i] != 0) {
        if (i > 1 && example.counts[i - 1] == 0 && !text.empty()) text += '|';
        text += tokenizer().token_bytes(example.tokens[i]);
      }
    }
    return text;
  }

  TrainingFiles files_;
};

}  // namespace paceline
