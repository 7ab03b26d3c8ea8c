// The expected values are Python 3.11's.
#include <gtest/gtest.h>

#include "tests/chat/rendering.h"
#include "tests/expect_error.h"

namespace paceline {
namespace {

TEST(PythonNumber, ArithmeticAndComparisons) {
  expect_values({
      {"[7 // 2, -7 // 2, 7 // -2, 7 % 3, -7 % 3, 7 % -3, 7 / 2, 6 / 3, 2 ** 10, 2 ** -1, -2 ** 2]",
       "[3, -4, -4, 1, 2, -2, 3.5, 2.0, 1024, 0.5, 4]"},
      {"[7.5 // 2, -7.5 // 2, -7.5 % 2, 7.5 % -2, 0.0 // -1, -0.0 // 1, -1.5 // 3 // 1e3, 1e16 % "
       "3]",
       "[3.0, -4.0, 0.5, -0.5, -0.0, -0.0, -1.0, 1.0]"},
      {"[1 + 2.0, 3 - 0.5, 0.1 + 0.2, 1e3 * 2, true + 1, true / 2, -60400281827022892 / 25]",
       "[3.0, 2.5, 0.30000000000000004, 2000.0, 2, 0.5, -2416011273080915.5]"},
      {"['a' * 3, 2 * 'ab', [1] * 2, 'a' * -1, 'a' + 'b', [1] + [2], (1,) + (2,)]",
       "['aaa', 'abab', [1, 1], '', 'ab', [1, 2], (1, 2)]"},
      {"[1 == 1.0, 1 < 1.5, 'a' < 'b', [1, 2] < [1, 3], (1, 'a') == (1, 'a'), 9007199254740993 > "
       "9007199254740992.0]",
       "[True, True, True, True, True, True]"},
  });
}

TEST(PythonNumber, Rounding) {
  expect_values({
      {"[2.5|round, 3.5|round, -0.5|round, 2.675|round(2), 1.005|round(2), 0.15|round(1), 7|round, "
       "7|round(2)]",
       "[2.0, 4.0, -0.0, 2.67, 1.0, 0.1, 7, 7]"},
      {"[25|round(-1), 35|round(-1), -25|round(-1), 25.0|round(-1), 1234.5|round(-2), "
       "60|round(-2), 49|round(-2), 7|round(-20)]",
       "[20, 40, -20, 20.0, 1200.0, 100, 0, 0]"},
      {"[-68442052328967050|round(-1), -3.5841398986999386e17|round(-2), 50.0|round(-2), "
       "50.1|round(-2), 4.9|round(-1)]",
       "[-68442052328967050, -3.584139898699939e+17, 0.0, 100.0, 0.0]"},
      {"[2.1|round(0, 'ceil'), 2.9|round(0, 'floor'), -0.5|round(0, 'ceil'), 2.34|round(1, "
       "'ceil'), 60545371691599783|round(2, 'ceil')]",
       "[3.0, 2.0, 0.0, 2.4, 6.0545371691599784e+16]"},
      {"[-3|abs, -2.5|abs, 7.9|int, -7.9|int, true|int, 1e16|int, 3|float]",
       "[3, 2.5, 7, -7, 1, 10000000000000000, 3.0]"},
  });
}

TEST(PythonNumber, NumbersInStrings) {
  expect_values({
      {"['12'|int, ' 12 '|int, '1_000'|int, '0x1f'|int(base=16), '1f'|int(0, 16), "
       "'0b11'|int(base=0), '-5'|int, '+5'|int]",
       "[12, 12, 1000, 31, 31, 3, -5, 5]"},
      {"['x'|int, 'x'|int(7), ''|int, '1.9'|int, '-1.9'|int, '1e3'|int, '1__0'|int, '_1'|int, "
       "none|int(3), [1]|int, 'inf'|int(9)]",
       "[0, 7, 0, 1, -1, 1000, 0, 0, 3, 0, 9]"},
      {"['1.5'|float, ' -1.5e3 '|float, 'x'|float, 'x'|float(2.5), '.5'|float, '1.'|float, "
       "'inf'|float, '-Infinity'|float, 'nan'|float, '1e400'|float]",
       "[1.5, -1500.0, 0.0, 2.5, 0.5, 1.0, inf, -inf, nan, inf]"},
      {"['٣'|int, '१२.५'|float, '1_0.5'|float, none|float(1.5), '0x10'|float(0.5)]",
       "[3, 12.5, 10.5, 1.5, 0.5]"},
  });
}

TEST(PythonNumber, HowTheyAreWritten) {
  expect_values({
      {"[1.0, 1e16, 1e15, 123456789012345680.0, 1e-4, 1e-5, 1.5e300, 5e-324, 0.1, 100.0, -0.0]",
       "[1.0, 1e+16, 1000000000000000.0, 1.2345678901234568e+17, 0.0001, 1e-05, 1.5e+300, 5e-324, "
       "0.1, 100.0, -0.0]"},
      {R"([[1.0, 1e16, 'é"\n', none, true]|tojson, {'a': [], 'b': {}, '1': 1.50}|tojson, {1: 2, none: 3, true: 4, 1.5: 6}|tojson])",
       R"(['[1.0, 1e+16, "é\\"\\n", null, true]', '{"a": [], "b": {}, "1": 1.5}', '{"1": 4, "null": 3, "1.5": 6}'])"},
  });
}

TEST(PythonNumber, WhatPythonRefuses) {
  for (const char* expression :
       {"1 // 0", "1 / 0", "1 % 0", "1.5 // 0", "1.5 % 0", "0 ** -1", "0.0 ** -1", "10.0 ** 400",
        "'a' + 1", "[1] + (2,)", "'a' * 1.5", "-'a'", "'a' < 1", "none < 1", "[1] < 'a'", "'x'|abs",
        "none|float|abs ~ ('x'|round)", "1|round(0, 'up')", "undefined_ + 1"}) {
    SCOPED_TRACE(expression);
    expect_error(ErrorCode::invalid, {"test:1:"}, [&] { render(printed(expression)); });
  }
}

}  // namespace
}  // namespace paceline
