#include "tools/history_forms.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "chat/message_json.h"

namespace paceline {
namespace {

// Some templates refuse an assistant's message without any text.
constexpr std::string_view kNoAnswer = " ";

std::string role_of(const Json& message) { return text_member(message, "role"); }

bool is_of(const Json& message, std::string_view role) { return role_of(message) == role; }

bool is_result(const Json& message) { return is_of(message, "tool") || is_of(message, "function"); }

size_t num_calls(const Json& message) {
  const Json* const calls = message.find_value("tool_calls");
  return calls != nullptr && calls->is_array() ? calls->array()->size() : 0;
}

Json said(std::string_view role, std::string text) {
  return Json(Json::Object{{"role", Json(std::string(role))}, {"content", Json(std::move(text))}});
}

std::string joined(std::string first, const std::string& second) {
  if (!first.empty() && !second.empty()) first += "\n\n";
  first += second;
  return first;  // moved: append's reference would be copied
}

// Messages in the making: texts and calls can be added to the last one.
class MessageList {
 public:
  bool empty() const { return messages_.empty(); }
  size_t size() const { return messages_.size(); }
  const Json& front() const { return messages_.front(); }
  const Json& back() const { return messages_.back(); }

  void add(Json message) {
    write_back();
    messages_.push_back(std::move(message));
  }
  void extend_back(const Json& more) {
    if (!content_) {
      content_ = content_text(back());
      reasoning_ = text_member(back(), "reasoning_content");
    }
    content_ = joined(*std::move(content_), content_text(more));
    reasoning_ = joined(std::move(reasoning_), text_member(more, "reasoning_content"));
    if (num_calls(more) == 0) return;
    messages_.back() = with_member(back(), "tool_calls", *more.find_value("tool_calls"));
    write_back();
  }
  Messages take() {
    write_back();
    return std::move(messages_);
  }

 private:
  void write_back() {
    if (!content_) return;
    messages_.back() = with_member(back(), "content", Json(*std::move(content_)));
    if (!reasoning_.empty()) {
      messages_.back() = with_member(back(), "reasoning_content", Json(reasoning_));
    }
    content_.reset();
  }

  Messages messages_;
  std::optional<std::string> content_;  // of the last one, with what was added
  std::string reasoning_;
};

Messages::iterator first_of(Messages& messages, std::string_view role) {
  return std::find_if(messages.begin(), messages.end(),
                      [&](const Json& message) { return is_of(message, role); });
}

}  // namespace

Messages with_one_system_message(const Messages& messages) {
  MessageList written;
  Messages held;           // until the results of the calls are there
  size_t num_missing = 0;  // results
  const auto release = [&] {
    for (Json& message : held) written.add(std::move(message));
    held.clear();
  };
  for (const Json& message : messages) {
    if (is_of(message, "system")) {
      if (written.empty()) {
        written.add(message);
      } else if (written.size() == 1 && is_of(written.front(), "system")) {
        written.extend_back(message);
      } else if (num_missing > 0) {
        held.push_back(said("user", content_text(message)));
      } else {
        written.add(said("user", content_text(message)));
      }
    } else if (is_result(message)) {
      const bool has_call =
          !written.empty() && (is_result(written.back()) || num_calls(written.back()) > 0);
      written.add(has_call ? message : said("user", content_text(message)));
      if (num_missing > 0) --num_missing;
      if (num_missing == 0) release();
    } else {
      release();
      written.add(message);
      num_missing = num_calls(message);
    }
  }
  release();
  return written.take();
}

Messages with_turns_in_order(const Messages& messages) {
  MessageList list;
  for (const Json& message : messages) {
    const std::string role = role_of(message);
    const bool is_answer = role == "assistant";
    if (is_answer && num_calls(message) == 0 && content_text(message).empty()) continue;
    if (is_answer && (list.empty() || is_of(list.back(), "system"))) list.add(said("user", ""));
    if (role == "user" && !list.empty() && (is_result(list.back()) || num_calls(list.back()) > 0)) {
      list.add(said("assistant", std::string(kNoAnswer)));
    }
    const bool is_neighbour = !list.empty() && is_of(list.back(), role) &&
                              (role == "user" || is_answer) && num_calls(list.back()) == 0;
    if (is_neighbour) {
      list.extend_back(message);
    } else {
      list.add(message);
    }
  }
  Messages written = list.take();
  if (first_of(written, "user") == written.end()) {
    const bool has_system = !written.empty() && is_of(written.front(), "system");
    written.insert(written.begin() + (has_system ? 1 : 0), said("user", ""));
  }
  return written;
}

Messages without_system_message(const Messages& messages) {
  if (messages.empty() || !is_of(messages.front(), "system")) return messages;
  const std::string text = content_text(messages.front());
  Messages written(messages.begin() + 1, messages.end());
  const auto user = first_of(written, "user");
  if (user == written.end()) {
    written.insert(written.begin(), said("user", text));
  } else {
    *user = with_member(*user, "content", Json(joined(text, content_text(*user))));
  }
  return written;
}

Messages with_null_contents(const Messages& messages) {
  Messages written = messages;
  for (Json& message : written) {
    if (num_calls(message) > 0 && content_text(message).empty()) {
      message = with_member(message, "content", Json());
    }
  }
  return written;
}

Messages with_single_calls(const Messages& messages) {
  Messages written;
  for (size_t i = 0; i < messages.size(); ++i) {
    const Json& message = messages[i];
    if (num_calls(message) < 2) {
      written.push_back(message);
      continue;
    }
    Messages results;
    while (i + 1 < messages.size() && is_result(messages[i + 1])) results.push_back(messages[++i]);
    bool is_first = true;
    for (const Json& call : *message.find_value("tool_calls")->array()) {
      Json single = with_member(message, "tool_calls", Json(Json::Array{call}));
      if (!std::exchange(is_first, false)) {
        single = with_member(without_member(single, "reasoning_content"), "content",
                             Json(std::string()));
      }
      written.push_back(std::move(single));
      const std::string id = text_member(call, "id");
      const auto result = std::find_if(results.begin(), results.end(), [&](const Json& one) {
        return text_member(one, "tool_call_id") == id;
      });
      if (result == results.end()) continue;
      written.push_back(*result);
      results.erase(result);
    }
    std::move(results.begin(), results.end(), std::back_inserter(written));
  }
  return written;
}

}  // namespace paceline
