#include "cli/chat_input.h"

#include <gtest/gtest.h>

namespace paceline {
namespace {

ChatInput chat(std::vector<ChatMessage> messages) { return {.messages = std::move(messages)}; }

TEST(SystemMessage, stands_before_a_conversation_that_brings_none) {
  for (const ChatMessage& message :
       {ChatMessage{"user", "system"}, ChatMessage{"", "", R"({"role": "user", "content": "x"})"},
        ChatMessage{"", "", R"({"content": "system"})"}, ChatMessage{"", "", R"({"role": 1})"}}) {
    ChatInput input = chat({message});
    add_system_message("Be brief.", input);
    ASSERT_EQ(input.messages.size(), 2u) << message.json;
    EXPECT_EQ(input.messages[0].role, "system");
    EXPECT_EQ(input.messages[0].content, "Be brief.");
    EXPECT_EQ(input.messages[1].json, message.json);
  }
  ChatInput empty = chat({});
  add_system_message("Be brief.", empty);
  EXPECT_EQ(empty.messages.size(), 1u);
}

TEST(SystemMessage, a_conversation_keeps_its_own) {
  for (const ChatMessage& message :
       {ChatMessage{"system", "Be loud."}, ChatMessage{"developer", ""},
        ChatMessage{"", "", R"({"role": "system", "content": "x", "name": "y"})"}}) {
    ChatInput input = chat({{"user", "x"}, message});
    add_system_message("Be brief.", input);
    EXPECT_EQ(input.messages.size(), 2u);
  }
  ChatInput input = chat({{"user", "x"}});
  add_system_message("", input);
  EXPECT_EQ(input.messages.size(), 1u);
}

}  // namespace
}  // namespace paceline
