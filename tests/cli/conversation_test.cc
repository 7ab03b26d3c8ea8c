#include "cli/conversation.h"

#include <gtest/gtest.h>

#include "tests/expect_error.h"

namespace paceline {
namespace {

TEST(Conversation, TheSystemMessageStandsFirstAndAnUnansweredQuestionCanGo) {
  Conversation chat("Be kind.");
  chat.add_question("One?");
  chat.add_answer({.text = "1"});
  chat.add_question("Two?");
  chat.drop_question();
  chat.drop_question();  // keeps an answered question
  const auto messages = chat.messages();
  ASSERT_EQ(messages.size(), 3u);
  EXPECT_EQ(messages[0].role, "system");
  EXPECT_EQ(messages[1].content, "One?");
  EXPECT_EQ(messages[2].role, "assistant");
  chat.clear();
  EXPECT_EQ(chat.messages().size(), 1u);
}

TEST(Conversation, WhatIsSavedIsLoaded) {
  Conversation chat("a \"system\"\n");
  chat.add_question("\xC3\xA9\t");
  chat.add_answer({.text = ""});
  Conversation other;
  other.read_json(chat.to_json(), "saved.json");
  EXPECT_EQ(other.to_json(), chat.to_json());
  EXPECT_EQ(other.system(), chat.system());
  other.read_json(R"([{"role": "user", "content": "x"}])", "list.json");
  EXPECT_EQ(other.num_turns(), 1u);
  EXPECT_EQ(other.system(), "");
}

TEST(Conversation, ReasoningStandsBesideTheContentAndIsSaved) {
  Conversation chat;
  chat.add_question("One?");
  chat.add_answer({.text = "<think>hm</think>1",
                   .turn = TurnParts{.reasoning = "hm", .content = "1", .tool_calls = {}}});
  EXPECT_EQ(chat.messages()[1].content, "1");
  EXPECT_EQ(chat.messages()[1].json,
            R"({"role":"assistant","content":"1","reasoning_content":"hm"})");
  Conversation other;
  other.read_json(chat.to_json(), "saved.json");
  EXPECT_EQ(other.messages()[1].json, chat.messages()[1].json);
  EXPECT_EQ(other.to_json(), chat.to_json());
}

TEST(Conversation, ABadFileNamesTheFieldAndChangesNothing) {
  Conversation chat;
  chat.add_question("kept");
  const auto fails = [&](const char* json, const char* part) {
    expect_error(ErrorCode::invalid, {"f.json", part}, [&] { chat.read_json(json, "f.json"); });
  };
  fails("{}", "messages");
  fails("[{\"role\": \"user\"}]", "messages[0].content");
  fails("[{\"role\": \"user\", \"content\": \"a\"}, {\"role\": 1, \"content\": \"\"}]",
        "messages[1].role");
  fails("[3]", "messages[0]");
  EXPECT_EQ(chat.num_turns(), 1u);
}

}  // namespace
}  // namespace paceline
