#include "grammar/lark.h"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/suggest.h"
#include "grammar/lark_common.h"
#include "grammar/lark_literal.h"

namespace paceline {
namespace {

constexpr std::string_view kItemWords =
    "a text, a regular expression, a name, a group, `|` or the end of the line";
// Names that no text of a grammar can have.
constexpr std::string_view kIgnoredRule = "%ignore";
constexpr std::string_view kWholeRule = "%start";

// Terminals have names in upper case.
bool names_terminal(std::string_view name) {
  const size_t letter = name.find_first_not_of('_');
  return letter != std::string_view::npos && name[letter] >= 'A' && name[letter] <= 'Z';
}

constexpr std::string_view kLarkCommentMarks[] = {"#", "//"};

class LarkParser {
 public:
  LarkParser(std::string_view text, SourceGrammar& source)
      : text_(text, kLarkCommentMarks),
        source_(source),
        ignored_(source.mention(kIgnoredRule, 0)) {}

  SourceRuleId parse() {
    text_.skip_lines();
    while (!text_.at_end()) {
      parse_statement();
      text_.skip_blanks();
      if (!text_.at_end() && !text_.at_line_end() && !text_.at_comment())
        text_.expected(kItemWords);
      text_.skip_lines();
    }
    define_ignored();
    check_rules();
    return whole_rule();
  }

  // The text is the definition of a terminal of `common`.
  ExpressionId parse_common() {
    is_common_ = true;
    is_in_terminal_ = true;
    return parse_choice(0);
  }

 private:
  void skip_space(size_t depth) { depth > 0 ? text_.skip_lines() : text_.skip_comment(); }

  void parse_statement() {
    if (text_.peek() == '%') {
      parse_directive();
    } else {
      parse_definition();
    }
  }

  void parse_definition() {
    while (text_.take('?') || text_.take('!')) {  // they shape the syntax tree only
    }
    const size_t begin = text_.position();
    const std::string_view name = text_.take_name("a rule, as in `start: \"a\"`, or a %directive");
    if (text_.peek() == '{') refuse_parameters(begin, name);
    check_parameters(begin, name);
    Attributes attributes;
    if (text_.take('[')) attributes = parse_attributes();
    if (text_.take('.')) skip_priority();
    text_.skip_blanks();
    if (!text_.take(':')) text_.expected(fmt::format("`:` after the name {}", name));
    const SourceRuleId rule = mention_undefined(name, begin);
    is_in_terminal_ = names_terminal(name) || attributes.is_lazy;
    ExpressionId body = parse_choice(0);
    source_.rule(rule).is_terminal = is_in_terminal_;
    if (attributes.is_lazy) {
      if (attributes.suffix) body = source_.sequence({body, *attributes.suffix});
      is_in_terminal_ = names_terminal(name);
      body = spaced(source_.shortest(body));
    }
    source_.define(rule, body, begin);
  }

  // Behind a name: those of llguidance; a brace may also count, where the name is used.
  void check_parameters(size_t begin, std::string_view name) {
    if (text_.starts_with("::")) refuse_parameters(begin, name);
  }

  [[noreturn]] void refuse_parameters(size_t begin, std::string_view name) {
    text_.fail(ErrorCode::unsupported, begin,
               fmt::format("{} has parameters, which are not supported", name));
  }

  SourceRuleId mention_undefined(std::string_view name, size_t begin) {
    const SourceRuleId rule = source_.mention(name, begin);
    if (source_.rule(rule).is_defined) {
      text_.fail(ErrorCode::invalid, begin,
                 fmt::format("{} is already defined at {}", name,
                             text_.place(source_.rule(rule).position)));
    }
    return rule;
  }

  // Ambiguity is no question here.
  void skip_priority() {
    text_.take('-');
    text_.take_count();
  }

  // Of a rule that is one terminal, which ends as soon as it can: [lazy], or [suffix="..."].
  struct Attributes {
    bool is_lazy = false;
    std::optional<ExpressionId> suffix;
  };

