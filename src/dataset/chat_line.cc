// Lines of messages, as OpenAI or ShareGPT writes them.
#include "base/error.h"
#include "dataset/dataset_tools.h"
#include "dataset/line_format.h"
#include "dataset/sharegpt_message.h"

namespace paceline {
namespace {

bool has_messages(const JsonCursor& line) { return line.contains("messages"); }
bool has_conversations(const JsonCursor& line) { return line.contains("conversations"); }

void check_last_speaker(const JsonCursor& messages, const DatasetChat& chat) {
  if (chat.messages.back().role == "assistant") return;
  const bool is_of_sharegpt = is_sharegpt(messages);
  messages.item(chat.messages.size() - 1)
      .at(is_of_sharegpt ? "from" : "role")
      .mismatch(is_of_sharegpt
                    ? "gpt: with the prompt masked only the last message is learnt"
                    : "\"assistant\": with the prompt masked only the last message is learnt");
}

ExampleText read_chat(const JsonCursor& line, const JsonCursor& messages,
                      const ChatExamples& chats) {
  DatasetChat chat{.messages = is_sharegpt(messages) ? read_sharegpt_messages(messages)
                                                     : read_dataset_messages(messages),
                   .num_prompt_messages = 0,
                   .tools = read_dataset_tools(line),
                   .where = messages.name()};
  if (chat.messages.empty()) messages.fail("found no message, expected at least one");
  if (chats.loss_tokens() == LossTokens::completion) check_last_speaker(messages, chat);
  add_system_prompt(line, chat);
  if (chats.loss_tokens() == LossTokens::completion) {
    chat.num_prompt_messages = chat.messages.size() - 1;
  }
  return chats.render(chat);
}

ExampleText read_chat_line(const JsonCursor& line, const ChatExamples& chats) {
  return read_chat(line, line.at("messages"), chats);
}
ExampleText read_sharegpt_line(const JsonCursor& line, const ChatExamples& chats) {
  return read_chat(line, line.at("conversations"), chats);
}

}  // namespace

const LineFormat kChatLines = {
    .name = "chats", .keys = "messages", .has_keys = has_messages, .read = read_chat_line};
const LineFormat kShareGptLines = {.name = "chats of ShareGPT",
                                   .keys = "conversations",
                                   .has_keys = has_conversations,
                                   .read = read_sharegpt_line};

}  // namespace paceline
