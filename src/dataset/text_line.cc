// Lines of text.
#include "base/error.h"
#include "dataset/line_format.h"

namespace paceline {
namespace {

bool has_text(const JsonCursor& line) { return line.contains("text"); }

ExampleText read_text_line(const JsonCursor& line, const ChatExamples& chats) {
  const JsonCursor field = line.at("text");
  const std::string& text = field.string();
  if (chats.loss_tokens() != LossTokens::all) {
    field.fail(
        ErrorCode::unsupported,
        "a text has no prompt that --mask-prompt or --loss-on could mask; learn all tokens, or "
        "write messages, or prompt and completion");
  }
  if (text.empty()) field.mismatch("a text to learn");
  return {.text = text, .learnt = {{.begin = 0, .end = text.size()}}};
}

}  // namespace

const LineFormat kTextLines = {
    .name = "texts", .keys = "text", .has_keys = has_text, .read = read_text_line};

}  // namespace paceline
