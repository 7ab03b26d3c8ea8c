// Whatever a model writes under the grammar of calls is read back as calls.
#include <gtest/gtest.h>

#include <optional>
#include <random>

#include "tests/tools/mini_templates.h"
#include "tests/tools/turn_matching.h"
#include "tests/tools/turn_reading.h"

namespace paceline {
namespace {

const char* const kParameters = R"({"type": "object", "properties": {
    "name": {"type": "string"}, "count": {"type": "integer"},
    "list": {"type": "array", "items": {"type": ["string", "boolean"]}},
    "any": {}, "place": {"type": "object", "properties": {"x": {"type": "number"}}}},
  "required": ["name"], "additionalProperties": false})";

// A random text under the constraint; nothing when it comes to no end.
std::optional<std::string> random_text(const std::shared_ptr<Constraint>& constraint,
                                       std::mt19937& random) {
  constexpr std::string_view kClosing = "\"'}])>/<|e";
  Matcher matcher(constraint);
  std::string text;
  while (text.size() < 600) {
    const auto mask = matcher.mask();
    std::vector<uint8_t> bytes;
    std::vector<uint8_t> closing;
    for (uint32_t byte = 1; byte < 255; ++byte) {
      if (!mask->allows(byte) || (byte >= 128 && !bytes.empty())) continue;
      bytes.push_back(static_cast<uint8_t>(byte));
      if (kClosing.find(static_cast<char>(byte)) != std::string_view::npos) {
        closing.push_back(static_cast<uint8_t>(byte));
      }
    }
    if (matcher.is_complete() && (bytes.empty() || random() % 3 == 0)) return text;
    if (bytes.empty()) return std::nullopt;
    const bool closes = !closing.empty() && random() % 4 != 0;
    const std::vector<uint8_t>& choices = closes ? closing : bytes;
    const uint8_t byte = choices[random() % choices.size()];
    EXPECT_TRUE(matcher.accept(byte));
    text += static_cast<char>(byte);
  }
  return std::nullopt;
}

TEST(WrittenTurns, AreReadBackAsCalls) {
  const auto tools = std::make_shared<const ToolSet>(
      std::vector<ToolSpec>{{"get", kParameters}, {"get_time", ""}});
  std::mt19937 random(11);
  for (const MiniTemplate& one : mini_templates()) {
    const TurnFormat format = format_of(one.source);
    ASSERT_TRUE(format.calls.has_value()) << one.name;
    GrammarBuilder builder;
    const RuleId rule = add_turn_grammar(format, *tools, {.choice = ToolChoice::required}, builder);
    const auto constraint =
        std::make_shared<Constraint>(std::move(builder).finish(rule), byte_trie());
    size_t num_ended = 0;
    for (int i = 0; i < 100; ++i) {
      const std::optional<std::string> text = random_text(constraint, random);
      if (!text) continue;
      ++num_ended;
      SCOPED_TRACE(one.name + ": " + *text);
      const TurnRead read = read_turn(format, tools, {.text = *text});
      EXPECT_EQ(read.content, "");
      EXPECT_FALSE(read.calls.empty());
      for (const CallRead& call : read.calls) {
        EXPECT_TRUE(call.is_complete);
        EXPECT_NO_THROW(parse_json(call.arguments, "arguments")) << call.arguments;
      }
      if (num_ended < 20) expect_cuts_show_no_marks(format, tools, {.text = *text});
      if (HasFailure()) return;
    }
    EXPECT_GT(num_ended, 2U) << one.name;
  }
}

}  // namespace
}  // namespace paceline
