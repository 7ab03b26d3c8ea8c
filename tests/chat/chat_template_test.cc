#include "paceline/chat_template.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/expect_error.h"
#include "tests/test_directory.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

class ChatTemplateTest : public ::testing::Test {
 protected:
  void write(const fs::path& name, const std::string& text) const { temporary_.write(name, text); }
  std::string loaded(const ChatInput& input = {}) const {
    return ChatTemplate::load(directory_)->render(input);
  }

  TestDirectory temporary_;
  fs::path directory_ = temporary_.path();
};

TEST_F(ChatTemplateTest, TheFilesCountInTheirOrder) {
  EXPECT_FALSE(ChatTemplate::load(directory_).has_value());
  write("tokenizer_config.json", R"({"chat_template": "config"})");
  EXPECT_EQ(loaded(), "config");
  write("chat_template.json", R"({"chat_template": "json"})");
  EXPECT_EQ(loaded(), "json");
  write("chat_template.jinja", "jinja");
  EXPECT_EQ(loaded(), "jinja");
}

TEST_F(ChatTemplateTest, OfNamedTemplatesToolsAndNamesChoose) {
  write(
      "tokenizer_config.json",
      R"({"chat_template": [{"name": "default", "template": "D"}, {"name": "tool_use", "template": "T"},
            {"name": "rag", "template": "R"}]})");
  EXPECT_EQ(loaded(), "D");
  EXPECT_EQ(loaded({.tools_json = "[]"}), "T");
  EXPECT_EQ(ChatTemplate::load(directory_, "rag")->render({}), "R");
  expect_error(ErrorCode::invalid, {"nope", "default, tool_use, rag"},
               [&] { ChatTemplate::load(directory_, "nope"); });
  write("chat_template.jinja", "J");
  write("additional_chat_templates/tool_use.jinja", "JT");
  EXPECT_EQ(loaded({.tools_json = "[{}]"}), "JT");
}

TEST_F(ChatTemplateTest, ABadFileIsNamed) {
  write("chat_template.jinja", "a\n{{ 1 + }}");
  expect_error(ErrorCode::invalid, {"chat_template.jinja:2:8"},
               [&] { ChatTemplate::load(directory_); });
  fs::remove(directory_ / "chat_template.jinja");
  write("tokenizer_config.json", R"({"chat_template": [{"name": "default"}]})");
  expect_error(ErrorCode::invalid, {"chat_template[0].template"},
               [&] { ChatTemplate::load(directory_); });
  write("tokenizer_config.json", R"({"chat_template": 3})");
  expect_error(ErrorCode::invalid, {"chat_template", "string"},
               [&] { ChatTemplate::load(directory_); });
}

TEST_F(ChatTemplateTest, WhatTheCallerSaysCannotBeOverriddenByKwargs) {
  const auto chat = ChatTemplate::parse(
      "{{ messages|length }}{{ add_generation_prompt }}{{ x }}{{ bos_token }}", "t");
  EXPECT_EQ(
      chat.render(
          {.messages = {{"user", "a"}},
           .kwargs_json =
               R"({"messages": [], "add_generation_prompt": false, "x": 1, "bos_token": "B"})",
           .special_tokens = {{"bos_token", "A"}}}),
      "1True1B");
}

TEST_F(ChatTemplateTest, BadInputNamesTheField) {
  const auto chat = ChatTemplate::parse("x", "t");
  const auto fails = [&](const ChatInput& input, const char* part) {
    expect_error(ErrorCode::invalid, {part}, [&] { chat.render(input); });
  };
  fails({.messages = {{.role = {}, .content = {}, .json = "[1]"}}}, "messages[0]");
  fails({.messages = {{"user", ""}, {.role = {}, .content = {}, .json = "{"}}}, "messages[1]");
  fails({.tools_json = "{}"}, "tools");
  fails({.kwargs_json = "[]"}, "chat_template_kwargs");
  fails({.now = "soon"}, "now");
}

TEST_F(ChatTemplateTest, ToolsHaveParametersWithProperties) {
  const ChatTemplate names = ChatTemplate::parse(
      "{%- for t in tools %}{%- set f = t.function or t %}{{ f.name }}("
      "{%- for n, p in f.parameters.properties.items() %}{{ n }} {%- endfor %})"
      "{{ f.parameters | tojson }};{%- endfor %}",
      "names");
  const std::string empty = R"({"type": "object", "properties": {}})";
  EXPECT_EQ(names.render({.tools_json = R"([{"type": "function", "function": {"name": "a"}},
      {"name": "b", "parameters": null}, {"type": "function", "function": {"name": "c",
        "parameters": {}}}, {"type": "function", "function": {"name": "d", "parameters":
        {"type": "object", "required": []}}}, {"name": "e", "parameters":
        {"type": "object", "properties": {"x": {}}}}])"}),
            "a()" + empty + ";b()" + empty + ";c()" + empty +
                R"(;d(){"type": "object", "required": [], "properties": {}};)" +
                R"(e(x){"type": "object", "properties": {"x": {}}};)");
}

TEST_F(ChatTemplateTest, MissingToolsAndDocumentsAreNone) {
  EXPECT_EQ(ChatTemplate::parse("{{ tools is none }}{{ documents is none }}{{ x is defined }}", "t")
                .render({}),
            "TrueTrueFalse");
}

TEST_F(ChatTemplateTest, AnyNumberOfThreadsMayRender) {
  const auto chat = ChatTemplate::builtin("llama3");
  const ChatInput input{.messages = {{"system", "s"}, {"user", "u"}},
                        .special_tokens = {{"bos_token", "<b>"}}};
  const std::string expected = chat.render(input);
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 200; ++round) EXPECT_EQ(chat.render(input), expected);
    });
  }
}

TEST_F(ChatTemplateTest, BuiltinFormats) {
  const ChatInput input{.messages = {{"system", "S"}, {"user", " U "}, {"assistant", "A"}},
                        .special_tokens = {{"bos_token", "<b>"}}};
  EXPECT_EQ(ChatTemplate::builtin("chatml").render(input),
            "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\n U "
            "<|im_end|>\n<|im_start|>assistant\nA<|im_end|>\n"
            "<|im_start|>assistant\n");
  EXPECT_EQ(ChatTemplate::builtin("gemma").render(input),
            "<b><start_of_turn>user\nS\n\nU<end_of_turn>\n<start_of_turn>model\nA<end_of_turn>\n<"
            "start_of_turn>model\n");
  EXPECT_EQ(ChatTemplate::builtin("llama3").render(input),
            "<b><|start_header_id|>system<|end_header_id|>\n\nS<|eot_id|><|start_header_id|>user<|"
            "end_header_id|>\n\nU"
            "<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\nA<|eot_id|><|start_header_"
            "id|>assistant"
            "<|end_header_id|>\n\n");
  expect_error(ErrorCode::invalid, {"alpaca", "chatml, gemma, llama3"},
               [] { ChatTemplate::builtin("alpaca"); });
}

}  // namespace
}  // namespace paceline
