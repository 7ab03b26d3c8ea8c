#include "tools/turn_grammar.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "base/json_writer.h"
#include "tools/arguments_grammar.h"
#include "tools/grammar_path.h"
#include "tools/text_units.h"

namespace paceline {
namespace {

class TurnGrammar {
 public:
  TurnGrammar(const TurnFormat& format, const ToolSet& tools, const TurnGrammarOptions& options,
              GrammarBuilder& builder)
      : format_(format),
        tools_(tools),
        options_(options),
        builder_(builder),
        special_(options.special_tokens),
        turn_(builder, special_, "turn") {}

  RuleId write() {
    if (options_.choice != ToolChoice::none) choose_tools();
    const StateId end = turn_.add_state();
    write_reasoning(end);
    const StateId start = turn_.here();
    if (!must_call()) {
      write_answer();
      turn_.join(end);
    }
    if (options_.choice != ToolChoice::none) {
      turn_.go_to(start);
      write_calls(end);
    }
    turn_.go_to(end);
    return turn_.end();
  }

 private:
  bool must_call() const {
    return options_.choice == ToolChoice::required || options_.choice == ToolChoice::named;
  }
  bool is_automatic() const { return options_.choice == ToolChoice::automatic; }
  bool has_free_answer() const { return !options_.content; }

  void choose_tools();
  void write_reasoning(StateId end);
  RegexId free_text();
  void write_answer();
  void write_calls(StateId end);
  void write_calls_behind_lead(StateId first_call, StateId end);
  RuleId call_rule(size_t skipped);
  void write_call(GrammarPath& path, const Tool& tool, size_t skipped);
  void write_id_with_name(GrammarPath& path, const Tool& tool);
  void write_piece(GrammarPath& path, const CallPiece& piece, const Tool& tool);
  void write_optional(std::string_view text, StateId end);
  // Without what stands from a token on that ends the turn.
  std::string_view before_end_token(std::string_view text) const;

