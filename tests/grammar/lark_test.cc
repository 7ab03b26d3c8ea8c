#include "grammar/lark.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <string_view>

#include "grammar/lark_pattern.h"
#include "grammar/text_grammar.h"
#include "tests/expect_error.h"
#include "tests/grammar/naive_language.h"

namespace paceline {
namespace {

void expect_lark(std::string_view text, std::initializer_list<std::string> accepted,
                 std::initializer_list<std::string> rejected) {
  Grammar grammar = compile_grammar_text(text);
  for (const std::string& one : accepted) {
    EXPECT_TRUE(naively_accepts(grammar, one)) << text << "\nhas to accept: " << one;
  }
  for (const std::string& one : rejected) {
    EXPECT_FALSE(naively_accepts(grammar, one)) << text << "\nhas to reject: " << one;
  }
}

void expect_lark_error(std::string_view text, std::string_view message,
                       ErrorCode code = ErrorCode::invalid) {
  expect_error(code, {std::string(message)}, [&] { compile_grammar_text(text); });
}

TEST(Lark, Literals) {
  expect_lark(R"(start: "a\n\u00e9\"" "B"i "x".."z")", {"a\n\u00e9\"bx", "a\n\u00e9\"By"},
              {"a\n\u00e9\"bw", "A\n\u00e9\"bx"});
  expect_lark("start: /[a-c]+/ /x.y/i", {"abcXay", "axZY"}, {"x1y", "ax\ny", "AX1Y"});
  expect_lark("start: /a.b/s", {"a\nb"}, {"ab"});
}

TEST(Lark, Operators) {
  expect_lark("start: \"a\"? \"b\"* \"c\"+", {"c", "abbcc"}, {"", "ab", "aac"});
  expect_lark("start: [\"a\" \"b\"] (\"c\" | \"d\")", {"c", "abd"}, {"ad", "ab"});
  expect_lark("start: \"a\" ~ 2 \"b\"~1..2 \"c\"{2} \"d\"{,1} \"e\"{1,}", {"aabcce", "aabbccdeee"},
              {"abcce", "aabbbcce", "aabccdde"});
  expect_lark("start: | \"a\" |\nb: \"c\"", {"", "a"}, {"c"});
  expect_lark("start: \"a\" -> first\n     | b -> second\n?b.2: \"b\"\n", {"a", "b"}, {"ab"});
}

TEST(Lark, TerminalsMayBeCombined) {
  expect_lark("start: A\nA: B \"-\" C | \"x\"\nB: /[0-9]/~2\nC: (\"p\"|\"q\")+", {"12-pq", "x"},
              {"1-p", "12-"});
  expect_lark("start: A\nA: /[a-z]+/ & ~(/[a-z]*/ \"bad\" /[a-z]*/) | \"!\"", {"good", "ba", "!"},
              {"bad", "xbady", "", "GOOD"});
  expect_lark("start: A\nA: ~\"a\" & /(.|\\n){0,2}/", {"", "b", "aa", "\n"}, {"a", "aaa"});
}

TEST(Lark, LazyRulesEndAsSoonAsTheyCan) {
  expect_lark("start: head /[a-z]+/\nhead[lazy]: /[a-z]*end/", {"xendy", "endend", "xendendz"},
              {"xend", "xen", "end"});
  expect_lark("start[lazy]: /.*/", {""}, {"a"});
  expect_lark("start[lazy, capture=\"d\"]: /[0-9]+/", {"1"}, {"12", ""});
  // Calls of functions in any text.
  constexpr std::string_view kTools = R"lark(
start: call* TEXT
call: head "=f>" /[0-9]+/ "</function>"
head[suffix="<function"]: TEXT
TEXT: /(.|\n)*/
)lark";
  expect_lark(kTools, {"", "a\nb", "a<function=f>12</function> b", "<function=f>1</function>"}, {});
  expect_lark("start: head \"x\"\nhead[suffix=/<+/]: /[a-z]*/", {"ab<x", "<x"}, {"ab<<x", "abx"});
}

