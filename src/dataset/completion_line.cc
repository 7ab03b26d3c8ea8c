// Lines of a prompt and its completion.
#include "base/error.h"
#include "dataset/dataset_tools.h"
#include "dataset/line_format.h"

namespace paceline {
namespace {

bool has_completion(const JsonCursor& line) {
  return line.contains("prompt") && line.contains("completion");
}

ExampleText read_texts(const JsonCursor& line, const ChatExamples& chats) {
  const std::string& prompt = line.at("prompt").string();
  const JsonCursor completion = line.at("completion");
  const std::string& answer = completion.string();
  if (answer.empty()) completion.mismatch("a text to learn");
  if (!chats.has_template()) return chats.without_template(prompt, answer);
  DatasetChat chat{.messages = {text_message("user", prompt), text_message("assistant", answer)},
                   .tools = read_dataset_tools(line),
                   .where = line.where()};
  add_system_prompt(line, chat);
  chat.num_prompt_messages = chat.messages.size() - 1;
  return chats.render(chat);
}

ExampleText read_message_lists(const JsonCursor& line, const ChatExamples& chats) {
  const JsonCursor completion = line.at("completion");
  DatasetChat chat{.messages = read_dataset_messages(line.at("prompt")),
                   .num_prompt_messages = 0,
                   .tools = read_dataset_tools(line),
                   .where = line.where() + ": prompt and completion"};
  add_system_prompt(line, chat);
  chat.num_prompt_messages = chat.messages.size();
  std::vector<DatasetMessage> answer = read_dataset_messages(completion);
  if (answer.empty()) completion.fail("found no message, expected at least one");
  if (chats.loss_tokens() == LossTokens::completion && answer.front().role != "assistant") {
    completion.item(0).at("role").mismatch("\"assistant\": the prompt is masked up to its turn");
  }
  chat.messages.insert(chat.messages.end(), answer.begin(), answer.end());
  return chats.render(chat);
}

ExampleText read_completion_line(const JsonCursor& line, const ChatExamples& chats) {
  const JsonCursor prompt = line.at("prompt"), completion = line.at("completion");
  if (!prompt.is_string() && !prompt.is_array()) prompt.mismatch("a string or a list of messages");
  if (prompt.is_string() != completion.is_string() || prompt.is_array() != completion.is_array()) {
    completion.mismatch(prompt.is_string() ? "a string, as the prompt is"
                                           : "a list of messages, as the prompt is");
  }
  return prompt.is_string() ? read_texts(line, chats) : read_message_lists(line, chats);
}

}  // namespace

const LineFormat kCompletionLines = {.name = "prompts and completions",
                                     .keys = "prompt and completion",
                                     .has_keys = has_completion,
                                     .read = read_completion_line};

}  // namespace paceline
