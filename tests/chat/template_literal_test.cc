// Numbers, strings and names are cut like in jinja2.lexer, which made the expected values.
#include <gtest/gtest.h>

#include "tests/chat/rendering.h"
#include "tests/expect_error.h"

namespace paceline {
namespace {

TEST(TemplateLiteral, Numbers) {
  expect_values({
      {"[0, 00, 0_0, 7, 1_000, 0x1f, 0X1F, 0xdead_beef, 0b101, 0o17, 0B1_0]",
       "[0, 0, 0, 7, 1000, 31, 31, 3735928559, 5, 15, 2]"},
      {"[1.5, 1_0.5, 0.1, 00.5, 1e3, 1E3, 1e+3, 1.5e-3, 1_0e1_0, 1e400, 5e-324]",
       "[1.5, 10.5, 0.1, 0.5, 1000.0, 1000.0, 1000.0, 0.0015, 100000000000.0, inf, 5e-324]"},
      {"[9223372036854775807, -9223372036854775807, 1.0, 100000000000000000.0]",
       "[9223372036854775807, -9223372036854775807, 1.0, 1e+17]"},
      {"[[1, [2, 3]].1.0, 'abc'.1]", "[2, 'b']"},
  });
}

TEST(TemplateLiteral, Strings) {
  expect_values({
      {R"('a' "b" 'c')", "abc"},
      {R"('it\'s' ~ "\"" ~ '\\')", R"(it's"\)"},
      {R"('\x41\u00e9\U0001f600\101\60')", "Aé😀A0"},
      {R"('\U0001f600' ~ '\n'|length)", "😀1"},
      {R"('a\qb')", R"(a\qb)"},
      {R"("é日"|length)", "2"},
  });
}

TEST(TemplateLiteral, Names) {
  expect_values({
      {"é is defined", "False"},
      {"_a1 is undefined", "True"},
      {"[true, True, false, False, none, None]", "[True, True, False, False, None, None]"},
  });
}

TEST(TemplateLiteral, WhatIsNone) {
  for (const char* expression : {"007", "1__0", "1_", "0x", "1a", "“x”", "a´", "a$b", R"('\x4')",
                                 R"('\u12')", R"('\U00110000')"}) {
    SCOPED_TRACE(expression);
    expect_error(ErrorCode::invalid, {"test:1:"}, [&] { render(printed(expression)); });
  }
}

}  // namespace
}  // namespace paceline
