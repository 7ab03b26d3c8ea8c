#include "dataset/line_format.h"

#include <fmt/format.h>

#include <array>

#include "base/error.h"

namespace paceline {
namespace {

constexpr std::array kFormats = {&kCompletionLines, &kChatLines, &kTextLines, &kShareGptLines,
                                 &kAlpacaLines};

// 0 and 1 count beside a completion only: datasets of texts have such labels for their classes.
bool is_judgement(const JsonCursor& line, const JsonCursor& label) {
  if (label.is_bool()) return true;
  if (!label.is_number() || !line.contains("completion")) return false;
  const double number = label.number();
  return number == 0 || number == 1;
}

}  // namespace

const LineFormat* find_line_format(const JsonCursor& line) {
  for (const LineFormat* format : kFormats) {
    if (format->has_keys(line)) return format;
  }
  return nullptr;
}

std::string known_line_keys() {
  return fmt::format("{}, or {}, or {}, or {}, or {}", kChatLines.keys, kShareGptLines.keys,
                     kCompletionLines.keys, kAlpacaLines.keys, kTextLines.keys);
}

void refuse_judged_answers(const JsonCursor& line) {
  for (const std::string_view key : {"chosen", "rejected"}) {
    if (!line.find(key)) continue;
    line.fail(ErrorCode::unsupported,
              fmt::format("found a preference (the key \"{}\": a pair of answers, as DPO takes "
                          "them), expected an answer to learn: {}; to learn the chosen answers, "
                          "write each as the completion of its prompt",
                          key, known_line_keys()));
  }
  for (const std::string_view key : {"label", "kto_tag"}) {
    const auto label = line.find(key);
    if (!label || !is_judgement(line, *label)) continue;
    line.fail(ErrorCode::unsupported,
              fmt::format("found a judged answer (\"{}\": {}, as KTO takes them), expected an "
                          "answer to learn: {}; to learn the good answers, keep only these and "
                          "leave \"{}\" out",
                          key, label->node().shown(), known_line_keys(), key));
  }
}

}  // namespace paceline
