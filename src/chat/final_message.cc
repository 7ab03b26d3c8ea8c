#include "chat/final_message.h"

#include <algorithm>
#include <optional>

#include "base/request_error.h"
#include "chat/message_json.h"

namespace paceline {
namespace {

// Ends with a blank, which a trimming template removes.
constexpr std::string_view kMark = "PACELINE-GOES-ON-BEHIND-THIS ";
constexpr std::string_view kTrimmedMark = kMark.substr(0, kMark.size() - 1);
constexpr std::string_view kBlanks = " \t\n\r\f\v";

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) + 1 - begin);
}

// The last part with text.
std::optional<size_t> last_text(const Json::Array& parts) {
  for (size_t i = parts.size(); i > 0; --i) {
    const Json* text = parts[i - 1].find_value("text");
    if (text != nullptr && text->is_string()) return i - 1;
  }
  return std::nullopt;
}

// The text to be continued.
const std::string& text_of(const Json& message) {
  const Json* content = message.find_value("content");
  if (content != nullptr && content->is_string()) return *content->string();
  if (content != nullptr && content->is_array()) {
    const Json::Array& parts = *content->array();
    if (const auto last = last_text(parts)) return *parts[*last].find_value("text")->string();
  }
  throw invalid_field("continue_final_message", "the last message has no text that could go on");
}

}  // namespace

Json mark_final_message(const Json& message) {
  Json marked(text_of(message) + std::string(kMark));
  const Json& content = *message.find_value("content");
  if (content.is_string()) return with_member(message, "content", std::move(marked));
  Json::Array parts = *content.array();
  Json& part = parts[*last_text(parts)];
  part = with_member(part, "text", std::move(marked));
  return with_member(message, "content", Json(std::move(parts)));
}

std::string cut_at_mark(std::string rendered, const Json& message) {
  const size_t at = rendered.rfind(kTrimmedMark);
  if (at == std::string::npos || rendered.find(trimmed(text_of(message))) == std::string::npos) {
    throw invalid_field("continue_final_message",
                        "the chat template leaves out some of the last message");
  }
  const bool was_trimmed = rendered.compare(at, kMark.size(), kMark) != 0;
  rendered.resize(at);
  if (was_trimmed) rendered.resize(rendered.find_last_not_of(kBlanks) + 1);
  return rendered;
}

}  // namespace paceline
