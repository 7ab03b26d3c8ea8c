// Tokenizers made from GGUF metadata against sentencepiece itself.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/json.h"
#include "base/mapped_file.h"
#include "load/gguf_model.h"
#include "paceline/tokenizer.h"
#include "tests/source_path.h"
#include "tests/weights/gguf_writer.h"
#include "tests/weights/written_files.h"

namespace paceline {
namespace {

class SentencePieceGolden : public ::testing::TestWithParam<const char*> {
 protected:
  SentencePieceGolden()
      : golden_(parse_json(
            read_text_file(source_path("tests/goldens/gguf/sentencepiece_") + GetParam() + ".json",
                           1 << 20),
            GetParam())) {}

  const Json& field(const char* name) const { return *golden_.find(name); }

  // With the golden's pieces, all with the same score if `without_scores`.
  Tokenizer tokenizer(bool without_scores = false) {
    std::vector<std::string> pieces;
    std::vector<int32_t> types;
    std::vector<float> scores;
    for (const Json& piece : field("pieces").as_array("")) pieces.push_back(piece.as_string(""));
    for (const Json& type : field("types").as_array("")) {
      types.push_back(static_cast<int32_t>(type.as_int("")));
    }
    for (const Json& score : field("scores").as_array("")) {
      scores.push_back(without_scores ? 0.0f : static_cast<float>(score.as_double("")));
    }
    GgufWriter writer;
    writer.string("general.architecture", "llama").string("tokenizer.ggml.model", "llama");
    writer.strings("tokenizer.ggml.tokens", pieces).numbers("tokenizer.ggml.token_type", types);
    writer.numbers("tokenizer.ggml.scores", scores);
    writer.boolean("tokenizer.ggml.add_space_prefix", field("add_space_prefix").as_bool(""));
    writer.number("tokenizer.ggml.bos_token_id", static_cast<uint32_t>(field("bos").as_int("")));
    directory_.write("model.gguf", writer.file());
    return Tokenizer::load(
        gguf_model_files(std::make_shared<const GgufFile>(directory_.path() / "model.gguf")));
  }

  static std::vector<TokenId> ids_of(const Json& golden) {
    std::vector<TokenId> ids;
    for (const Json& id : golden.find("ids")->as_array("ids")) {
      ids.push_back(static_cast<TokenId>(id.as_int("id")));
    }
    return ids;
  }

  TestDirectory directory_;
  Json golden_;
};

TEST_P(SentencePieceGolden, IdsAndTextsAreSentencepieces) {
  const Tokenizer tokenizer = this->tokenizer();
  EXPECT_GT(field("cases").as_array("").size(), 100u);
  for (const Json& golden : field("cases").as_array("cases")) {
    const std::string& text = golden.find("text")->as_string("text");
    SCOPED_TRACE(text);
    const std::vector<TokenId> ids = ids_of(golden);
    EXPECT_EQ(tokenizer.encode(text, {.specials_as_text = true}), ids);
    EXPECT_EQ(tokenizer.decode(ids), golden.find("decoded")->as_string("decoded"));
  }
  std::vector<TokenId> framed = {static_cast<TokenId>(field("bos").as_int(""))};
  for (const TokenId id : tokenizer.encode("kaloka")) framed.push_back(id);
  EXPECT_EQ(tokenizer.encode("kaloka", {.add_special = true}), framed);
}

TEST_P(SentencePieceGolden, DependsOnTheScores) {
  const Tokenizer tokenizer = this->tokenizer(true);
  size_t num_different = 0;
  for (const Json& golden : field("cases").as_array("cases")) {
    const std::string& text = golden.find("text")->as_string("text");
    if (tokenizer.encode(text, {.specials_as_text = true}) != ids_of(golden)) ++num_different;
  }
  EXPECT_GT(num_different, 20u);
}

INSTANTIATE_TEST_SUITE_P(all, SentencePieceGolden, ::testing::Values("prefixed", "user_defined"));

}  // namespace
}  // namespace paceline
