#include "text/typed_specials.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/json.h"
#include "base/json_writer.h"
#include "base/request_error.h"

namespace paceline {
namespace {

bool is_typed_by(std::string_view role) {
  constexpr std::string_view kOthers[] = {"system", "developer", "assistant"};
  return std::find(std::begin(kOthers), std::end(kOthers), role) == std::end(kOthers);
}

// Puts the mark before each special token in the contents of a conversation.
class Marker {
 public:
  Marker(const Tokenizer& tokenizer, std::string mark)
      : tokenizer_(tokenizer), mark_(std::move(mark)) {}

  int64_t num_marked() const { return num_marked_; }

  void mark(ChatMessage& message) {
    if (message.json.empty()) {
      if (is_typed_by(message.role)) mark(message.content);
      return;
    }
    const Json json = parse_json(message.json, "messages");
    if (!json.is_object()) return;
    const Json* const role = json.find_value("role");
    if (role == nullptr || !role->is_string() || !is_typed_by(*role->string())) return;
    Json::Object members = *json.object();
    const int64_t before = num_marked_;
    for (auto& [key, value] : members) {
      if (key == "content") value = marked(value);
    }
    if (num_marked_ > before) message.json = to_json(Json(std::move(members)));
  }

 private:
  void mark(std::string& text) {
    const std::vector<size_t> offsets = tokenizer_.special_offsets(text);
    num_marked_ += std::ssize(offsets);
    for (auto at = offsets.rbegin(); at != offsets.rend(); ++at) text.insert(*at, mark_);
  }

  // A string, or the texts of parts.
  Json marked(const Json& content) {
    if (content.is_string()) {
      std::string text = *content.string();
      mark(text);
      return Json(std::move(text));
    }
    if (content.is_array()) {
      Json::Array parts;
      for (const Json& part : *content.array()) parts.push_back(marked(part));
      return Json(std::move(parts));
    }
    if (!content.is_object()) return content;
    Json::Object members = *content.object();
    for (auto& [key, value] : members) {
      if (key != "type") value = marked(value);
    }
    return Json(std::move(members));
  }

  const Tokenizer& tokenizer_;
  const std::string mark_;
  int64_t num_marked_ = 0;
};

// A mark stands before each typed special token while the conversation is rendered. It is digits,
// which no filter of a template strips, escapes or changes the case of; the first one isn't among
// the others, so marks don't overlap what looks like a part of them. It isn't in `text`.
std::string mark_absent_from(std::string_view text, char last) {
  std::string mark = "10000000";
  do {
    mark += last;
  } while (text.find(mark) != text.npos);
  return mark;
}

RenderedChat without_marks(std::string_view text, std::string_view mark) {
  RenderedChat chat;
  for (size_t from = 0;;) {
    const size_t at = text.find(mark, from);
    chat.text += text.substr(from, at - from);
    if (at == text.npos) return chat;
    from = at + mark.size();
    chat.typed.push_back({chat.text.size(), chat.text.size() + 1});
  }
}

bool has_typed_specials(const ChatInput& input, const Tokenizer& tokenizer) {
  Marker marker(tokenizer, {});
  for (ChatMessage message : input.messages) {
    marker.mark(message);
    if (marker.num_marked() > 0) return true;
  }
  return false;
}

RenderedChat render_marked(const Tokenizer& tokenizer, const ChatInput& input,
                           const std::function<std::string(const ChatInput&)>& render,
                           const std::string& mark) {
  ChatInput marked = input;
  Marker marker(tokenizer, mark);
  for (ChatMessage& message : marked.messages) marker.mark(message);
  return without_marks(render(marked), mark);
}

}  // namespace

RenderedChat render_typed(const Tokenizer& tokenizer, const ChatInput& input,
                          const std::function<std::string(const ChatInput&)>& render) {
  const std::string text = render(input);
  if (!has_typed_specials(input, tokenizer)) return {.text = text, .typed = {}};
  const RenderedChat chat = render_marked(tokenizer, input, render, mark_absent_from(text, '2'));
  if (chat.text == text) return chat;
  // The template looked at what was typed, and saw no special token; or it changed a mark.
  const RenderedChat again = render_marked(tokenizer, input, render, mark_absent_from(text, '3'));
  if (again.text == chat.text) return chat;
  throw invalid_field(
      "messages",
      "a text of a user or a tool has special tokens, and the chat template "
      "changes it so that they can't be told from the template's own; write them in "
      "another way, or start with --typed-special-tokens");
}

}  // namespace paceline
