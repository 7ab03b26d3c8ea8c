#include "server/streamed_choice.h"

#include <gmock/gmock.h>

namespace paceline::testing {
namespace {

using ::testing::ElementsAre;

// A choice whose tokens are told one after another.
class StreamedChoiceTest : public ::testing::Test {
 protected:
  void add(int32_t id, std::string_view text, std::span<const TurnEvent> events = {},
           bool is_accepted = false) {
    completion_.token_ids.push_back(id);
    *completion_.text += text;
    choice_.add(text, is_accepted, events);
  }

  // What is told now: texts, with "." after an ending.
  std::vector<std::string> emit(bool is_finished = false) {
    std::vector<std::string> told;
    const StreamTerms terms{.options = options_,
                            .fields = fields_,
                            .names = names_,
                            .num_top_logprobs = {},
                            .prompt_logprobs = {}};
    choice_.emit(completion_, is_finished, terms, [&](const ResponseChunk& chunk) {
      std::string text(chunk.text.value_or(""));
      if (chunk.turn != nullptr) {
        text = chunk.turn->reasoning + "|" + chunk.turn->content + "|" + chunk.turn->arguments;
      }
      for (const TextPiece& piece : chunk.pieces) {
        text += (piece.is_accepted ? " +" : " -") + piece.text;
      }
      told.push_back(text + (chunk.ending != nullptr ? "." : ""));
    });
    return told;
  }

  GenerateOptions options_;
  GenerationFields fields_;
  TokenNames names_{nullptr};
  Completion completion_{.text = std::string()};
  StreamedChoice choice_{0};
};

TEST_F(StreamedChoiceTest, TellsWhatIsNewAndNothingTwice) {
  add(1, "a");
  EXPECT_THAT(emit(), ElementsAre("a"));
  EXPECT_THAT(emit(), ElementsAre());
  add(2, "b");
  add(3, "c");
  EXPECT_THAT(emit(), ElementsAre("bc"));
  EXPECT_THAT(emit(true), ElementsAre("."));
  EXPECT_THAT(emit(true), ElementsAre()) << "nothing comes after an ending";
}

TEST_F(StreamedChoiceTest, TokenWithoutTextWaitsForIt) {
  add(1, "");
  EXPECT_THAT(emit(), ElementsAre());
  add(2, "\xc3\xa9");
  EXPECT_THAT(emit(), ElementsAre("\xc3\xa9"));
}

TEST_F(StreamedChoiceTest, IntervalCountsTokensAfterTheFirst) {
  fields_.streaming.interval = 3;
  add(1, "a");
  EXPECT_THAT(emit(), ElementsAre("a"));
  add(2, "b");
  add(3, "c");
  EXPECT_THAT(emit(), ElementsAre());
  add(4, "d");
  EXPECT_THAT(emit(), ElementsAre("bcd"));
  add(5, "e");
  EXPECT_THAT(emit(true), ElementsAre("e."));
}

TEST_F(StreamedChoiceTest, PiecesTellDraftedText) {
  fields_.streaming.include_accepted = true;
  add(1, "a");
  add(2, "b", {}, true);
  add(3, "c", {}, true);
  EXPECT_THAT(emit(), ElementsAre("abc -a +bc"));
}

TEST_F(StreamedChoiceTest, EchoComesFirst) {
  choice_.echo("prompt ", {});
  add(1, "a");
  EXPECT_THAT(emit(), ElementsAre("prompt a"));
}

TEST_F(StreamedChoiceTest, TurnIsToldInDeltasOfOneKind) {
  completion_.turn.emplace();
  using Kind = TurnEvent::Kind;
  const std::vector<TurnEvent> events = {
      {.kind = Kind::reasoning, .text = "hm"},
      {.kind = Kind::content, .text = "yes"},
      {.kind = Kind::call_begun, .call_index = 0, .id = "call_0", .name = "f"},
      {.kind = Kind::arguments, .text = "{", .call_index = 0},
      {.kind = Kind::arguments, .text = "}", .call_index = 0}};
  add(1, "x", events);
  EXPECT_THAT(emit(), ElementsAre("hm|yes|", "||", "||{}"));
  EXPECT_THAT(emit(true), ElementsAre("||."));
}

}  // namespace
}  // namespace paceline::testing
