// Lines of an instruction, perhaps an input, and the output.
#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>

#include "base/error.h"
#include "dataset/dataset_tools.h"
#include "dataset/line_format.h"

namespace paceline {
namespace {

bool has_instruction(const JsonCursor& line) {
  return line.contains("instruction") && line.contains("output");
}

std::string text_or_empty(const JsonCursor& line, std::string_view key) {
  const std::optional<JsonCursor> field = line.find(key);
  return field ? std::string(field->string()) : std::string();
}

// LLaMA-Factory's earlier turns: [["question", "answer"], ...].
void add_history(const JsonCursor& line, DatasetChat& chat) {
  const std::optional<JsonCursor> history = line.find("history");
  if (!history) return;
  for (const JsonCursor& turn : history->items()) {
    if (!turn.is_array() || turn.num_items() != 2) turn.mismatch("a question and its answer");
    chat.messages.push_back(text_message("user", turn.item(0).string()));
    chat.messages.push_back(text_message("assistant", turn.item(1).string()));
  }
}

// The prompt of models without a chat template, as the column `text` of tatsu-lab/alpaca has it.
std::string plain_prompt(const std::string& instruction, const std::string& input) {
  constexpr std::string_view kTask = "Below is an instruction that describes a task";
  constexpr std::string_view kInput = ", paired with an input that provides further context";
  constexpr std::string_view kAnswer =
      "Write a response that appropriately completes the request.\n\n### Instruction:\n";
  return fmt::format("{}{}. {}{}{}\n\n### Response:\n", kTask, input.empty() ? "" : kInput, kAnswer,
                     instruction, input.empty() ? "" : "\n\n### Input:\n" + input);
}

ExampleText read_alpaca_line(const JsonCursor& line, const ChatExamples& chats) {
  const std::string& instruction = line.at("instruction").string();
  const std::string input = text_or_empty(line, "input");
  const JsonCursor output = line.at("output");
  const std::string& answer = output.string();
  if (answer.empty()) output.mismatch("a text to learn");
  DatasetChat chat{.tools = read_dataset_tools(line), .where = line.where()};
  add_history(line, chat);
  const bool has_more =
      !chat.tools.empty() || !chat.messages.empty() || !text_or_empty(line, "system").empty();
  if (!chats.has_template() && !has_more) {
    return chats.without_template(plain_prompt(instruction, input), answer);
  }
  const std::string_view between = instruction.empty() || input.empty() ? "" : "\n\n";
  chat.messages.push_back(text_message("user", fmt::format("{}{}{}", instruction, between, input)));
  chat.messages.push_back(text_message("assistant", answer));
  add_system_prompt(line, chat);
  if (chats.loss_tokens() == LossTokens::completion) {
    chat.num_prompt_messages = chat.messages.size() - 1;
  }
  return chats.render(chat);
}

}  // namespace

const LineFormat kAlpacaLines = {.name = "instructions of Alpaca",
                                 .keys = "instruction and output",
                                 .has_keys = has_instruction,
                                 .read = read_alpaca_line};

}  // namespace paceline
