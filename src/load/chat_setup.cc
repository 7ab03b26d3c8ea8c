#include "load/chat_setup.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/mapped_file.h"
#include "chat/builtin_templates.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxTemplateBytes = size_t{1} << 20;

ChatTemplate wanted_template(const ModelFiles& files, const std::string& wanted) {
  std::error_code ignored;
  if (fs::is_regular_file(wanted, ignored)) {
    return ChatTemplate::parse(read_text_file(wanted, kMaxTemplateBytes), wanted);
  }
  for (const BuiltinTemplate& format : kBuiltinTemplates) {
    if (format.name == wanted) return ChatTemplate::builtin(wanted);
  }
  std::string why;
  try {
    auto named = ChatTemplate::load(files, wanted);
    if (named) return std::move(*named);
  } catch (const Error& error) {
    why = fmt::format(" ({})", error.what());
  }
  throw Error(ErrorCode::invalid,
              fmt::format("--chat-template: found \"{}\", expected a file, the name of one of the "
                          "model's templates{} or of a built-in one ({})",
                          wanted, why, builtin_template_names()));
}

// Texts that look like one token: "<|im_start|>", "<start_of_turn>".
std::vector<std::string> markers_of(std::string_view text) {
  constexpr size_t kMaxMarkerBytes = 64;
  std::vector<std::string> markers;
  for (size_t begin = 0; begin < text.size(); ++begin) {
    if (text[begin] != '<') continue;
    const size_t end = text.find_first_of("> \n", begin);
    if (end == std::string_view::npos || text[end] != '>' || end - begin > kMaxMarkerBytes)
      continue;
    const std::string marker(text.substr(begin, end + 1 - begin));
    const bool has_bars = marker.size() > 4 && marker[1] == '|';
    const bool is_turn = marker.find("_of_turn") != std::string::npos;
    if (!has_bars && !is_turn) continue;
    if (std::find(markers.begin(), markers.end(), marker) == markers.end())
      markers.push_back(marker);
  }
  return markers;
}

std::string join(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, ", "));
}

bool is_stop(TokenId id, const std::vector<TokenId>& stop_tokens) {
  return std::binary_search(stop_tokens.begin(), stop_tokens.end(), id);
}

// A note when no stop token stands between an assistant's turn and the next turn.
std::optional<std::string> check_end_of_turn(const std::string& rendered, std::string_view answer,
                                             std::string_view next_question,
                                             const Tokenizer& tokenizer,
                                             const std::vector<TokenId>& stop_tokens) {
  const size_t at = rendered.find(answer);
  const size_t next = rendered.find(next_question);
  if (at == std::string::npos || next == std::string::npos || next < at) return std::nullopt;
  const size_t behind = at + answer.size();
  const std::string between = rendered.substr(behind, next - behind);
  for (const TokenId id : tokenizer.encode(between)) {
    if (is_stop(id, stop_tokens)) return std::nullopt;
  }
  return fmt::format(
      "the chat template ends a turn with {}, in which no token is a stop token: answers may run "
      "on (--stop or --stop-token-ids ends them)",
      between.empty() ? "nothing" : fmt::format("\"{}\"", between.substr(0, 40)));
}

}  // namespace

ChatSetup set_up_chat(const ModelFiles& files, const std::string& wanted,
                      const Tokenizer& tokenizer) {
  ChatSetup setup;
  if (!wanted.empty()) {
    setup.chat_template = wanted_template(files, wanted);
    return setup;
  }
  try {
    setup.chat_template = ChatTemplate::load(files);
  } catch (const Error& error) {
    setup.problem = error.what();
    setup.notes.push_back(fmt::format("the model's chat template can't be used: {}", error.what()));
    return setup;
  }
  if (setup.chat_template) return setup;
  for (const BuiltinTemplate& format : kBuiltinTemplates) {
    if (!tokenizer.token_id(format.marker)) continue;
    setup.chat_template = ChatTemplate::builtin(format.name);
    setup.notes.push_back(fmt::format(
        "the model carries no chat template; it has {}, so the built-in {} format is used",
        format.marker, format.name));
    return setup;
  }
  setup.problem = fmt::format(
      "{}: has no chat template (chat_template.jinja), and its tokens are those of no known "
      "format; "
      "--chat-template names a file or one of {}",
      files.origin().string(), builtin_template_names());
  return setup;
}

std::vector<std::string> check_chat(const ChatTemplate& chat_template, const Tokenizer& tokenizer,
                                    const std::vector<TokenId>& stop_tokens) {
  constexpr std::string_view kQuestion = "What is it?";
  constexpr std::string_view kAnswer = "It is this.";
  constexpr std::string_view kNextQuestion = "And that?";
  std::vector<std::string> notes;
  std::string rendered;
  try {
    rendered = chat_template.render({.messages = {{"user", std::string(kQuestion)},
                                                  {"assistant", std::string(kAnswer)},
                                                  {"user", std::string(kNextQuestion)}},
                                     .special_tokens = tokenizer.special_tokens()});
  } catch (const Error& error) {
    return {fmt::format("the chat template fails on a plain conversation: {}", error.what())};
  }
  for (const std::string_view text : {kQuestion, kAnswer, kNextQuestion}) {
    if (rendered.find(text) == std::string::npos) {
      notes.push_back(fmt::format("the chat template leaves out a message (\"{}\")", text));
      return notes;
    }
  }
  std::vector<std::string> unknown;
  for (const std::string& marker : markers_of(rendered)) {
    if (!tokenizer.token_id(marker)) unknown.push_back(marker);
  }
  if (!unknown.empty()) {
    notes.push_back(
        fmt::format("the chat template writes {}, which the tokenizer doesn't have as one token",
                    join(unknown)));
  }
  if (stop_tokens.empty()) {
    notes.emplace_back(
        "no stop token is known: answers end by length only (--stop ends them sooner)");
  } else if (const auto note =
                 check_end_of_turn(rendered, kAnswer, kNextQuestion, tokenizer, stop_tokens)) {
    notes.push_back(*note);
  }
  return notes;
}

}  // namespace paceline
