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

// Two private code points that end a turn's content where its end is looked for.
constexpr std::string_view kMark = "\U000F5A3E\U000F91C7";

size_t common_prefix(std::string_view a, std::string_view b) {
  const size_t length = std::min(a.size(), b.size());
  return static_cast<size_t>(
      std::mismatch(a.begin(), a.begin() + static_cast<ptrdiff_t>(length), b.begin()).first -
      a.begin());
}

// `chat` with the mark behind the last character of a message's content that isn't white space.
DatasetChat with_mark(const DatasetChat& chat, size_t message) {
  DatasetChat marked = chat;
  for (auto& [key, value] : marked.messages[message].fields) {
    if (key != "content") continue;
    std::string content = value.as_string("content");
    content.insert(content.find_last_not_of(" \t\r\n") + 1, kMark);  // npos + 1 is 0
    value = Json(std::move(content));
  }
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

}  // namespace

std::string ChatExamples::render_part(const DatasetChat& chat, size_t num_messages,
                                      bool add_generation_prompt) const {
  ChatInput input{.messages = {},
                  .tools_json = chat.tools,
                  .kwargs_json = options_.template_variables,
                  .add_generation_prompt = add_generation_prompt,
                  .special_tokens = model_.tokenizer.special_tokens(),
                  .now = options_.now};
  for (size_t i = 0; i < num_messages; ++i) {
    input.messages.push_back({.role = {}, .content = {}, .json = to_json(chat.messages[i].fields)});
  }
  try {
    return model_.chat_template->render(input);
  } catch (const Error& error) {
    throw Error(error.code(),
                fmt::format("{}: the chat template fails on the first {} of {} "
                            "messages: {}",
                            chat.where, num_messages, chat.messages.size(), error.what()));
  }
}

size_t ChatExamples::turn_begin(const DatasetChat& chat, size_t message,
                                const std::string& whole) const {
  const std::string prompt = render_part(chat, message, true);
  if (whole.starts_with(prompt)) return prompt.size();
  const size_t same = common_prefix(prompt, whole);
  throw Error(ErrorCode::invalid,
              fmt::format("{}[{}]: the chat template writes the prompt of this message otherwise "
                          "than the beginning of the whole chat: at byte {} found {}, expected {}; "
                          "variables of the template may change it (as enable_thinking), and "
                          "without a masked prompt it doesn't matter",
                          chat.where, message, same, shown_text(whole.substr(same)),
                          shown_text(prompt.substr(same))));
}

// Where the rendering of the messages up to this one ends, if it is the beginning of the whole
// text. Templates may write the last turn otherwise than earlier ones (Qwen3 drops the thoughts of
// those): then it is what follows a mark behind the content in both renderings.
size_t ChatExamples::turn_end(const DatasetChat& chat, size_t message,
                              const std::string& whole) const {
  if (message + 1 == chat.messages.size()) return whole.size();
  const std::string part = render_part(chat, message + 1, false);
  if (whole.starts_with(part)) return part.size();
  const DatasetChat marked = with_mark(chat, message);
  const auto in_whole = remove_mark(render_part(marked, chat.messages.size(), false));
  const auto in_part = remove_mark(render_part(marked, message + 1, false));
  if (in_whole && in_part && in_whole->text == whole && in_part->text == part) {
    const std::string_view rest = std::string_view(part).substr(in_part->mark);
    if (std::string_view(whole).substr(in_whole->mark).starts_with(rest)) {
      return in_whole->mark + rest.size();
    }
  }
  throw Error(ErrorCode::invalid,
              fmt::format("{}[{}]: the end of this turn can't be found in what the chat template "
                          "writes: the rendering up to it isn't the beginning of the whole chat; "
                          "mask all but the last turn, or nothing",
                          chat.where, message));
}

std::vector<TextSpan> ChatExamples::assistant_turns(const DatasetChat& chat,
                                                    const std::string& whole) const {
  std::vector<TextSpan> turns;
  for (size_t i = chat.num_prompt_messages; i < chat.messages.size(); ++i) {
    if (chat.messages[i].role != "assistant" || !chat.messages[i].is_learnt) continue;
    const TextSpan turn{.begin = turn_begin(chat, i, whole), .end = turn_end(chat, i, whole)};
    if (turn.begin > turn.end || (!turns.empty() && turns.back().end > turn.begin)) {
      throw Error(ErrorCode::invalid,
                  fmt::format("{}[{}]: the chat template writes this turn at bytes {} to {}, "
                              "inside the one before it; mask all but the last turn, or nothing",
                              chat.where, i, turn.begin, turn.end));
    }
    turns.push_back(turn);
  }
  if (turns.empty()) {
    throw Error(ErrorCode::invalid,
                chat.where + ": found no message of the assistant to learn, expected at least one");
  }
  return turns;
}

ExampleText ChatExamples::render(const DatasetChat& chat) const {
  if (!has_template()) {
    throw Error(ErrorCode::unsupported,
                chat.where +
                    ": the model has no chat template, and chats need one; give the "
                    "model's, or write texts, or prompts and completions as strings");
  }
  ExampleText example{
      .text = render_part(chat, chat.messages.size(), false), .learnt = {}, .is_rendered = true};
  switch (options_.loss_tokens) {
    case LossTokens::all:
      example.learnt = {{.begin = 0, .end = example.text.size()}};
      break;
    case LossTokens::completion:
      example.learnt = {{.begin = turn_begin(chat, chat.num_prompt_messages, example.text),
                         .end = example.text.size()}};
      break;
    case LossTokens::assistant_turns:
      example.learnt = assistant_turns(chat, example.text);
      break;
  }
  return example;
}

}  // namespace paceline
