#include "grammar/lark_literal.h"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <vector>

#include "base/json_cursor.h"
#include "base/utf8.h"
#include "grammar/json_schema.h"
#include "grammar/lark_pattern.h"
#include "grammar/pattern.h"

namespace paceline {
namespace {

bool is_lark_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// Behind the backslash.
char32_t take_lark_escape(SourceText& text) {
  const char escape = text.peek();
  if (text.at_end()) text.expected("an escape such as \\n");
  constexpr std::string_view kNames = "nrtfvab0";
  constexpr std::string_view kValues("\n\r\t\f\v\a\b\0", 8);
  text.skip(1);
  if (const size_t index = kNames.find(escape); index != std::string_view::npos) {
    return static_cast<unsigned char>(kValues[index]);
  }
  if (escape == 'x') return text.take_hexadecimal(2);
  if (escape == 'u') return text.take_hexadecimal(4);
  if (escape == 'U') return text.take_hexadecimal(8);
  if (escape == '\\' || escape == '"' || escape == '\'' || escape == '/') {
    return static_cast<char32_t>(escape);
  }
  text.set_position(text.position() - 1);
  text.expected("an escape: one of \\n \\r \\t \\f \\v \\\\ \\\" \\xHH \\uHHHH \\UHHHHHHHH");
}

// The text between quotes.
std::u32string take_quoted(SourceText& text) {
  const size_t begin = text.position();
  text.skip(1);
  std::u32string quoted;
  while (!text.take('"')) {
    if (text.at_end() || text.peek() == '\n') {
      text.expected(fmt::format("a quote for the text that begins at {}", text.place(begin)));
    }
    quoted += text.take('\\') ? take_lark_escape(text) : text.take_code_point();
  }
  return quoted;
}

ExpressionId literal_of_any_case(std::u32string_view quoted, SourceText& text, size_t begin,
                                 SourceGrammar& source) {
  std::vector<RegexId> parts;
  for (const char32_t c : quoted) {
    if (c >= 0x80) {
      text.fail(ErrorCode::unsupported, begin,
                "the flag i is not supported with characters beyond ASCII");
    }
    ByteSet either;
    either.set(c);
    if (is_lark_letter(static_cast<char>(c))) either.set(c ^ 0x20);
    parts.push_back(source.regexes().bytes(either));
  }
  return source.regex(source.regexes().concat(parts), quoted.size());
}

// Behind "..".
ExpressionId take_range(std::u32string_view first, SourceText& text, size_t begin,
                        SourceGrammar& source) {
  if (text.peek() != '"') text.expected("the last character, as in \"a\"..\"z\"");
  const std::u32string last = take_quoted(text);
  if (first.size() != 1 || last.size() != 1 || last < first) {
    text.fail(ErrorCode::invalid, begin,
              "a range of characters has one character on either side, the lower one first");
  }
  const CharacterClass between{.ranges = {{first[0], last[0]}}};
  return source.regex(character_class(source.regexes(), between), 1);
}

}  // namespace

ExpressionId take_lark_literal(SourceText& text, SourceGrammar& source) {
  const size_t begin = text.position();
  const std::u32string quoted = take_quoted(text);
  if (text.peek() == 'i' && !is_lark_letter(text.peek(1))) {
    text.skip(1);
    return literal_of_any_case(quoted, text, begin, source);
  }
  const size_t end = text.position();
  text.skip_blanks();
  if (text.take("..")) {
    text.skip_blanks();
    return take_range(quoted, text, begin, source);
  }
  text.set_position(end);
  std::string bytes;
  for (const char32_t c : quoted) append_utf8(bytes, c);
  return source.regex(source.regexes().literal(bytes), bytes.size());
}

ExpressionId take_lark_regex(SourceText& text, SourceGrammar& source) {
  const size_t begin = text.position();
  text.skip(1);
  while (text.peek() != '/') {
    if (text.peek() == '\\') text.skip(1);
    if (text.at_end()) {
      text.expected(
          fmt::format("a slash for the regular expression that begins at {}", text.place(begin)));
    }
    text.skip(1);
  }
  const std::string_view pattern = text.slice(begin + 1, text.position());
  text.skip(1);
  const size_t flags_begin = text.position();
  while (is_lark_letter(text.peek())) text.skip(1);
  const std::string_view flags = text.slice(flags_begin, text.position());
  try {
    const RegexId regex = parse_pattern(source.regexes(), ecma_pattern(pattern, flags),
                                        TextForm::utf8, PatternMatch::whole);
    return source.regex(regex, pattern.size());
  } catch (const Error& error) {
    text.fail(error.code(), begin, error.what());
  }
}

std::string_view take_lark_json(SourceText& text) {
  const size_t begin = text.position();
  size_t depth = 0;
  bool is_in_string = false;
  do {
    if (text.at_end()) {
      text.expected(fmt::format("`}}` for the JSON that begins at {}", text.place(begin)));
    }
    const char c = text.peek();
    text.skip(1);
    if (c == '"') {
      is_in_string = !is_in_string;
    } else if (is_in_string) {
      if (c == '\\' && !text.at_end()) text.skip(1);
    } else if (c == '{') {
      ++depth;
    } else if (c == '}') {
      --depth;
    }
  } while (depth > 0);
  return text.slice(begin, text.position());
}

ExpressionId take_lark_schema(SourceText& text, SourceGrammar& source) {
  const size_t begin = text.position();
  if (text.peek() != '{') text.expected("a JSON Schema, as an object");
  const std::string_view schema = take_lark_json(text);
  try {
    return source.call(add_json_schema(schema, source.builder()));
  } catch (const Error& error) {
    text.fail(error.code(), begin, error.what());
  }
}

namespace {

enum class WordPart : bool { inside, outside };
enum class SplitInto : bool { characters, words };

WordPart word_part(char32_t c) {
  const bool is_inside =
      c >= 0x80 || c == '_' || (c >= '0' && c <= '9') || is_lark_letter(static_cast<char>(c));
  return is_inside ? WordPart::inside : WordPart::outside;
}

// Characters, or runs of letters and digits and the single characters between them.
std::vector<std::string> parts_of(std::string_view whole, SplitInto into) {
  std::vector<std::string> parts;
  std::optional<WordPart> last;
  while (!whole.empty()) {
    const DecodedCodePoint decoded = decode_utf8(whole);
    const WordPart part = word_part(decoded.code_point);
    if (into == SplitInto::characters || part == WordPart::outside || last != part) {
      parts.emplace_back();
    }
    parts.back() += whole.substr(0, decoded.size);
    whole.remove_prefix(decoded.size);
    last = part;
  }
  return parts;
}

std::vector<std::string> substring_parts(const JsonCursor& object) {
  constexpr std::string_view kKeys[] = {"substring_chunks", "substring_words", "substring_chars"};
  object.expect_keys(kKeys);
  if (object.members().size() != 1) object.mismatch("an object with one member");
  if (const auto words = object.find("substring_words"))
    return parts_of(words->string(), SplitInto::words);
  if (const auto chars = object.find("substring_chars"))
    return parts_of(chars->string(), SplitInto::characters);
  std::vector<std::string> parts;
  for (const JsonCursor& chunk : object.at("substring_chunks").items()) {
    parts.push_back(chunk.string());
  }
  return parts;
}

}  // namespace

namespace {

// Each rest is nested in the one before, so they can't be many.
constexpr size_t kMaxNestedParts = 500;

ExpressionId substring_regex(const std::vector<std::string>& parts, SourceGrammar& source) {
  RegexSet& regexes = source.regexes();
  std::vector<RegexId> rests{RegexSet::kEmpty};  // what may follow, from the last part on
  size_t size = 0;
  for (size_t i = parts.size(); i-- > 0;) {
    rests.push_back(regexes.optional(regexes.concat(regexes.literal(parts[i]), rests.back())));
    size += parts[i].size();
  }
  return source.regex(regexes.alternation(rests), size);
}

// A chain that may be entered and left anywhere.
ExpressionId substring_rule(const std::vector<std::string>& parts, SourceGrammar& source) {
  GrammarBuilder& builder = source.builder();
  const RuleId rule = builder.add_rule("substring");
  StateId at = builder.add_state(rule);
  for (const std::string& part : parts) {
    builder.add_empty(builder.start(rule), at);
    builder.set_end(at);
    const StateId next = builder.add_state(rule);
    builder.add_terminal(at, builder.regexes().literal(part), next);
    at = next;
  }
  builder.set_end(at);
  return source.call(rule);
}

}  // namespace

ExpressionId take_lark_substring(SourceText& text, SourceGrammar& source) {
  const size_t begin = text.position();
  if (text.peek() != '{') text.expected("a JSON object");
  try {
    const Json json = parse_json(take_lark_json(text), "%regex");
    const std::vector<std::string> parts = substring_parts(JsonCursor(json, "%regex"));
    return parts.size() <= kMaxNestedParts ? substring_regex(parts, source)
                                           : substring_rule(parts, source);
  } catch (const Error& error) {
    text.fail(error.code(), begin, error.what());
  }
}

}  // namespace paceline