  // Behind "name[".
  Attributes parse_attributes() {
    Attributes attributes;
    is_in_terminal_ = true;
    do {
      text_.skip_blanks();
      const size_t begin = text_.position();
      const std::string_view name = text_.take_name("an attribute such as lazy");
      if (name != "lazy" && name != "suffix" && name != "capture") {
        text_.fail(ErrorCode::unsupported, begin,
                   fmt::format("the attribute {} of a rule is not supported", name));
      }
      text_.skip_blanks();
      std::optional<ExpressionId> value;
      if (text_.take('=')) {
        text_.skip_blanks();
        value = parse_item(0);
      }
      if (name == "lazy" && !value) {
        attributes.is_lazy = true;
      } else if (name == "suffix" && value) {
        attributes = {.is_lazy = true, .suffix = value};
      } else if (name != "capture") {
        text_.fail(ErrorCode::invalid, begin,
                   "expected lazy without a value, and suffix with one, as in suffix=\"\\n\"");
      }
      text_.skip_blanks();
    } while (text_.take(','));
    if (!text_.take(']')) text_.expected("`]`");
    return attributes;
  }

  void parse_directive() {
    const size_t begin = text_.position();
    text_.skip(1);
    const std::string_view name = text_.take_name("a directive such as %ignore");
    text_.skip_blanks();
    if (name == "ignore") {
      is_in_terminal_ = true;
      ignored_options_.push_back(parse_choice(0));
    } else if (name == "import") {
      parse_import();
    } else if (name == "llguidance") {
      if (text_.peek() != '{') text_.expected("a JSON object");
      if (!source_is_empty_object(take_lark_json(text_))) {
        text_.fail(ErrorCode::unsupported, begin, "options of %llguidance are not supported");
      }
    } else {
      text_.fail(ErrorCode::unsupported, begin,
                 fmt::format("the directive %{} is not supported", name));
    }
  }

  static bool source_is_empty_object(std::string_view json) {
    return json.find_first_not_of(" \t\r\n", 1) == json.size() - 1;
  }

  void parse_import() {
    const size_t begin = text_.position();
    text_.take('.');
    if (text_.take_name("a module, as in `%import common.INT`") != "common" ||
        text_.slice(begin, begin + 1) == ".") {
      text_.fail(ErrorCode::unsupported, begin,
                 "only the module common can be imported, as in `%import common.INT`");
    }
    if (text_.take('.')) {
      const size_t at = text_.position();
      const std::string_view name = text_.take_name("a terminal of the module common");
      text_.skip_blanks();
      std::string_view alias = name;
      if (text_.take("->")) {
        text_.skip_blanks();
        alias = text_.take_name("the name under which it is imported");
      }
      import_common(name, alias, at);
      return;
    }
    text_.skip_blanks();
    if (!text_.take('(')) text_.expected("`.NAME` or `(NAME, NAME)`");
    do {
      text_.skip_lines();
      const size_t at = text_.position();
      const std::string_view name = text_.take_name("a terminal of the module common");
      import_common(name, name, at);
      text_.skip_lines();
    } while (text_.take(','));
    if (!text_.take(')')) text_.expected("`)`");
  }

  void import_common(std::string_view name, std::string_view alias, size_t begin) {
    if (!common_terminal(name)) {
      text_.fail(ErrorCode::unsupported, begin,
                 fmt::format("the module common has no terminal {}", name));
    }
    const SourceRuleId rule = mention_undefined(alias, begin);
    source_.define(rule, common_reference(name), begin);
    source_.rule(rule).is_terminal = true;
  }

  // The rule of a terminal of `common`, which is made when it is first needed.
  ExpressionId common_reference(std::string_view name) {
    const SourceRuleId rule = source_.mention(fmt::format("common.{}", name), 0);
    if (!source_.rule(rule).is_defined) {
      const ExpressionId body = LarkParser(*common_terminal(name), source_).parse_common();
      source_.define(rule, body, 0);
    }
    return source_.reference(rule);
  }

