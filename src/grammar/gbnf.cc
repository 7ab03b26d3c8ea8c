#include "grammar/gbnf.h"

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "base/suggest.h"
#include "base/utf8.h"
#include "grammar/source_text.h"

namespace paceline {
namespace {

constexpr std::string_view kGbnfCommentMarks[] = {"#"};

class GbnfParser {
 public:
  GbnfParser(std::string_view text, SourceGrammar& source)
      : text_(text, kGbnfCommentMarks), source_(source) {}

  SourceRuleId parse() {
    text_.skip_lines();
    while (!text_.at_end()) parse_rule();
    check_rules();
    return source_.mention("root", 0);
  }

 private:
  // Inside of groups a rule goes on after a line break.
  void skip_space(size_t depth) { depth > 0 ? text_.skip_lines() : text_.skip_comment(); }

  void parse_rule() {
    const size_t begin = text_.position();
    const std::string_view name = text_.take_name("a rule, as in `root ::= \"a\"`");
    text_.skip_blanks();
    if (!text_.take("::=")) text_.expected(fmt::format("`::=` after the name {}", name));
    text_.skip_lines();
    const SourceRuleId rule = source_.mention(name, begin);
    if (source_.rule(rule).is_defined) {
      text_.fail(ErrorCode::invalid, begin,
                 fmt::format("the rule {} is already defined at {}", name,
                             text_.place(source_.rule(rule).position)));
    }
    const ExpressionId body = parse_choice(0);
    source_.define(rule, body, begin);
    if (!text_.at_end() && !text_.at_line_end()) {
      text_.expected("a text, a class, a rule, a group, `|` or the end of the line");
    }
    text_.skip_lines();
  }

  ExpressionId parse_choice(size_t depth) {
    text_.check_nesting(depth);
    std::vector<ExpressionId> alternatives;
    do {
      alternatives.push_back(parse_sequence(depth));
    } while (text_.take_bar([&] { return text_.at_end() || at_rule(); }));
    return source_.choice(std::move(alternatives));
  }

  bool at_rule() const {
    SourceText ahead = text_;
    ahead.skip_name();
    ahead.skip_blanks();
    return ahead.starts_with("::=");
  }

  ExpressionId parse_sequence(size_t depth) {
    std::vector<ExpressionId> items;
    for (;;) {
      skip_space(depth);
      if (text_.at_end() || text_.at_line_end() || text_.peek() == '|' || text_.peek() == ')')
        break;
      if (is_repetition(text_.peek())) {
        if (items.empty()) text_.expected("something to repeat before it");
        items.back() = parse_repetition(items.back());
      } else {
        items.push_back(parse_item(depth));
      }
    }
    return source_.sequence(std::move(items));
  }

  static bool is_repetition(char c) { return c == '*' || c == '+' || c == '?' || c == '{'; }

  ExpressionId parse_repetition(ExpressionId of) {
    if (text_.take('*')) return source_.repeat(of, 0, kUnbounded);
    if (text_.take('+')) return source_.repeat(of, 1, kUnbounded);
    if (text_.take('?')) return source_.repeat(of, 0, 1);
    const auto [min, max] = text_.take_counts_in_braces();
    return source_.repeat(of, min, max);
  }

  ExpressionId parse_item(size_t depth) {
    const size_t begin = text_.position();
    switch (text_.peek()) {
      case '"':
        return parse_literal();
      case '[':
        return parse_class();
      case '(':
        return parse_group(depth);
      case '.':
        text_.skip(1);
        return source_.regex(any_character(source_.regexes(), TextForm::utf8), 1);
      case '<':
      case '!':
        text_.fail(ErrorCode::unsupported, begin,
                   "tokens of the vocabulary, as <think> or <[1000]>, are not supported in a "
                   "grammar; write the text as a literal");
      default: {
        const std::string_view name =
            text_.take_name("a text, a class, a rule, a group, `|` or the end of the line");
        return source_.reference(source_.mention(name, begin));
      }
    }
  }

  ExpressionId parse_group(size_t depth) {
    const size_t begin = text_.position();
    text_.skip(1);
    const ExpressionId group = parse_choice(depth + 1);
    text_.skip_lines();
    if (!text_.take(')')) {
      text_.expected(fmt::format("`)` for the group that begins at {}", text_.place(begin)));
    }
    return group;
  }

  ExpressionId parse_literal() {
    const size_t begin = text_.position();
    text_.skip(1);
    std::string literal;
    while (!text_.take('"')) append_utf8(literal, take_character(begin));
    return source_.regex(source_.regexes().literal(literal), literal.size());
  }

  ExpressionId parse_class() {
    const size_t begin = text_.position();
    text_.skip(1);
    CharacterClass of{.ranges = {}, .is_negated = text_.take('^')};
    while (!text_.take(']')) {
      const size_t at = text_.position();
      const char32_t first = take_character(begin);
      char32_t last = first;
      if (text_.peek() == '-' && text_.peek(1) != ']') {
        text_.skip(1);
        last = take_character(begin);
      }
      if (first > last) {
        text_.fail(
            ErrorCode::invalid, at,
            fmt::format("the range {} ends before it begins", text_.slice(at, text_.position())));
      }
      of.ranges.emplace_back(first, last);
    }
    if (of.ranges.empty()) {
      text_.fail(ErrorCode::invalid, begin,
                 "an empty class, expected characters between the brackets");
    }
    return source_.regex(character_class(source_.regexes(), of), 1 + of.ranges.size());
  }

  // Of a literal or a class that begins at `begin`.
  char32_t take_character(size_t begin) {
    if (text_.at_end()) {
      text_.expected(fmt::format("the end of what begins at {}", text_.place(begin)));
    }
    if (!text_.take('\\')) return text_.take_code_point();
    const char escape = text_.peek();
    if (text_.at_end()) text_.expected("an escape such as \\n");
    text_.skip(1);
    switch (escape) {
      case 'n':
        return U'\n';
      case 'r':
        return U'\r';
      case 't':
        return U'\t';
      case 'x':
        return text_.take_hexadecimal(2);
      case 'u':
        return text_.take_hexadecimal(4);
      case 'U':
        return text_.take_hexadecimal(8);
      case '\\':
      case '"':
      case '[':
      case ']':
      case '-':
      case '^':
        return static_cast<char32_t>(escape);
      default:
        text_.set_position(text_.position() - 1);
        text_.expected(
            "an escape: one of \\n \\r \\t \\\\ \\\" \\[ \\] \\- \\^ \\xHH \\uHHHH "
            "\\UHHHHHHHH");
    }
  }

  void check_rules() {
    std::vector<std::string_view> names;
    for (const SourceRule& rule : source_.rules()) {
      if (rule.is_defined) names.push_back(rule.name);
    }
    for (const SourceRule& rule : source_.rules()) {
      if (rule.is_defined) continue;
      text_.fail(
          ErrorCode::invalid, rule.position,
          fmt::format("the rule {} is not defined{}", rule.name, did_you_mean(rule.name, names)));
    }
    if (!source_.rule(source_.mention("root", 0)).is_defined) {
      throw Error(ErrorCode::invalid, "no rule root; GBNF's first rule is `root ::= ...`");
    }
  }

  SourceText text_;
  SourceGrammar& source_;
};

}  // namespace

SourceRuleId parse_gbnf(std::string_view text, SourceGrammar& source) {
  return GbnfParser(text, source).parse();
}

}  // namespace paceline
