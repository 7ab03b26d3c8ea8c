#include "grammar/pattern_syntax.h"

#include <fmt/format.h>

#include "grammar/pattern_reader.h"
#include "grammar/regex_set.h"

namespace paceline {

namespace {

using PatternKind = PatternNode::Kind;

constexpr size_t kMaxPatternBytes = 65'536;
constexpr size_t kMaxPatternTerms = 20'000;
constexpr int kMaxPatternNesting = 64;

struct PatternFlags {
  bool ignores_case = false;
  bool dot_is_all = false;
};

class PatternParser {
 public:
  explicit PatternParser(std::string_view pattern) : reader_(pattern) {
    if (pattern.size() > kMaxPatternBytes) {
      reader_.fail(ErrorCode::exhausted, kMaxPatternBytes,
                   fmt::format("more than {} bytes", kMaxPatternBytes));
    }
  }

  PatternNode parse() {
    PatternFlags flags;
    if (reader_.is_next("(?")) flags = take_leading_flags();
    PatternNode whole = take_choice(flags, 0);
    if (!reader_.is_at_end()) reader_.fail(ErrorCode::invalid, reader_.position(), "a lone )");
    return whole;
  }

 private:
  PatternFlags take_leading_flags();
  PatternNode take_choice(PatternFlags flags, int depth);
  PatternNode take_sequence(PatternFlags flags, int depth);
  PatternNode take_term(PatternFlags flags, int depth);
  PatternNode take_group(PatternFlags flags, int depth);
  PatternKind take_group_kind(size_t begin);
  void take_group_name(size_t begin);
  PatternNode take_quantified(PatternNode term);
  std::optional<std::pair<uint32_t, uint32_t>> take_braces();
  bool is_quantifier_next();

