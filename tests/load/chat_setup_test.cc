#include "load/chat_setup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/expect_error.h"
#include "tests/test_directory.h"
#include "tests/tokenizer/small_tokenizer.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr TokenId kFirstTurnToken = 10;  // the ids of `turn_tokens` below go on from here

// The small tokenizer with these special tokens too.
Tokenizer tokenizer_with(const std::vector<std::string>& turn_tokens) {
  std::string added;
  for (size_t i = 0; i < turn_tokens.size(); ++i) {
    added += R"({"id": )" + std::to_string(kFirstTurnToken + static_cast<TokenId>(i)) +
             R"(, "content": ")" + turn_tokens[i] +
             R"(", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false,
                "special": true},)";
  }
  return Tokenizer::from_json(changed(R"("added_tokens": [)", R"("added_tokens": [)" + added), "t");
}

const Tokenizer& chatml_tokenizer() {
  static const Tokenizer tokenizer = tokenizer_with({"<|im_start|>", "<|im_end|>"});
  return tokenizer;
}

class ChatSetupTest : public ::testing::Test {
 protected:
  fs::path write(const fs::path& name, const std::string& text) const {
    std::ofstream(directory_ / name) << text;
    return directory_ / name;
  }
  std::string rendered(const std::string& wanted, const Tokenizer& tokenizer) const {
    const ChatSetup setup = set_up_chat(directory_, wanted, tokenizer);
    return setup.chat_template ? setup.chat_template->render({.messages = {{"user", "Hi"}}})
                               : "no template: " + setup.problem;
  }

  TestDirectory temporary_;
  fs::path directory_ = temporary_.path();
};

TEST_F(ChatSetupTest, TheModelsOwnTemplateCountsWithoutAWord) {
  write("chat_template.jinja", "own {{ messages[0].content }}");
  const ChatSetup setup = set_up_chat(directory_, "", chatml_tokenizer());
  ASSERT_TRUE(setup.chat_template.has_value());
  EXPECT_EQ(setup.chat_template->render({.messages = {{"user", "Hi"}}}), "own Hi");
  EXPECT_THAT(setup.notes, IsEmpty());
  EXPECT_EQ(setup.problem, "");
}

TEST_F(ChatSetupTest, WithoutOneTheTurnTokensChooseAFormatAndANoteSaysSo) {
  const struct {
    const char* token;
    const char* format;
    const char* begin;
  } kCases[] = {{"<|im_start|>", "chatml", "<|im_start|>user\nHi"},
                {"<start_of_turn>", "gemma", "<start_of_turn>user\nHi"},
                {"<|start_header_id|>", "llama3", "<|start_header_id|>user<|end_header_id|>"}};
  for (const auto& [token, format, begin] : kCases) {
    const Tokenizer tokenizer = tokenizer_with({token});
    const ChatSetup setup = set_up_chat(directory_, "", tokenizer);
    ASSERT_EQ(setup.notes.size(), 1u) << format;
    EXPECT_THAT(setup.notes[0], HasSubstr(std::string("has ") + token));
    EXPECT_THAT(setup.notes[0], HasSubstr(std::string("built-in ") + format));
    EXPECT_THAT(rendered("", tokenizer), HasSubstr(begin));
  }
}

TEST_F(ChatSetupTest, WithNeitherTheProblemSaysWhatHelps) {
  const ChatSetup setup = set_up_chat(directory_, "", tokenizer_with({}));
  EXPECT_FALSE(setup.chat_template.has_value());
  EXPECT_THAT(setup.problem, HasSubstr(directory_.string()));
  EXPECT_THAT(setup.problem, HasSubstr("--chat-template"));
  EXPECT_THAT(setup.notes, IsEmpty());
}

TEST_F(ChatSetupTest, AnOwnTemplateThatDoesNotParseIsAProblemOfChatsAlone) {
  write("chat_template.jinja", "{{ 1 + }}");
  const ChatSetup setup = set_up_chat(directory_, "", chatml_tokenizer());
  EXPECT_FALSE(setup.chat_template.has_value());
  EXPECT_THAT(setup.problem, HasSubstr("chat_template.jinja:1:8"));
  EXPECT_THAT(setup.notes, ElementsAre(HasSubstr("chat_template.jinja:1:8")));
}

TEST_F(ChatSetupTest, AWantedTemplateIsAFileAFormatOrOneOfTheModels) {
  write(
      "tokenizer_config.json",
      R"({"chat_template": [{"name": "default", "template": "D"}, {"name": "rag", "template": "R"}]})");
  const fs::path file = write("mine.jinja", "mine {{ messages[0].content }}");
  EXPECT_EQ(rendered(file.string(), chatml_tokenizer()), "mine Hi");
  EXPECT_EQ(rendered("rag", chatml_tokenizer()), "R");
  EXPECT_THAT(rendered("gemma", chatml_tokenizer()), HasSubstr("<start_of_turn>user\nHi"));
  EXPECT_EQ(rendered("", chatml_tokenizer()), "D");
}

