// Lines of messages.
#include "base/error.h"
#include "dataset/line_format.h"

namespace paceline {
namespace {

bool has_messages(const JsonCursor& line) { return line.contains("messages"); }

ExampleText read_chat_line(const JsonCursor& line, const ChatExamples& chats) {
  const JsonCursor messages = line.at("messages");
  DatasetChat chat{.messages = read_dataset_messages(messages),
                   .num_prompt_messages = 0,
                   .tools = read_dataset_tools(line),
                   .where = messages.name()};
  if (chat.messages.empty()) messages.fail("found no message, expected at least one");
  if (chats.loss_tokens() == LossTokens::completion) {
    chat.num_prompt_messages = chat.messages.size() - 1;
    const std::string& role = chat.messages.back().role;
    if (role != "assistant") {
      messages.item(chat.num_prompt_messages)
          .at("role")
          .mismatch("\"assistant\": with the prompt masked only the last message is learnt");
    }
  }
  return chats.render(chat);
}

}  // namespace

const LineFormat kChatLines = {
    .name = "chats", .keys = "messages", .has_keys = has_messages, .read = read_chat_line};

}  // namespace paceline
