#include "dataset/chat_example.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/json_cursor.h"
#include "base/json_writer.h"

namespace paceline {
namespace {

// Two private code points that are put into a content to find where it begins or ends.
constexpr std::string_view kMark = "\U000F5A3E\U000F91C7";
constexpr std::string_view kWhiteSpace = " \t\r\n";

size_t common_prefix(std::string_view a, std::string_view b) {
  const size_t length = std::min(a.size(), b.size());
  return static_cast<size_t>(
      std::mismatch(a.begin(), a.begin() + static_cast<ptrdiff_t>(length), b.begin()).first -
      a.begin());
}

enum class MarkPlace : uint8_t { begin, end };

Json* find_field(Json::Object& fields, std::string_view key) {
  for (auto& [name, value] : fields) {
    if (name == key) return &value;
  }
  return nullptr;
}

// At one end of what isn't white space: templates may trim it.
Json marked_text(const Json& text, MarkPlace place) {
  std::string marked = text.as_string("content");
  const size_t first = std::min(marked.find_first_not_of(kWhiteSpace), marked.size());
  const size_t last = marked.find_last_not_of(kWhiteSpace) + 1;  // npos + 1 is 0
  marked.insert(place == MarkPlace::begin ? first : last, kMark);
  return Json(std::move(marked));
}

// In the function's name, which every template writes as it is.
Json marked_call(const Json& call, MarkPlace place, std::string_view after = {}) {
  Json::Object members = *call.object();
  Json* const function = find_field(members, "function");
  Json::Object of_function = *function->object();
  Json* const name = find_field(of_function, "name");
  *name = Json(marked_text(*name, place).as_string("name") + std::string(after));
  *function = Json(std::move(of_function));
  return Json(std::move(members));
}

bool is_blank(const Json& text) {
  return text.as_string("content").find_first_not_of(kWhiteSpace) == std::string::npos;
}

// `chat` with the mark at the beginning or the end of what a message says: in its content or, where
// calls stand at that end, in the first or last one. A mark in an empty content would make it one
// that isn't empty, which templates write otherwise.
DatasetChat with_mark(const DatasetChat& chat, size_t message, MarkPlace place) {
  DatasetChat marked = chat;
  Json::Object& fields = marked.messages[message].fields;
  Json& content = *find_field(fields, "content");
  Json* const calls = find_field(fields, "tool_calls");
  if (calls == nullptr || (place == MarkPlace::begin && !is_blank(content))) {
    content = marked_text(content, place);
    return marked;
  }
  Json::Array all = *calls->array();
  Json& call = place == MarkPlace::begin ? all.front() : all.back();
  call = marked_call(call, place);
  *calls = Json(std::move(all));
  return marked;
}

// A rendering without the mark, and where that was; nothing unless it has the mark once.
struct Unmarked {
  std::string text;
  size_t mark = 0;
};

std::optional<Unmarked> remove_mark(std::string text) {
  const size_t place = text.find(kMark);
  if (place == std::string::npos) return std::nullopt;
  text.erase(place, kMark.size());
  if (text.find(kMark) != std::string::npos) return std::nullopt;
  return Unmarked{.text = std::move(text), .mark = place};
}

// Turns whose reasoning the template leaves out.
int64_t num_silent_thoughts(const DatasetChat& chat, const std::string& text) {
  int64_t count = 0;
  for (const DatasetMessage& message : chat.messages) {
    for (const auto& [key, value] : message.fields) {
      if (key != "reasoning_content" || is_blank(value)) continue;
      const std::string& thoughts = *value.string();
      const size_t begin = thoughts.find_first_not_of(kWhiteSpace);
      const size_t end = thoughts.find_last_not_of(kWhiteSpace) + 1;
      count += text.find(thoughts.substr(begin, end - begin)) == std::string::npos ? 1 : 0;
    }
  }
  return count;
}

// The beginning of the token that has bytes on both sides of `at`; else `at`.
size_t token_begin(const Tokenizer& tokenizer, const std::string& text, size_t at) {
  const Encoding encoding = tokenizer.encode_with_spans(text);
  for (const auto& [begin, end] : encoding.spans) {
    if (begin < at && at < end) return begin;
  }
  return at;
}

}  // namespace

void add_system_prompt(const JsonCursor& line, DatasetChat& chat) {
  const std::optional<JsonCursor> system = line.find("system");
  if (!system || system->string().empty()) return;
  if (!chat.messages.empty() && chat.messages.front().role == "system") {
    system->fail("found a system prompt beside a system message, expected one of them");
  }
  chat.messages.insert(chat.messages.begin(), text_message("system", system->string()));
}

ChatExamples::ChatExamples(const DatasetModel& model, const DatasetOptions& options)
    : model_(model), options_(options) {
  if (!has_template()) return;
  turns_.emplace(*model.chat_template, model.tokenizer);
  renderer_ = {
      .chat_template = model.chat_template, .tokenizer = &model.tokenizer, .turns = &*turns_};
}

std::string ChatExamples::render_part(const DatasetChat& chat, size_t num_messages,
                                      bool add_generation_prompt) const {
  return render_first(chat, num_messages, add_generation_prompt).text;
}

RenderedChat ChatExamples::render_first(const DatasetChat& chat, size_t num_messages,
                                        bool add_generation_prompt) const {
  ChatInput input{.messages = {},
                  .tools_json = chat.tools,
                  .kwargs_json = options_.template_variables,
                  .add_generation_prompt = add_generation_prompt,
                  .now = options_.now};
  for (size_t i = 0; i < num_messages; ++i) {
    const DatasetMessage& message = chat.messages[i];
    input.messages.push_back(
        {.role = message.role, .content = {}, .json = to_json(message.fields)});
  }
  try {
    return render_chat(renderer_, input);
  } catch (const Error& error) {
    throw Error(error.code(),
                fmt::format("{}: the chat template fails on the first {} of {} "
                            "messages: {}",
                            chat.where, num_messages, chat.messages.size(), error.what()));
  }
}

// At most where the generation prompt of a prompt begins: at what differs without it, or, since
// some templates always write it, at the end of the last message's content.
size_t ChatExamples::past_end(const DatasetChat& chat, size_t message,
                              const std::string& prompt) const {
  const size_t same = common_prefix(prompt, render_part(chat, message, false));
  if (message == 0) return same;
  const DatasetChat marked = with_mark(chat, message - 1, MarkPlace::end);
  const auto content = remove_mark(render_part(marked, message, true));
  return content && content->text == prompt ? std::min(same, content->mark) : same;
}

// Where the prompt ends. Many templates' generation prompt opens or skips thoughts ("<think>"),
// which they don't write of a turn without: then the turn begins with the first token that differs,
// inside the generation prompt, and at the latest with the content.
ChatExamples::TurnBegin ChatExamples::turn_begin(const DatasetChat& chat, size_t message,
                                                 const std::string& whole) const {
  const std::string prompt = render_part(chat, message, true);
  if (whole.starts_with(prompt)) return {.at = prompt.size()};
  const size_t same = common_prefix(prompt, whole);
  if (same < past_end(chat, message, prompt)) {
    throw Error(ErrorCode::invalid,
                fmt::format("{}[{}]: the chat template writes the messages before this one "
                            "otherwise than at the beginning of the whole chat: at byte {} found "
                            "{}, expected {}; learn all tokens, or fewer turns",
                            chat.where, message, same, shown_text(whole.substr(same)),
                            shown_text(prompt.substr(same))));
  }
  const DatasetChat marked = with_mark(chat, message, MarkPlace::begin);
  const auto content = remove_mark(render_part(marked, chat.messages.size(), false));
  const bool is_found = content && content->text == whole;
  const size_t at = is_found ? std::min(same, content->mark) : same;
  return {.at = token_begin(model_.tokenizer, whole, at), .is_other_prompt = true};
}

// Where the rendering of the messages up to this one ends, if it is the beginning of the whole
// text. Templates may write the last turn otherwise than earlier ones (some drop the thoughts of
// those): then it is what both renderings have after a mark at the end of what the turn says.
size_t ChatExamples::turn_end(const DatasetChat& chat, size_t message,
                              const std::string& whole) const {
  if (message + 1 == chat.messages.size()) return whole.size();
  const std::string part = render_part(chat, message + 1, false);
  if (whole.starts_with(part)) return part.size();
  const DatasetChat marked = with_mark(chat, message, MarkPlace::end);
  const auto in_whole = remove_mark(render_part(marked, chat.messages.size(), false));
  const auto in_part = remove_mark(render_part(marked, message + 1, false));
  if (in_whole && in_part && in_whole->text == whole && in_part->text == part) {
    const size_t same = common_prefix(std::string_view(whole).substr(in_whole->mark),
                                      std::string_view(part).substr(in_part->mark));
    if (same > 0) return in_whole->mark + same;
  }
  throw Error(ErrorCode::invalid,
              fmt::format("{}[{}]: the end of this turn can't be found in what the chat template "
                          "writes: the rendering up to it isn't the beginning of the whole chat; "
                          "learn the last turn only, or all tokens",
                          chat.where, message));
}

// A turn without its calls would teach the model to answer nothing.
void ChatExamples::check_calls(const DatasetChat& chat) const {
  DatasetChat marked = chat;
  struct MarkedCall {
    std::string where;
    std::string mark;
  };
  std::vector<MarkedCall> all;
  for (size_t i = 0; i < chat.messages.size(); ++i) {
    Json* const calls = find_field(marked.messages[i].fields, "tool_calls");
    if (calls == nullptr) continue;
    Json::Array written = *calls->array();
    for (size_t j = 0; j < written.size(); ++j) {
      const std::string number = fmt::format("{}x", all.size());
      all.push_back({.where = fmt::format("{}[{}].tool_calls[{}]", chat.where, i, j),
                     .mark = std::string(kMark) + number});
      written[j] = marked_call(written[j], MarkPlace::end, number);
    }
    *calls = Json(std::move(written));
  }
  if (all.empty()) return;
  const std::string text = render_part(marked, marked.messages.size(), false);
  for (const MarkedCall& call : all) {
    if (text.find(call.mark) != std::string::npos) continue;
    throw Error(ErrorCode::invalid,
                call.where +
                    ": the chat template leaves this call out, so it couldn't be learnt (some "
                    "write one call a turn, or calls without a content only); change the messages, "
                    "or give another template");
  }
}

// Templates may write the results of calls between the calls: what others say isn't learnt.
void ChatExamples::check_others(const DatasetChat& chat, const ExampleText& example) const {
  DatasetChat marked = chat;
  for (size_t i = 0; i < chat.messages.size(); ++i) {
    Json& content = *find_field(marked.messages[i].fields, "content");
    if (chat.messages[i].role == "assistant" || is_blank(content)) continue;
    content = marked_text(content, MarkPlace::begin);
  }
  std::string text = render_part(marked, marked.messages.size(), false);
  std::vector<size_t> places;
  for (size_t at = text.find(kMark); at != std::string::npos; at = text.find(kMark, at)) {
    text.erase(at, kMark.size());
    places.push_back(at);
  }
  if (text != example.text) return;  // it looks at what the contents are
  for (const size_t place : places) {
    for (const TextSpan& turn : example.learnt) {
      if (place < turn.begin || place >= turn.end) continue;
      throw Error(
          ErrorCode::invalid,
          fmt::format("{}: the chat template writes the message of another inside a turn of "
                      "the assistant, at byte {}: {}; learn the last turn only, or write "
                      "one call a message",
                      chat.where, place, shown_text(text.substr(place))));
    }
  }
}

void ChatExamples::find_assistant_turns(const DatasetChat& chat, ExampleText& example) const {
  for (size_t i = chat.num_prompt_messages; i < chat.messages.size(); ++i) {
    if (chat.messages[i].role != "assistant" || !chat.messages[i].is_learnt) continue;
    const TurnBegin begin = turn_begin(chat, i, example.text);
    const TextSpan turn{.begin = begin.at, .end = turn_end(chat, i, example.text)};
    const size_t last_end = example.learnt.empty() ? 0 : example.learnt.back().end;
    if (turn.begin > turn.end || turn.begin < last_end) {
      throw Error(ErrorCode::invalid,
                  fmt::format("{}[{}]: the chat template writes this turn at bytes {} to {}, "
                              "expected them in order and behind the turn before, which ends at "
                              "{}; learn the last turn only, or all tokens",
                              chat.where, i, turn.begin, turn.end, last_end));
    }
    example.learnt.push_back(turn);
    example.num_other_prompts += begin.is_other_prompt ? 1 : 0;
  }
  if (example.learnt.empty()) {
    throw Error(ErrorCode::invalid,
                chat.where + ": found no message of the assistant to learn, expected at least one");
  }
  check_others(chat, example);
}

ExampleText ChatExamples::without_template(const std::string& prompt,
                                           const std::string& answer) const {
  ExampleText example{.text = prompt + answer, .learnt = {}};
  const bool is_masked = loss_tokens() != LossTokens::all;
  example.learnt = {{.begin = is_masked ? prompt.size() : 0, .end = example.text.size()}};
  return example;
}

ExampleText ChatExamples::render(const DatasetChat& chat) const {
  if (!has_template()) {
    throw Error(ErrorCode::unsupported,
                chat.where +
                    ": the model has no chat template, and chats need one; give the "
                    "model's, or write texts, or prompts and completions as strings");
  }
  RenderedChat whole = render_first(chat, chat.messages.size(), false);
  ExampleText example{.text = std::move(whole.text),
                      .learnt = {},
                      .plain = std::move(whole.typed),
                      .is_rendered = true};
  check_calls(chat);
  example.num_silent_thoughts = num_silent_thoughts(chat, example.text);
  switch (options_.loss_tokens) {
    case LossTokens::all:
      example.learnt = {{.begin = 0, .end = example.text.size()}};
      break;
    case LossTokens::completion: {
      const TurnBegin begin = turn_begin(chat, chat.num_prompt_messages, example.text);
      example.learnt = {{.begin = begin.at, .end = example.text.size()}};
      example.num_other_prompts = begin.is_other_prompt ? 1 : 0;
      break;
    }
    case LossTokens::assistant_turns:
      find_assistant_turns(chat, example);
      break;
  }
  return example;
}

}  // namespace paceline