  ExpressionId parse_choice(size_t depth) {
    text_.check_nesting(depth);
    std::vector<ExpressionId> alternatives;
    do {
      alternatives.push_back(parse_conjunction(depth));
      skip_alias();
    } while (text_.take_bar([&] { return depth == 0 && (text_.at_end() || at_definition()); }));
    return source_.choice(std::move(alternatives));
  }

  void skip_alias() {
    text_.skip_blanks();
    if (!text_.take("->")) return;
    text_.skip_blanks();
    text_.take_name("the name of the alternative");
  }

  bool at_definition() const {
    SourceText ahead = text_;
    if (ahead.peek() == '%' && !ahead.starts_with("%json") && !ahead.starts_with("%regex")) {
      return true;
    }
    while (ahead.take('?') || ahead.take('!')) {
    }
    if (ahead.at_end() || !is_name_start(ahead.peek())) return false;
    ahead.skip_name();
    ahead.skip_blanks();
    return ahead.peek() == ':' || (ahead.peek() == '.' && ahead.peek(1) != '.');
  }

  static bool is_name_start(char c) {
    return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  }

  ExpressionId parse_conjunction(size_t depth) {
    std::vector<ExpressionId> operands{parse_sequence(depth)};
    while (text_.peek() == '&') {
      check_in_terminal("&");
      text_.skip(1);
      operands.push_back(parse_sequence(depth));
    }
    return source_.intersection(std::move(operands));
  }

  void check_in_terminal(std::string_view what) {
    if (is_in_terminal_) return;
    text_.fail(
        ErrorCode::invalid, text_.position(),
        fmt::format("{} in a rule; it is allowed in terminals, whose names are in upper case",
                    what));
  }

  bool at_sequence_end() const {
    return text_.at_end() || text_.at_line_end() || text_.peek() == '|' || text_.peek() == '&' ||
           text_.peek() == ')' || text_.peek() == ']' || text_.starts_with("->");
  }

  ExpressionId parse_sequence(size_t depth) {
    std::vector<ExpressionId> items;
    for (skip_space(depth); !at_sequence_end(); skip_space(depth)) {
      if (at_repetition()) {
        if (items.empty()) text_.expected("something to repeat before it");
        items.back() = parse_repetition(items.back());
      } else {
        items.push_back(parse_item(depth));
      }
    }
    return source_.sequence(std::move(items));
  }

  // "~" before a number; before anything else it negates.
  bool at_repetition() const {
    const char c = text_.peek();
    if (c != '~') return c == '*' || c == '+' || c == '?' || c == '{';
    SourceText ahead = text_;
    ahead.skip(1);
    ahead.skip_blanks();
    return ahead.peek() >= '0' && ahead.peek() <= '9';
  }

  ExpressionId parse_repetition(ExpressionId of) {
    const size_t begin = text_.position();
    if (text_.take('*')) return source_.repeat(of, 0, kUnbounded);
    if (text_.take('+')) return source_.repeat(of, 1, kUnbounded);
    if (text_.take('?')) return source_.repeat(of, 0, 1);
    if (text_.peek() == '{') {
      const auto [min, max] = text_.take_counts_in_braces();
      return source_.repeat(of, min, max);
    }
    text_.skip(1);
    text_.skip_blanks();
    const uint32_t min = text_.take_count();
    uint32_t max = min;
    if (text_.take("..")) max = text_.take_count();
    text_.check_counts(begin, min, max);
    return source_.repeat(of, min, max);
  }

  ExpressionId parse_item(size_t depth) {
    const size_t begin = text_.position();
    switch (text_.peek()) {
      case '"':
        return spaced(take_lark_literal(text_, source_));
      case '/':
        return spaced(take_lark_regex(text_, source_));
      case '(':
        return parse_group(depth, ')');
      case '[':
        return source_.repeat(parse_group(depth, ']'), 0, 1);
      case '~':
        return parse_negation(depth);
      case '%':
        return parse_inline();
      case '<':
        text_.fail(ErrorCode::unsupported, begin,
                   "tokens of the vocabulary, as <|eot_id|> or <[1000]>, are not supported in a "
                   "grammar; write the text as a literal");
      case '@':
        text_.fail(ErrorCode::unsupported, begin, "references to other grammars are not supported");
      default:
        return parse_name();
    }
  }

