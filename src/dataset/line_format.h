// LineFormat is what the lines of a JSON Lines file of training data hold.
#pragma once

#include <string>
#include <string_view>

#include "base/json_cursor.h"
#include "dataset/chat_example.h"
#include "dataset/example_text.h"

namespace paceline {

struct LineFormat {
  std::string_view name;  // "chats"
  std::string_view keys;  // "messages"
  // Whether a line has the format's keys. What they hold is checked by `read`.
  bool (*has_keys)(const JsonCursor& line);
  // Throws Error invalid naming the field, unsupported when no line of the format can be read with
  // this model and these options.
  ExampleText (*read)(const JsonCursor& line, const ChatExamples& chats);
};

// {"messages": [...], "tools": [...]}: OpenAI's chats; tools may be absent.
extern const LineFormat kChatLines;
// {"conversations": [{"from": "human", "value": ...}, ...]}: ShareGPT's chats.
extern const LineFormat kShareGptLines;
// {"prompt": ..., "completion": ...}: two strings, which are a turn of the user and one of the
// assistant where the model has a chat template; or two lists of messages, as TRL writes them.
extern const LineFormat kCompletionLines;
// {"instruction": ..., "input": ..., "output": ...}: Alpaca's; the input may be empty or absent.
extern const LineFormat kAlpacaLines;
// {"text": ...}
extern const LineFormat kTextLines;

// The format whose keys a line has; of several the first of prompt and completion, messages, text,
// as mlx_lm chooses, then conversations, instruction and output. nullptr: none.
const LineFormat* find_line_format(const JsonCursor& line);

// What a line may have: "messages, or conversations, or ...".
std::string known_line_keys();

// Throws Error unsupported for a line that compares or judges answers (DPO, KTO): learnt as an
// example, a bad answer would count as a good one.
void refuse_judged_answers(const JsonCursor& line);

}  // namespace paceline