  const TurnFormat& format_;
  const ToolSet& tools_;
  const TurnGrammarOptions& options_;
  GrammarBuilder& builder_;
  SpecialText special_;
  GrammarPath turn_;
  std::vector<const Tool*> chosen_;
  std::map<const Tool*, RuleId> arguments_;
  std::optional<RuleId> whole_call_;
};

void TurnGrammar::choose_tools() {
  format_.calls_or_throw();
  for (const Tool& tool : tools_.tools()) {
    if (options_.choice != ToolChoice::named || tool.name() == options_.tool_name) {
      chosen_.push_back(&tool);
    }
  }
  if (!chosen_.empty()) return;
  throw Error(ErrorCode::invalid,
              options_.choice == ToolChoice::named
                  ? fmt::format("tool_choice: there is no tool {}", options_.tool_name)
                  : std::string("tool_choice: there are no tools"));
}

std::string_view TurnGrammar::before_end_token(std::string_view text) const {
  size_t end = text.size();
  for (const std::string& token : options_.end_tokens) {
    if (!token.empty()) end = std::min(end, text.find(token));
  }
  return text.substr(0, end);
}

// Reasoning without its end is a turn too, where no call is asked for: it was cut short.
void TurnGrammar::write_reasoning(StateId end) {
  if (!format_.reasoning) return;
  const ReasoningFormat& reasoning = *format_.reasoning;
  if (reasoning.begin.empty() && !options_.begins_in_reasoning) return;
  RegexSet& regexes = builder_.regexes();
  const StateId answer = turn_.add_state();
  const StateId closed = turn_.add_state();
  if (!options_.begins_in_reasoning) {
    turn_.join(answer);
    turn_.regex(some_blanks(regexes));
    turn_.join(closed);  // its end alone
    turn_.text(reasoning.begin);
  } else if (reasoning.begin.empty()) {
    turn_.join(answer);
  }
  turn_.regex(text_without(regexes, reasoning.end));
  turn_.join(closed);
  if (has_free_answer() && !must_call()) turn_.join(end);
  turn_.go_to(closed);
  turn_.text(reasoning.end);
  turn_.regex(some_blanks(regexes));
  turn_.join(answer);
  turn_.go_to(answer);
}

// Any text in which no call begins.
RegexId TurnGrammar::free_text() {
  RegexSet& regexes = builder_.regexes();
  RegexId text = RegexSet::kAll;
  if (is_automatic()) {
    const CallFormat& calls = *format_.calls;
    text = calls.may_follow_content ? text_without(regexes, calls.trigger)
                                    : text_beginning_without(regexes, calls.trigger);
  }
  if (!format_.reasoning || format_.reasoning->begin.empty() || options_.begins_in_reasoning) {
    return text;
  }
  return regexes.intersection(text, text_beginning_without(regexes, format_.reasoning->begin));
}

void TurnGrammar::write_optional(std::string_view text, StateId end) {
  if (text.empty()) return;
  turn_.join(end);
  turn_.text(text);
}

// Content without calls. Where the prompt has begun a call already, the text that begins content is
// required, as it tells content from a call.
void TurnGrammar::write_answer() {
  const bool needs_begin = is_automatic() && format_.calls->num_prompt_bytes > 0;
  const StateId content = turn_.add_state();
  if (!format_.content.begin.empty()) {
    if (!needs_begin) turn_.join(content);
    turn_.text(format_.content.begin);
  }
  turn_.join(content);
  turn_.go_to(content);
  if (has_free_answer()) {
    turn_.regex(free_text());
    return;
  }
  turn_.call(options_.content(builder_));
  const StateId end = turn_.add_state();
  write_optional(before_end_token(format_.content.end), end);
  write_optional(before_end_token(format_.turn_end), end);
  turn_.join(end);
  turn_.go_to(end);
}

// Calls, where the choice allows it behind content.
void TurnGrammar::write_calls(StateId end) {
  const CallFormat& calls = *format_.calls;
  RegexSet& regexes = builder_.regexes();
  const StateId start = turn_.here();
  const StateId lead = turn_.add_state();
  if (calls.num_prompt_bytes > 0) {
    const std::string_view rest =
        std::string_view(calls.lead)
            .substr(std::min<size_t>(calls.num_prompt_bytes, calls.lead.size()));
    turn_.text(rest);
    turn_.call(call_rule(calls.num_prompt_bytes - (calls.lead.size() - rest.size())));
    write_calls_behind_lead(turn_.here(), end);
    turn_.go_to(start);
  }
  if (is_automatic() && calls.may_follow_content && has_free_answer()) {
    turn_.text(calls.num_prompt_bytes > 0 ? format_.content.begin : "");
    turn_.regex(free_text());
  } else if (calls.num_prompt_bytes > 0) {
    return;
  } else {
    turn_.regex(some_blanks(regexes));
  }
  turn_.join(lead);
  turn_.go_to(lead);
  turn_.text(calls.lead);
  turn_.call(call_rule(0));
  write_calls_behind_lead(turn_.here(), end);
}

// More calls, and what stands behind the last one.
void TurnGrammar::write_calls_behind_lead(StateId behind_call, StateId end) {
  const CallFormat& calls = *format_.calls;
  const bool has_several =
      calls.is_parallel && options_.parallel_calls && options_.choice != ToolChoice::named;
  if (has_several) {
    turn_.go_to(behind_call);
    turn_.text(calls.between);
    turn_.call(call_rule(0));
    turn_.join(behind_call);
  }
  turn_.go_to(behind_call);
  if (calls.content_may_follow && is_automatic() && has_free_answer()) {
    turn_.regex(text_without(builder_.regexes(), calls.trigger));
  }
  if (calls.closing_is_optional) turn_.join(end);
  const std::string_view closing = before_end_token(calls.closing);
  turn_.text(trimmed_right(closing));
  write_optional(closing.substr(trimmed_right(closing).size()), end);
  if (closing.size() == calls.closing.size()) {
    write_optional(before_end_token(format_.turn_end), end);
  }
  turn_.join(end);
}

// A call of any of the chosen tools, without the first bytes of its first piece.
RuleId TurnGrammar::call_rule(size_t skipped) {
  if (skipped == 0 && whole_call_) return *whole_call_;
  GrammarPath path(builder_, special_, "call");
  const StateId start = path.here();
  const StateId end = path.add_state();
  for (const Tool* tool : chosen_) {
    path.go_to(start);
    write_call(path, *tool, skipped);
    path.join(end);
  }
  path.go_to(end);
  const RuleId rule = path.end();
  if (skipped == 0) whole_call_ = rule;
  return rule;
}

void TurnGrammar::write_call(GrammarPath& path, const Tool& tool, size_t skipped) {
  std::optional<StateId> before_optional;
  for (size_t i = 0; i < format_.calls->pieces.size(); ++i) {
    CallPiece piece = format_.calls->pieces[i];
    if (i == 0 && skipped > 0) piece.text.erase(0, skipped);
    if (piece.is_optional && !before_optional) before_optional = path.here();
    if (!piece.is_optional && before_optional) {
      const StateId behind = path.here();
      path.go_to(*before_optional);
      path.join(behind);
      path.go_to(behind);
      before_optional.reset();
    }
    write_piece(path, piece, tool);
  }
}

// A word and a dot, or nothing; the name; a colon and a number, or nothing.
void TurnGrammar::write_id_with_name(GrammarPath& path, const Tool& tool) {
  RegexSet& regexes = path.regexes();
  ByteSet letters;
  for (char c = 'a'; c <= 'z'; ++c) letters.set(static_cast<uint8_t>(c));
  ByteSet digits;
  for (char c = '0'; c <= '9'; ++c) digits.set(static_cast<uint8_t>(c));
  const RegexId word =
      regexes.concat(regexes.repeat(regexes.bytes(letters), 1, 16), regexes.byte('.'));
  const RegexId number =
      regexes.concat(regexes.byte(':'), regexes.repeat(regexes.bytes(digits), 1, 4));
  path.regex(regexes.optional(word));
  path.text(tool.name());
  path.regex(regexes.optional(number));
}

void TurnGrammar::write_piece(GrammarPath& path, const CallPiece& piece, const Tool& tool) {
  RegexSet& regexes = path.regexes();
  const auto bytes = [&](std::string_view more, bool has_letters) {
    ByteSet set;
    for (char c = '0'; c <= '9'; ++c) set.set(static_cast<uint8_t>(c));
    for (char c = 'a'; c <= 'z' && has_letters; ++c)
      set.set(static_cast<uint8_t>(c)).set(static_cast<uint8_t>(c - 32));
    for (const char c : more) set.set(static_cast<uint8_t>(c));
    return regexes.bytes(set);
  };
  switch (piece.kind) {
    case CallPiece::Kind::literal:
      return path.text(piece.text);
    case CallPiece::Kind::name: {
      const std::string quoted = json_quote(tool.name());
      return path.text(format_.calls->name_is_json ? quoted.substr(1, quoted.size() - 2)
                                                   : tool.name());
    }
    case CallPiece::Kind::index: {
      constexpr uint32_t kMaxDigits = 4;
      return path.regex(regexes.repeat(bytes("", false), 1, kMaxDigits));
    }
    case CallPiece::Kind::id: {
      if (format_.calls->name_is_in_id) return write_id_with_name(path, tool);
      const CallIdFormat& id = format_.calls->id;
      return path.regex(regexes.repeat(bytes(id.is_alphanumeric ? "" : "_-.:", true), id.min_length,
                                       id.max_length));
    }
    case CallPiece::Kind::arguments:
      break;
  }
  auto known = arguments_.find(&tool);
  if (known == arguments_.end()) {
    const RuleId rule = add_arguments_grammar(format_.calls->arguments, tool, special_, builder_);
    known = arguments_.emplace(&tool, rule).first;
  }
  path.call(known->second);
}

}  // namespace

RuleId add_turn_grammar(const TurnFormat& format, const ToolSet& tools,
                        const TurnGrammarOptions& options, GrammarBuilder& builder) {
  return TurnGrammar(format, tools, options, builder).write();
}

}  // namespace paceline