  // In a rule, what may be ignored stands behind every terminal.
  ExpressionId spaced(ExpressionId terminal) {
    if (is_in_terminal_) return terminal;
    return source_.sequence({terminal, source_.reference(ignored_)});
  }

  ExpressionId parse_group(size_t depth, char end) {
    const size_t begin = text_.position();
    text_.skip(1);
    const ExpressionId group = parse_choice(depth + 1);
    text_.skip_lines();
    if (!text_.take(end)) {
      text_.expected(fmt::format("`{}` for the group that begins at {}", end, text_.place(begin)));
    }
    return group;
  }

  ExpressionId parse_negation(size_t depth) {
    check_in_terminal("~");
    bool negates = false;
    while (text_.take('~')) {
      negates = !negates;
      text_.skip_blanks();
    }
    if (at_sequence_end() || at_repetition()) text_.expected("what ~ negates");
    const ExpressionId of = parse_item(depth);
    return negates ? source_.complement(of) : of;
  }

  ExpressionId parse_inline() {
    const size_t begin = text_.position();
    text_.skip(1);
    const std::string_view name = text_.take_name("%json or %regex");
    text_.skip_blanks();
    if (name == "regex") return spaced(take_lark_substring(text_, source_));
    if (name != "json") {
      text_.fail(ErrorCode::unsupported, begin,
                 fmt::format("%{} in a rule is not supported", name));
    }
    if (is_in_terminal_) {
      text_.fail(ErrorCode::invalid, begin,
                 "%json in a terminal, expected it in a rule, whose name is in lower case");
    }
    return spaced(take_lark_schema(text_, source_));
  }

  ExpressionId parse_name() {
    const size_t begin = text_.position();
    if (text_.at_end() || !is_name_start(text_.peek())) text_.expected(kItemWords);
    const std::string_view name = text_.take_name(kItemWords);
    check_parameters(begin, name);
    if (is_common_) return common_reference(name);
    if (!names_terminal(name)) {
      if (is_in_terminal_) {
        text_.fail(ErrorCode::invalid, begin,
                   fmt::format("the rule {} in a terminal, expected terminals only, whose names "
                               "are in upper case",
                               name));
      }
      return source_.reference(source_.mention(name, begin));
    }
    return spaced(source_.reference(source_.mention(name, begin)));
  }

  void define_ignored() {
    const ExpressionId body = ignored_options_.empty()
                                  ? source_.empty()
                                  : source_.repeat(source_.choice(ignored_options_), 0, kUnbounded);
    source_.define(ignored_, body, 0);
  }

  void check_rules() {
    std::vector<std::string_view> names;
    for (const SourceRule& rule : source_.rules()) {
      if (rule.is_defined && rule.name[0] != '%') names.push_back(rule.name);
    }
    for (const SourceRule& rule : source_.rules()) {
      if (rule.is_defined) continue;
      const std::string hint = common_terminal(rule.name)
                                   ? fmt::format("; `%import common.{}` defines it", rule.name)
                                   : did_you_mean(rule.name, names);
      text_.fail(ErrorCode::invalid, rule.position,
                 fmt::format("{} is not defined{}", rule.name, hint));
    }
  }

  SourceRuleId whole_rule() {
    const SourceRuleId start = source_.mention("start", 0);
    if (!source_.rule(start).is_defined) {
      throw Error(ErrorCode::invalid, "no rule start; Lark's first rule is `start: ...`");
    }
    const SourceRuleId whole = source_.mention(kWholeRule, 0);
    source_.define(whole, source_.sequence({source_.reference(ignored_), source_.reference(start)}),
                   0);
    return whole;
  }

  SourceText text_;
  SourceGrammar& source_;
  SourceRuleId ignored_;
  std::vector<ExpressionId> ignored_options_;
  bool is_in_terminal_ = false;
  bool is_common_ = false;
};

}  // namespace

SourceRuleId parse_lark(std::string_view text, SourceGrammar& source) {
  return LarkParser(text, source).parse();
}

}  // namespace paceline
