// TurnFormat is how a model writes its turn, as its chat template writes it: reasoning, content and
// tool calls. Plain values, made once for a template and then shared by all threads.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace paceline {

// A variable of the template that switches reasoning; its values are JSON.
struct ReasoningSwitch {
  std::string variable;  // "enable_thinking"
  std::string on;
  std::string off;
};

// Blanks beside a mark belong to it, not to the text.
struct ReasoningFormat {
  std::string begin;  // without blanks around it; empty: every turn begins as reasoning
  std::string end;    // the same; never empty
  // Of an assistant's message, from which the template reads it: "reasoning_content", or "content"
  // for a part of it with type and text "thinking"; empty: the template doesn't write reasoning.
  std::string field;
  std::optional<ReasoningSwitch> toggle;
  bool reads_effort = false;  // reasoning_effort changes the prompt

  // Whether the model's text goes on within reasoning that the prompt has opened.
  bool is_opened_by(std::string_view prompt) const;
  // Whether the prompt has ended the turn's reasoning already.
  bool is_closed_by(std::string_view prompt) const;
  // The template's variables for reasoning_effort: a JSON object. "none" switches reasoning off,
  // every other effort on; {} where the template has neither a switch nor efforts.
  std::string kwargs_for_effort(std::string_view effort) const;
};

// What the template writes around the content of a turn, the generation prompt apart.
struct ContentFormat {
  std::string begin;  // "<|START_RESPONSE|>"; mostly empty
  std::string end;
};

// How strings stand in a text that isn't JSON as a whole.
struct StringNotation {
  enum class Escapes : uint8_t { none, json, python };
  std::string quote;  // on both sides; empty: none
  Escapes escapes = Escapes::none;
  bool operator==(const StringNotation&) const = default;
};

// Arrays and objects as text: JSON, Python's repr, or a notation of the model.
struct ValueNotation {
  StringNotation strings{.quote = "\"", .escapes = StringNotation::Escapes::json};
  bool quotes_keys = true;
  std::string true_text = "true";
  std::string false_text = "false";
  std::string null_text = "null";
  bool operator==(const ValueNotation&) const = default;
};

// Where a value of a tagged parameter stands: behind the key and `open`, in front of `close`.
struct ParameterFrame {
  std::string open;
  std::string close;
  bool operator==(const ParameterFrame&) const = default;
};

struct ArgumentsFormat {
  enum class Style : uint8_t {
    json_object,  // {"city": "Oslo"}
    json_string,  // "{\"city\": \"Oslo\"}"
    parameters,   // each one between texts: <parameter=city>Oslo</parameter>
  };
  Style style = Style::json_object;
  bool sorts_keys = false;  // the template writes them in alphabetical order

  // Of `parameters`: before_key KEY open VALUE close, with `separator` between two of them.
  std::string before_key;
  std::string separator;
  std::string begin_blanks;     // in front of the first one
  std::string end_blanks;       // behind the last one
  std::string empty_blanks;     // where there are none
  ParameterFrame string_frame;  // of strings
  ParameterFrame other_frame;   // of everything else
  StringNotation::Escapes string_escapes = StringNotation::Escapes::none;  // in string_frame
  std::string true_text = "true";  // what stands for constants in other_frame
  std::string false_text = "false";
  std::string null_text = "null";
  ValueNotation nested;  // arrays and objects in other_frame
  bool nested_is_json() const { return nested == ValueNotation{}; }
};

struct CallPiece {
  enum class Kind : uint8_t { literal, name, id, index, arguments };
  Kind kind = Kind::literal;
  std::string text = {};  // of a literal
  // Written in some places and not in others; neighbours that are optional come together.
  bool is_optional = false;
  bool operator==(const CallPiece&) const = default;
};

// The ids that a model writes: letters, digits, '_', '-', '.' and ':'.
struct CallIdFormat {
  uint32_t min_length = 1;
  uint32_t max_length = 64;
  bool is_alphanumeric = false;  // letters and digits only
};

// How the conversation's messages must be for the template to write their calls.
struct CallMessageShape {
  enum class Content : uint8_t { empty, null, absent };
  Content no_content = Content::empty;  // of a message that has calls only
  bool arguments_are_text = false;      // a string that holds JSON, not an object
};

struct CallFormat {
  std::string lead;               // in front of the first call
  std::vector<CallPiece> pieces;  // of each call
  std::string between;            // two calls
  std::string closing;            // behind the last call
  bool closing_is_optional = false;
  std::string trigger;  // the beginning of lead and pieces by which a call is recognised
  bool may_follow_content = false;  // else a call is recognised only where the turn's text begins
  bool content_may_follow = false;  // the calls, in front of `closing`
  bool is_parallel = false;         // several calls in a turn
  bool name_is_json = false;        // it stands between JSON's quotes
  bool name_is_in_id = false;       // pieces have no name: the id has it, as functions.NAME:0
  // Where the template makes an id of a call's name and index, as functions.NAME:0: what stands in
  // front of the name.
  std::optional<std::string> made_id_prefix;
  // Bytes of lead and pieces that stand at the end of the generation prompt already.
  uint32_t num_prompt_bytes = 0;
  std::string behind_content;  // in front of the lead, where there is content: mostly blanks
  ArgumentsFormat arguments;
  CallIdFormat id;  // where pieces have one
  CallMessageShape message;

  bool has(CallPiece::Kind kind) const;
};

struct TurnFormat {
  ContentFormat content;
  std::optional<ReasoningFormat> reasoning;
  std::optional<CallFormat> calls;
  std::string no_calls;  // why there are none: "the chat template writes no tool calls"
  // `calls` aren't the template's: with_told_tools() explains them in the prompt.
  bool tells_calls = false;
  bool writes_system = true;  // the template writes system messages
  std::string turn_end;       // what stands behind content and calls

  // Error unsupported, with the reason, when there are none.
  const CallFormat& calls_or_throw() const;
};

}  // namespace paceline