  PatternReader reader_;
  size_t num_terms_ = 0;
};

// A node over `children`, with what it has from them.
PatternNode parent_node(PatternKind kind, std::vector<PatternNode> children) {
  PatternNode parent{.kind = kind};
  for (const PatternNode& child : children) {
    parent.has_anchors |= child.has_anchors;
    parent.has_looks |= child.has_looks;
    parent.reads |= child.reads;
  }
  if (kind == PatternKind::look_ahead || kind == PatternKind::look_not) {
    parent.has_anchors = false;
    parent.has_looks = true;
    parent.reads = false;
  }
  parent.children = std::move(children);
  return parent;
}

PatternNode characters_node(CodePointRanges characters) {
  return {.kind = PatternKind::characters, .reads = true, .characters = std::move(characters)};
}

// (?i) and (?s) at the begin of the pattern.
PatternFlags PatternParser::take_leading_flags() {
  const size_t begin = reader_.position();
  reader_.accept("(?");
  PatternFlags flags;
  size_t num_flags = 0;
  for (;; ++num_flags) {
    if (reader_.accept("i")) {
      flags.ignores_case = true;
    } else if (reader_.accept("s")) {
      flags.dot_is_all = true;
    } else {
      break;
    }
  }
  if (num_flags > 0 && reader_.accept(")")) return flags;
  reader_.go_back_to(begin);
  return {};
}

PatternNode PatternParser::take_choice(PatternFlags flags, int depth) {
  if (depth > kMaxPatternNesting) {
    reader_.fail(ErrorCode::exhausted, reader_.position(),
                 fmt::format("groups nested more than {} deep", kMaxPatternNesting));
  }
  std::vector<PatternNode> options;
  do {
    options.push_back(take_sequence(flags, depth));
  } while (reader_.accept("|"));
  if (options.size() == 1) return std::move(options[0]);
  return parent_node(PatternKind::choice, std::move(options));
}

PatternNode PatternParser::take_sequence(PatternFlags flags, int depth) {
  std::vector<PatternNode> terms;
  while (!reader_.is_at_end() && reader_.peek() != '|' && reader_.peek() != ')') {
    const size_t begin = reader_.position();
    if (++num_terms_ > kMaxPatternTerms) {
      reader_.fail(ErrorCode::exhausted, begin,
                   fmt::format("more than {} terms", kMaxPatternTerms));
    }
    const bool is_anchor = reader_.peek() == '^' || reader_.peek() == '$';
    PatternNode term = take_term(flags, depth);
    if (is_anchor && is_quantifier_next()) {
      reader_.fail(ErrorCode::invalid, begin, "a quantifier after an anchor");
    }
    terms.push_back(take_quantified(std::move(term)));
  }
  if (terms.size() == 1) return std::move(terms[0]);
  return parent_node(PatternKind::sequence, std::move(terms));
}

PatternNode PatternParser::take_term(PatternFlags flags, int depth) {
  const size_t begin = reader_.position();
  if (reader_.accept("^")) return {.kind = PatternKind::begin, .has_anchors = true};
  if (reader_.accept("$")) return {.kind = PatternKind::end, .has_anchors = true};
  if (reader_.accept("(")) return take_group(flags, depth);
  if (reader_.accept("[")) return characters_node(reader_.take_class(flags.ignores_case));
  if (reader_.accept(".")) {
    if (flags.dot_is_all) return characters_node({{0, kLastCodePoint}});
    static const CodePointRanges line_terminators{{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}};
    return characters_node(all_code_points_but(line_terminators));
  }
  if (is_quantifier_next()) {
    reader_.fail(ErrorCode::invalid, begin, "a quantifier with nothing to repeat");
  }
  CodePointRanges characters;
  if (reader_.accept("\\")) {
    characters = reader_.take_escape();
  } else {
    const char32_t c = reader_.take_character();
    characters = {{c, c}};
  }
  return characters_node(flags.ignores_case ? with_ascii_cases(characters) : characters);
}

// Behind `(`. Nothing is read of a plain group.
PatternKind PatternParser::take_group_kind(size_t begin) {
  if (!reader_.accept("?") || reader_.accept(":")) return PatternKind::sequence;
  if (reader_.accept("=")) return PatternKind::look_ahead;
  if (reader_.accept("!")) return PatternKind::look_not;
  if (reader_.is_next("<=") || reader_.is_next("<!")) {
    reader_.fail(ErrorCode::unsupported, begin, "look-behind");
  }
  if (reader_.is_next("<") || reader_.is_next("P<")) {
    take_group_name(begin);
    return PatternKind::sequence;
  }
  const char next = reader_.peek();
  if (next == 'i' || next == 's' || next == 'm' || next == 'x' || next == '-') {
    reader_.fail(ErrorCode::unsupported, begin,
                 "flags, except (?i) and (?s) at the begin of the pattern");
  }
  reader_.fail(ErrorCode::invalid, begin, "expected one of (?: (?= (?! (?<name>");
}

void PatternParser::take_group_name(size_t begin) {
  reader_.accept("P");
  reader_.accept("<");
  size_t length = 0;
  while (!reader_.is_at_end() && reader_.peek() != '>' && reader_.peek() != ')') {
    reader_.take_character();
    ++length;
  }
  if (length == 0 || !reader_.accept(">")) {
    reader_.fail(ErrorCode::invalid, begin, "expected a name and > after (?<");
  }
}

PatternNode PatternParser::take_group(PatternFlags flags, int depth) {
  const size_t begin = reader_.position() - 1;
  const PatternKind kind = take_group_kind(begin);
  PatternNode inside = take_choice(flags, depth + 1);
  if (!reader_.accept(")"))
    reader_.fail(ErrorCode::invalid, begin, "the group is not closed, expected )");
  if (kind == PatternKind::sequence) return inside;
  std::vector<PatternNode> children;
  children.push_back(std::move(inside));
  return parent_node(kind, std::move(children));
}

// {n}, {n,} or {n,m}; reads nothing when it isn't one of them.
std::optional<std::pair<uint32_t, uint32_t>> PatternParser::take_braces() {
  const size_t begin = reader_.position();
  reader_.accept("{");
  if (const auto min = reader_.take_count()) {
    uint32_t max = *min;
    if (reader_.accept(",")) max = reader_.take_count().value_or(kUnbounded);
    if (reader_.accept("}")) {
      if (*min > max) {
        reader_.fail(ErrorCode::invalid, begin, "a count whose maximum is below its minimum");
      }
      return std::pair{*min, max};
    }
  }
  reader_.go_back_to(begin);
  return std::nullopt;
}

bool PatternParser::is_quantifier_next() {
  const size_t begin = reader_.position();
  const char next = reader_.peek();
  const bool is_quantifier =
      next == '*' || next == '+' || next == '?' || (next == '{' && take_braces().has_value());
  reader_.go_back_to(begin);
  return is_quantifier;
}

PatternNode PatternParser::take_quantified(PatternNode term) {
  std::pair<uint32_t, uint32_t> count{1, 1};
  if (reader_.accept("*")) {
    count = {0, kUnbounded};
  } else if (reader_.accept("+")) {
    count = {1, kUnbounded};
  } else if (reader_.accept("?")) {
    count = {0, 1};
  } else if (reader_.peek() == '{') {
    const auto braces = take_braces();
    if (!braces) return term;
    count = *braces;
  } else {
    return term;
  }
  reader_.accept("?");  // a lazy quantifier allows the same texts
  std::vector<PatternNode> children;
  children.push_back(std::move(term));
  PatternNode repeat = parent_node(PatternKind::repeat, std::move(children));
  repeat.min = count.first;
  repeat.max = count.second;
  return repeat;
}

}  // namespace

PatternNode parse_pattern_syntax(std::string_view pattern) {
  return PatternParser(pattern).parse();
}

}  // namespace paceline
