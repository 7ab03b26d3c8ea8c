// A name refers to the same variable as in Jinja.
#include <gtest/gtest.h>

#include "tests/chat/rendering.h"

namespace paceline {
namespace {

// Sources and their renderings by Python's Jinja with n = 3.
void expect_texts(std::initializer_list<std::pair<const char*, const char*>> cases) {
  for (const auto& [source, expected] : cases) {
    SCOPED_TRACE(source);
    EXPECT_EQ(render(source, R"({"n": 3, "pairs": [[1, 2], [3, 4]]})"), expected);
  }
}

TEST(TemplateScope, ABodySetsItsOwnVariables) {
  expect_texts({
      {"{% for i in [1] %}{% set n = 4 %}{{ n }}{% endfor %}{{ n }}", "43"},
      {"{% if 1 %}{% set n = 4 %}{% endif %}{{ n }}", "4"},
      {"{% with n = 1 %}{% set n = 2 %}{{ n }}{% endwith %}{{ n }}", "23"},
      {"{% filter upper %}{% set n = 'a' %}{{ n }}{% endfilter %}{{ n }}", "A3"},
      {"{% set v %}{% set n = 5 %}{{ n }}{% endset %}{{ v }}{{ n }}", "53"},
      {"{% generation %}{% set n = 5 %}{{ n }}{% endgeneration %}{{ n }}", "53"},
      {"{% macro m() %}{% set n = 5 %}{{ n }}{% endmacro %}{{ m() }}{{ n }}", "53"},
      {"{% for i in [1, 2] %}{{ n }}{% set n = 7 %}{% endfor %}", "33"},
  });
}

TEST(TemplateScope, WhatABodySetsLaterHidesWhatIsOutsideFromBodiesInside) {
  expect_texts({
      {"{% for i in [1] %}{{ n }}{% endfor %}{% set n = 1 %}{{ n }}", "1"},
      {"{% for i in [1] %}{{ n is defined }}{% endfor %}{% set n = 1 %}", "False"},
      {"{% set n %}a{{ n }}{% endset %}{{ n }}", "a"},
      {"{% macro m() %}[{{ n }}]{% endmacro %}{{ m() }}{% set n = 1 %}{{ m() }}", "[][1]"},
      {"{% filter upper %}{% with n = n %}{{ n }}{% endwith %}{% endfilter %}{% set n = 1 %}", ""},
      {"{% for i in [1] %}{{ a }}{{ n }}{% endfor %}{% set (a, n) = [1, 2] %}", ""},
  });
}

TEST(TemplateScope, NotWhenTheBodyReadsItFirstOrSetsItUnderAnIf) {
  expect_texts({
      {"{{ n }}{% for i in [1] %}{{ n }}{% endfor %}{% set n = 1 %}", "33"},
      {"{% if n %}{% endif %}{% for i in [1] %}{{ n }}{% endfor %}{% set n = 1 %}", "3"},
      {"{% for i in [n] %}{{ n }}{% endfor %}{% set n = 1 %}", "3"},
      {"{% with q = n %}{{ q }}{{ n }}{% endwith %}{% set n = 1 %}", "33"},
      {"{% for i in [1] %}{{ n }}{% endfor %}{% if 1 %}{% set n = 1 %}{% endif %}{{ n }}", "31"},
      {"{% if 0 %}{% set n = 5 %}{% else %}{% for i in [1] %}{{ n }}{% endfor %}{% endif %}"
       "{% set n = 1 %}{{ n }}",
       "31"},
      {"{% macro m(p, q=n) %}{{ q }}{% set n = 1 %}{% endmacro %}[{{ m(1) }}]", "[3]"},
      {"{% set v = 9 %}{% for i in [1, 2] %}{% for j in [1] %}{{ v }}{% endfor %}{% set v = 1 %}"
       "{{ v }}{% endfor %}{{ v }}",
       "91919"},
      {"{% for i in [1, 2] %}{% for j in [1] %}{{ n }}{% endfor %}{% set n = 1 %}{{ n }}"
       "{% endfor %}{{ n }}",
       "31313"},
  });
}

TEST(TemplateScope, WithComputesAllValuesOutside) {
  expect_texts({
      {"{% with n = 1, b = n %}{{ n }}{{ b }}{% endwith %}", "13"},
      {"{% with a = 1, b = a %}{{ a }}{{ b is defined }}{% endwith %}", "1False"},
  });
}

TEST(TemplateScope, ALoopWithAConditionGoesOnWithTuples) {
  expect_texts({
      {"{% for a, b in pairs %}{{ loop.nextitem }}{% endfor %}", "[3, 4]"},
      {"{% for a, b in pairs if n %}{{ loop.nextitem }}{% endfor %}", "(3, 4)"},
      {"{% for a, (b, c) in [[1, 'xy'], [2, 'zw']] if a > 1 %}{{ a }}{{ c }}{% endfor %}", "2w"},
      {"{% for p in pairs if p[0] > 1 %}{{ p }}{{ loop.length }}{% endfor %}", "[3, 4]1"},
  });
}

}  // namespace
}  // namespace paceline