TEST(Lark, SchemasAreRules) {
  constexpr std::string_view kCall = R"lark(
%ignore " "
start: "call" "(" call ("," call)* ")"
call: %json {
  "type": "object",
  "properties": {"name": {"const": "f"}, "a": {"type": "array", "items": {"$ref": "#"}}},
  "required": ["name"]
}
)lark";
  expect_lark(
      kCall,
      {R"(call({"name": "f"}))", R"( call ( {"name": "f", "a": [{"name":"f"}]} , {"name":"f"}))"},
      {"call({})", R"(call({"name": "g"}))", R"(call({"name": "f"})", "{}"});
}

TEST(Lark, SubstringsOfATextAreATerminal) {
  expect_lark(R"(start: "<" %regex {"substring_chunks": ["abc", "de", "fg"]} ">")",
              {"<>", "<abc>", "<de>", "<abcdefg>", "<defg>"}, {"<ab>", "<cde>", "<abcfg>"});
  expect_lark("start: A\nA: %regex {\n \"substring_words\": \"foo bar. baz\"\n}",
              {"", "foo", "foo bar.", " baz", "bar. baz"}, {"fo", "foo baz", "oo bar"});
  expect_lark(R"(start: %regex {"substring_chars": "ab \u00e9"})",
              {"", "b ", "ab \u00e9", "\u00e9"}, {"a ", "\xc3"});
  std::string chars;
  for (int i = 0; i < 3'000; ++i) chars += static_cast<char>('a' + i * i % 26);
  const std::string many = "start: \"<\" %regex {\"substring_chars\": \"" + chars + "\"} \">\"";
  expect_lark(many, {"<>", "<" + chars.substr(1'000, 12) + ">"}, {"<zzz>", "<"});
  expect_lark_error(R"(start: %regex {"substring": "a"})", "line 1, column 15: %regex: unknown");
  expect_lark_error(R"(start: %regex {})", "expected an object with one member");
}

TEST(Lark, IgnoredTerminalsStandAroundTerminals) {
  constexpr std::string_view kList = R"grammar(
%import common (INT, WS)
%ignore WS
%ignore /#[^\n]*/
start: "[" [INT ("," INT)*] "]" "end"
)grammar";
  expect_lark(kList, {"[]end", " [ 1 , 23 ] end\n", "[1,2]# yes\nend", "[1 , 2]end"},
              {"[1 2]end", "[]e nd", "[1,]end"});
  // A terminal may end wherever its expression matches: here behind "#".
  expect_lark(kList, {"# []end"}, {});
  // Not inside of terminals, but between those of a repetition.
  expect_lark("%ignore \" \"\nstart: A+ B\nA: \"a\"\nB: \"b\" \"c\"", {"aabc", "a a bc", " a bc "},
              {"aab c"});
}

TEST(Lark, CommonTerminals) {
  const auto expect_common = [](std::string_view name, std::initializer_list<std::string> accepted,
                                std::initializer_list<std::string> rejected) {
    const std::string text = "%import common." + std::string(name) + " -> X\nstart: X";
    expect_lark(text, accepted, rejected);
  };
  expect_common("INT", {"0", "007"}, {"", "-1", "1.0"});
  expect_common("SIGNED_INT", {"0", "-7", "+7"}, {"--1"});
  expect_common("NUMBER", {"1", "1.", ".5", "1.5e-3", "2E4"}, {"", ".", "-1", "e3"});
  expect_common("SIGNED_NUMBER", {"-1.5e3", "+2", "3"}, {"- 1"});
  expect_common("ESCAPED_STRING", {R"("")", R"("a\"b\\")"}, {R"(")", R"("a"b")", R"("\")"});
  expect_common("CNAME", {"_a1", "x"}, {"1a", ""});
  expect_common("WORD", {"Word"}, {"a1"});
  expect_common("WS", {" \t\n\f\r"}, {"", "x"});
  expect_common("NEWLINE", {"\n\r\n"}, {"\r"});
  expect_common("C_COMMENT", {"/**/", "/* a * / */", "/***/"}, {"/* */ */", "/*/"});
  expect_common("CPP_COMMENT", {"//", "// a"}, {"/ a", "//\n"});
}

TEST(Lark, Calculator) {
  expect_lark(R"grammar(
?start: sum | NAME "=" sum -> assign
?sum: product
    | sum "+" product -> add
    | sum "-" product -> sub
?product: atom
    | product "*" atom
    | product "/" atom
?atom: NUMBER
    | "-" atom
    | NAME
    | "(" sum ")"

%import common.CNAME -> NAME
%import common.NUMBER
%import common.WS_INLINE
%ignore WS_INLINE
)grammar",
              {"1", "x = (1 + 2.5) * -y", "a/b/c - 1"}, {"", "x = ", "1 +", "(1", "x == 1"});
}

TEST(Lark, Json) {
  expect_lark(R"grammar(
// from the documentation of a parser, more or less
start: value
value: object | array | ESCAPED_STRING | SIGNED_NUMBER | "true" | "false" | "null"
array: "[" [value ("," value)*] "]"
object: "{" [pair ("," pair)*] "}"
pair: ESCAPED_STRING ":" value
%import common (ESCAPED_STRING, SIGNED_NUMBER, WS)
%ignore WS
)grammar",
              {R"({"a": [1, 2.5, {"b": null}], "c": "d"})", "[ ]", "true"},
              {"", "{", R"({"a"})", "[1,]", "tru e"});
}

TEST(Lark, ErrorsSayWhere) {
  expect_lark_error("start: \"a\"\nb: ]", "line 2, column 4: found \"]\", expected a text");
  expect_lark_error("start: (\"a\"", "expected `)` for the group that begins at line 1, column 8");
  expect_lark_error("start: \"a\n", "a quote for the text that begins at line 1, column 8");
  expect_lark_error("start: /a", "a slash for the regular expression that begins at");
  expect_lark_error("start: \"a\" itme\nitem: \"b\"", "itme is not defined; did you mean item?");
  expect_lark_error("start: INT", "INT is not defined; `%import common.INT` defines it");
  expect_lark_error("start: \"a\"\nstart: \"b\"", "start is already defined at line 1, column 1");
  expect_lark_error("begin: \"a\"", "no rule start");
  expect_lark_error("start: A\nA: \"x\" A | \"y\"",
                    "line 2, column 1: the terminal A refers to itself");
  expect_lark_error("start[lazy=\"x\"]: /a*/", "line 1, column 7: expected lazy without a value");
  expect_lark_error("start: A\nA: start", "the rule start in a terminal");
  expect_lark_error("start: A & \"b\"\nA: \"a\"", "& in a rule");
  expect_lark_error("start: \"ab\"..\"z\"", "one character on either side");
  expect_lark_error("start: /a/q", "found \"q\", expected a flag");
  expect_lark_error("start: \"a\"~3..2", "from 3 to 2 repetitions");
  const auto unsupported = [](std::string_view text, std::string_view message) {
    expect_lark_error(text, message, ErrorCode::unsupported);
  };
  unsupported("start: <|eot_id|>", "line 1, column 8: tokens of the vocabulary");
  unsupported("%declare A\nstart: A", "the directive %declare");
  unsupported("%import python.NAME\nstart: NAME", "only the module common");
  unsupported("%import common.NAME\nstart: NAME", "the module common has no terminal NAME");
  unsupported("list{x}: x\nstart: \"a\"", "list has parameters");
  unsupported("start[stop=\"x\"]: /a*/", "the attribute stop");
  unsupported("start: \"a\" b\nb[max_tokens=5]: /a*/",
              "line 2, column 3: the attribute max_tokens");
  unsupported("start: list::1\nlist::_: \"a\"", "line 1, column 8: list has parameters");
  unsupported("start: @other", "other grammars");
  unsupported("start: /a/m", "the flag m");
  unsupported("start: %other {}", "line 1, column 8: %other in a rule is not supported");
  expect_lark_error("start: A\nA: %json {}", "line 2, column 4: %json in a terminal");
  expect_lark_error("start: %json {\"type\": 5}", "line 1, column 14: ");
  expect_lark_error("start: %json {", "expected `}` for the JSON that begins at line 1, column 14");
}

TEST(Lark, HostileTextsAreRefused) {
  expect_lark_error("start: " + std::string(60'000, '(') + "\"a\"", "nested deeper than 64 levels",
                    ErrorCode::exhausted);
  expect_lark_error("start: A\nA: " + std::string(60'000, '~'), "found the end of the text");
  expect_lark_error("start: \"a\"" + std::string(60'000, '?'), "nested deeper than",
                    ErrorCode::exhausted);
}

TEST(EcmaPattern, TranslatesTheDialect) {
  EXPECT_EQ(ecma_pattern("a.b", ""), "a[^\\n]b");
  EXPECT_EQ(ecma_pattern("a.b", "s"), "a[\\s\\S]b");
  EXPECT_EQ(ecma_pattern("(?i)aB1", ""), "[aA][Bb]1");
  EXPECT_EQ(ecma_pattern("((?i)a)a", ""), "([aA])a");
  EXPECT_EQ(ecma_pattern("(?s:.)(?i-s:.x)", "s"), "(?:[\\s\\S])(?:[^\\n][xX])");
  EXPECT_EQ(ecma_pattern("[x-z\\-]", "i"), "[x-zX-Z\\-]");
  EXPECT_EQ(ecma_pattern("[]a]", ""), "[\\]a]");
  EXPECT_EQ(ecma_pattern("a b # c\n\\ [ ]", "x"), "ab [ ]");
  EXPECT_EQ(ecma_pattern("\\A\\x41\\u{1F600}\\U0001F600\\\"\\/\\a\\z", ""),
            "^A\U0001F600\U0001F600\"\\/\\u0007$");
  EXPECT_EQ(ecma_pattern("\\ud83d\\ude00", ""), "\U0001F600");
  EXPECT_EQ(ecma_pattern("a{2,3}b{,3}{x}", ""), "a{2,3}b{0,3}\\{x\\}");
  EXPECT_EQ(ecma_pattern("(?P<name>a)(?<other>b)(?#c)", ""), "(?:a)(?:b)");
  EXPECT_EQ(ecma_pattern("\\pL\\p{Lu}\\d", ""), "\\p{L}\\p{Lu}\\d");
}

TEST(EcmaPattern, RefusesWhatItCanNotSay) {
  const auto refused = [](std::string_view pattern, std::string_view flags, ErrorCode code,
                          std::string_view message) {
    expect_error(code, {std::string(message)}, [&] { ecma_pattern(pattern, flags); });
  };
  refused("a", "m", ErrorCode::unsupported, "the flag m");
  refused("\u00e9", "i", ErrorCode::unsupported, "beyond ASCII");
  refused("[a[b]]", "", ErrorCode::unsupported, "[ in a class");
  refused("[a-z&&b]", "", ErrorCode::unsupported, "&& in a class");
  refused("(?P=name)", "", ErrorCode::unsupported, "back-references");
  refused("\\q", "", ErrorCode::unsupported, "the escape \\q");
  refused("\\", "", ErrorCode::invalid, "at the end");
  refused("[a", "", ErrorCode::invalid, "expected ]");
  refused("[z-a]", "", ErrorCode::invalid, "a range in a class");
  refused("\\x4", "", ErrorCode::invalid, "hexadecimal digits");
  refused("\\ud83d", "", ErrorCode::invalid, "U+D83D alone");
}

}  // namespace
}  // namespace paceline