TEST_F(ChatSetupTest, AWantedTemplateThatDoesNotExistOrParseIsAnError) {
  write(
      "tokenizer_config.json",
      R"({"chat_template": [{"name": "default", "template": "D"}, {"name": "rag", "template": "R"}]})");
  expect_error(ErrorCode::invalid,
               {"--chat-template", "\"alpaca\"", "chatml, gemma, llama3", "rag"},
               [&] { set_up_chat(directory_, "alpaca", chatml_tokenizer()); });
  const fs::path file = write("bad.jinja", "a\n{% if %}");
  expect_error(ErrorCode::invalid, {"bad.jinja:2:7"},
               [&] { set_up_chat(directory_, file.string(), chatml_tokenizer()); });
}

// The notes about a template of the model, or about a built-in one.
std::vector<std::string> notes_on(const ChatTemplate& chat_template, const Tokenizer& tokenizer,
                                  const std::vector<TokenId>& stop_tokens) {
  return check_chat(chat_template, tokenizer, stop_tokens);
}
std::vector<std::string> notes_on(const std::string& source, const Tokenizer& tokenizer,
                                  const std::vector<TokenId>& stop_tokens) {
  return notes_on(ChatTemplate::parse(source, "test"), tokenizer, stop_tokens);
}

const std::vector<TokenId> kEndOfTurn = {kFirstTurnToken + 1};
constexpr const char* kPlain =
    "{% for m in messages %}{{ m.role }}: {{ m.content }}<|im_end|>{% endfor %}";

TEST(ChatCheck, WhatFitsGivesNoNote) {
  EXPECT_THAT(notes_on(ChatTemplate::builtin("chatml"), chatml_tokenizer(), kEndOfTurn), IsEmpty());
  EXPECT_THAT(notes_on(kPlain, chatml_tokenizer(), {3, kFirstTurnToken + 1, 99}), IsEmpty());
}

TEST(ChatCheck, ATemplateThatFailsIsSaidWithItsOwnWords) {
  EXPECT_THAT(
      notes_on("{{ raise_exception('Only tools, please') }}", chatml_tokenizer(), kEndOfTurn),
      ElementsAre(HasSubstr("fails on a plain conversation: Only tools, please")));
  EXPECT_THAT(notes_on("{{ messages[0].content.nope.x }}", chatml_tokenizer(), kEndOfTurn),
              ElementsAre(HasSubstr("test:1:")));
}

TEST(ChatCheck, ATemplateThatDropsMessagesIsSaid) {
  EXPECT_THAT(notes_on("{{ messages[-1].content }}<|im_end|>", chatml_tokenizer(), kEndOfTurn),
              ElementsAre(HasSubstr("leaves out a message (\"What is it?\")")));
  EXPECT_THAT(notes_on("{{ messages[0].content }}{{ messages[2].content }}", chatml_tokenizer(),
                       kEndOfTurn),
              ElementsAre(HasSubstr("leaves out a message (\"It is this.\")")));
}

TEST(ChatCheck, MarkersThatAreNoTokensAreNamedOnceEach) {
  const Tokenizer tokenizer = tokenizer_with({"<|other|>", "<|im_end|>"});
  EXPECT_THAT(notes_on(ChatTemplate::builtin("chatml"), tokenizer, kEndOfTurn),
              ElementsAre(AllOf(HasSubstr("writes <|im_start|>, which the tokenizer"),
                                Not(HasSubstr("<|im_end|>")))));
  EXPECT_THAT(
      notes_on("<|a|><|b|><start_of_turn>< |c|> <d>" + std::string(kPlain), tokenizer, kEndOfTurn),
      ElementsAre(HasSubstr("writes <|a|>, <|b|>, <start_of_turn>, which")));
}

TEST(ChatCheck, AnswersWithoutAStopTokenAreSaid) {
  EXPECT_THAT(notes_on(kPlain, chatml_tokenizer(), {}),
              ElementsAre(HasSubstr("no stop token is known")));
  EXPECT_THAT(notes_on(kPlain, chatml_tokenizer(), {8, 99}),
              ElementsAre(AllOf(HasSubstr("ends a turn with \"<|im_end|>user: \""),
                                HasSubstr("--stop-token-ids"))));
  EXPECT_THAT(notes_on("{% for m in messages %}{{ m.content }}{% endfor %}", chatml_tokenizer(),
                       kEndOfTurn),
              ElementsAre(HasSubstr("ends a turn with nothing")));
}

TEST(ChatCheck, ATemplateHasSeveralFaults) {
  EXPECT_THAT(notes_on("<|a|>" + std::string(kPlain), chatml_tokenizer(), {}),
              ElementsAre(HasSubstr("<|a|>"), HasSubstr("no stop token")));
}

}  // namespace
}  // namespace paceline
