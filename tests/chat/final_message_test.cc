#include <gtest/gtest.h>

#include "paceline/chat_template.h"
#include "tests/expect_error.h"

namespace paceline {
namespace {

// As transformers 5.23 renders the same with continue_final_message=True.
std::string continued(std::string_view source, std::vector<ChatMessage> messages) {
  return ChatTemplate::parse(source, "test")
      .render({.messages = std::move(messages),
               .add_generation_prompt = false,
               .continue_final_message = true});
}

constexpr std::string_view kPlain =
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}</end>\n{% endfor %}";
constexpr std::string_view kTrimming =
    "{% for m in messages %}<{{ m.role }}>{{ m.content | trim }}</end>\n{% endfor %}";

TEST(FinalMessage, IsLeftOpen) {
  EXPECT_EQ(continued(kPlain, {{"user", "Say."}, {"assistant", "Once upon"}}),
            "<user>Say.</end>\n<assistant>Once upon");
  EXPECT_EQ(continued(kPlain, {{"assistant", "a "}, {"assistant", " a "}}),
            "<assistant>a </end>\n<assistant> a ");
  EXPECT_EQ(continued(kPlain, {{"assistant", ""}}), "<assistant>");
}

TEST(FinalMessage, LosesTheBlanksThatTheTemplateTrims) {
  EXPECT_EQ(continued(kTrimming, {{"user", "Say. "}, {"assistant", " Once upon \n"}}),
            "<user>Say.</end>\n<assistant>Once upon");
}

TEST(FinalMessage, MayHaveItsTextInParts) {
  constexpr std::string_view kParts =
      "{% for m in messages %}{% for p in m.content %}[{{ p.text }}]{% endfor %}{% endfor %}";
  EXPECT_EQ(continued(kParts, {{.role = {}, .content = {}, .json = R"({"role": "assistant",
                "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]})"}}),
            "[a][b");
}

TEST(FinalMessage, MustHaveATextThatTheTemplateShows) {
  const auto refused = [](std::string_view source, std::vector<ChatMessage> messages,
                          const std::string& words) {
    expect_error(ErrorCode::invalid, {"continue_final_message", words},
                 [&] { continued(source, std::move(messages)); });
  };
  refused(kPlain, {}, "no message");
  refused(kPlain, {{.role = {}, .content = {}, .json = R"({"role": "assistant"})"}}, "no text");
  refused("{{ messages[0].role }}", {{"assistant", "a"}}, "leaves out");
  refused("{{ messages[0].content.split('</think>')[-1] }}", {{"assistant", "why</think>so"}},
          "leaves out");
  expect_error(ErrorCode::invalid, {"continue_final_message", "add_generation_prompt"}, [] {
    (void)ChatTemplate::parse(kPlain, "test")
        .render({.messages = {{"assistant", "a"}}, .continue_final_message = true});
  });
}

TEST(FinalMessage, OfTheBuiltInFormats) {
  for (const auto& [name, expected] :
       {std::pair{"chatml", "<|im_start|>user\nSay.<|im_end|>\n<|im_start|>assistant\nOnce "},
        std::pair{"gemma", "<start_of_turn>user\nSay.<end_of_turn>\n<start_of_turn>model\nOnce"},
        std::pair{"llama3",
                  "<|start_header_id|>user<|end_header_id|>\n\nSay.<|eot_id|>"
                  "<|start_header_id|>assistant<|end_header_id|>\n\nOnce"}}) {
    EXPECT_EQ(
        ChatTemplate::builtin(name).render({.messages = {{"user", "Say."}, {"assistant", "Once "}},
                                            .add_generation_prompt = false,
                                            .continue_final_message = true,
                                            .special_tokens = {{"bos_token", ""}}}),
        expected);
  }
}

}  // namespace
}  // namespace paceline
