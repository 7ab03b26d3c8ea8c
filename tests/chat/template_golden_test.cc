// Compares renderings with Python's Jinja, for small and for real templates.
#include <gtest/gtest.h>

#include <map>
#include <optional>

#include "base/error.h"
#include "base/json_writer.h"
#include "base/mapped_file.h"
#include "paceline/chat_template.h"
#include "paceline/tokenizer.h"
#include "tests/chat/rendering.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

const fs::path kSource = PACELINE_SOURCE_DIR;
const fs::path kShared = kSource.parent_path() / "shared";

std::string text(const Json& row, std::string_view key) { return row.find(key)->as_string(key); }

std::string json_or_nothing(const Json& row, std::string_view key) {
  const Json* value = row.find_value(key);
  return value == nullptr ? std::string() : to_json(*value);
}

// The program that wrote these conversations wrote 2.0 as 2.
std::string with_float(std::string line) {
  const std::string_view integer = "[1,2,null,true]";
  for (size_t at = 0; (at = line.find(integer, at)) != std::string::npos;) {
    line.replace(at, integer.size(), "[1,2.0,null,true]");
  }
  return line;
}

ChatInput input_of(const Json& conversation, const Json& row) {
  ChatInput input;
  for (const Json& message : conversation.find("messages")->as_array("messages")) {
    input.messages.push_back({.role = {}, .content = {}, .json = to_json(message)});
  }
  input.tools_json = json_or_nothing(conversation, "tools");
  input.kwargs_json = json_or_nothing(row, "kwargs");
  input.add_generation_prompt = row.find("add_generation_prompt")->as_bool("add_generation_prompt");
  if (const Json* now = row.find_value("now")) input.now = now->as_string("now");
  return input;
}

// The rendering, or the message of the error that the template raises.
void expect_golden(const ChatTemplate& chat_template, const ChatInput& input, const Json& row) {
  const Json* error = row.find_value("error");
  try {
    const std::string rendered = chat_template.render(input);
    EXPECT_EQ(error, nullptr) << "should fail: " << to_json(*error);
    if (error == nullptr) {
      EXPECT_EQ(rendered, text(row, "rendered"));
    }
  } catch (const Error& raised) {
    EXPECT_NE(error, nullptr) << raised.what();
    if (error != nullptr) {
      EXPECT_EQ(raised.what(), error->as_string("error"));
    }
  }
}

TEST(TemplateGolden, RandomTemplatesRenderAsInPython) {
  const auto rows = lines_of_file(kSource / "tests/goldens/chat/random_templates.jsonl");
  ASSERT_GT(rows.size(), 600u);
  const Json variables = parse_json(rows[0], "variables");
  std::string members = to_json(*variables.find("variables"));
  members.insert(
      1, "\"tools\":null,\"documents\":null,\"messages\":[],\"add_generation_prompt\":false,");
  for (size_t i = 1; i < rows.size(); ++i) {
    SCOPED_TRACE(rows[i]);
    const Json row = parse_json(rows[i], "row");
    std::optional<std::string> rendered;
    try {
      rendered = render(text(row, "template"), members);
    } catch (const Error& error) {
      EXPECT_NE(row.find("fails"), nullptr) << error.what();
      continue;
    }
    ASSERT_EQ(row.find("fails"), nullptr) << *rendered;
    EXPECT_EQ(*rendered, text(row, "rendered"));
  }
}

TEST(TemplateGolden, RealTemplatesRenderAsInPython) {
  const fs::path folder = kShared / "templates";
  if (!fs::exists(folder / "golden.jsonl")) GTEST_SKIP() << folder << " isn't there";
  std::map<std::string, Json> conversations;
  for (const std::string& line : lines_of_file(folder / "conversations.jsonl")) {
    Json conversation = parse_json(with_float(line), "conversation");
    conversations.emplace(text(conversation, "conv"), std::move(conversation));
  }
  std::map<std::string, ChatTemplate> templates;
  for (const std::string& line : lines_of_file(folder / "golden.jsonl")) {
    const Json row = parse_json(line, "row");
    const std::string name = text(row, "template");
    SCOPED_TRACE(name + " " + text(row, "conv"));
    if (!templates.contains(name)) {
      const std::string source = read_text_file(folder / "jinja" / (name + ".jinja"), 1 << 20);
      templates.emplace(name, ChatTemplate::parse(source, name));
    }
    ChatInput input = input_of(conversations.at(text(row, "conv")), row);
    input.special_tokens = {{"bos_token", "<BOS>"}, {"eos_token", "<EOS>"}};
    expect_golden(templates.at(name), input, row);
  }
  EXPECT_GT(templates.size(), 30u);
}

TEST(TemplateGolden, RealTokenizersChatsHaveTheirIds) {
  const fs::path folder = kShared / "tokenizers";
  if (!fs::exists(folder)) GTEST_SKIP() << folder << " isn't there";
  for (const auto& entry : fs::directory_iterator(folder)) {
    const fs::path chats = entry.path() / "chat.jsonl";
    if (!fs::exists(chats)) continue;
    const Tokenizer tokenizer = Tokenizer::load(entry.path());
    const auto chat_template = ChatTemplate::load(entry.path());
    ASSERT_TRUE(chat_template.has_value()) << entry.path();
    for (const std::string& line : lines_of_file(chats)) {
      const Json row = parse_json(with_float(line), "row");
      SCOPED_TRACE(entry.path().filename().string() + " " + text(row, "conv"));
      ChatInput input = input_of(row, row);
      for (const auto& [name, token] : row.find("special_tokens")->as_object("special_tokens")) {
        input.special_tokens.emplace_back(name, token.as_string(name));
      }
      expect_golden(*chat_template, input, row);
      if (row.find_value("rendered") == nullptr) continue;
      std::vector<TokenId> ids;
      for (const Json& id : row.find("ids")->as_array("ids"))
        ids.push_back(static_cast<TokenId>(id.as_int("id")));
      EXPECT_EQ(tokenizer.encode(text(row, "rendered")), ids);
    }
  }
}

TEST(TemplateGolden, BuiltinFormatsAreThoseOfTheRealTemplates) {
  const fs::path folder = kShared / "templates/jinja";
  if (!fs::exists(folder)) GTEST_SKIP() << folder << " isn't there";
  const ChatInput input{
      .messages = {{"user", " Hi "}, {"assistant", "Hello."}, {"user", "And\nnow?"}},
      .special_tokens = {{"bos_token", "<bos>"}, {"eos_token", "<eos>"}}};
  const auto expect_same = [&](const char* builtin, const char* file, const ChatInput& of) {
    const auto real = ChatTemplate::parse(read_text_file(folder / file, 1 << 20), file);
    EXPECT_EQ(ChatTemplate::builtin(builtin).render(of), real.render(of)) << builtin;
  };
  expect_same("gemma", "google-gemma-2-2b-it.jinja", input);
  ChatInput with_system = input;  // Qwen 2.5 has a system message of its own else
  with_system.messages.insert(with_system.messages.begin(), {"system", "Be brief."});
  expect_same("chatml", "Qwen-Qwen2.5-7B-Instruct.jinja", with_system);
}

}  // namespace
}  // namespace paceline
