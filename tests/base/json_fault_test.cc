#include "base/json_fault.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/json.h"

namespace paceline {
namespace {

constexpr size_t kDepth = 64;

TEST(JsonFault, NamesLineColumnAndReason) {
  const std::pair<std::string, std::string> cases[] = {
      {"", "line 1, column 1: the text ends, expected a value"},
      {"{", "line 1, column 2: the text ends, expected a key in double quotes"},
      {"{\"a\": 1,\n \"b\": }", "line 2, column 7: found '}', expected a value"},
      {"{\n  \"a\": 1\n  \"b\": 2}", "line 3, column 3: found '\"', expected ',' or '}'"},
      {"[1, 2,]", "line 1, column 7: a comma before the end"},
      {"[1] 2", "line 1, column 5: unexpected text after the end of the JSON"},
      {"{'a': 1}", "line 1, column 2: found ''', expected a key in double quotes"},
      {"['a']", "line 1, column 2: found a single quote; JSON strings need double quotes"},
      {"{\"a\" 1}", "line 1, column 6: found '1', expected ':'"},
      {"\"ab", "line 1, column 4: the text ends inside a string"},
      {"\"a\tb\"",
       "line 1, column 3: a control character in a string; write it as an escape, such as \\n"},
      {"\"\\ud800x\"", "line 1, column 7: half of a surrogate pair"},
      {"\"\\u12x4\"", "line 1, column 6: found 'x', expected a hexadecimal digit"},
      {"[01]", "line 1, column 2: a number with a leading zero"},
      {"[1.]", "line 1, column 4: found ']', expected a digit"},
      {"[1e999]", "line 1, column 2: a number beyond the range of 64-bit floating point"},
      {"[nan]", "line 1, column 2: found 'n', expected a value"},
      {"[\"\xc3\xa4\xe2\x82\xac\", x]", "line 1, column 8: found 'x', expected a value"},
      {"[\"\xc3\xa4\", \"\xff\"]", "line 1, column 8: not UTF-8"},
      {std::string(65, '['), "line 1, column 65: nested deeper than 64"},
  };
  for (const auto& [text, expected] : cases) {
    const auto fault = find_json_fault(text, kDepth);
    ASSERT_TRUE(fault) << text;
    EXPECT_EQ(fault->text(), expected) << text;
  }
}

// A text has a fault exactly if the parser rejects it (except for duplicate keys).
TEST(JsonFault, AgreesWithTheParser) {
  const std::string seeds[] = {R"({"a": [1, -2.5e3, true, null], "b": {"c": "x\"A😀"}})",
                               R"([[], {}, "", 0])"};
  for (const std::string& seed : seeds) {
    EXPECT_FALSE(find_json_fault(seed, kDepth));
    for (size_t i = 0; i < seed.size(); ++i) {
      for (const char c : std::string_view("{}[]\",:\\0a.-e\x01\xff", 15)) {
        std::string text = seed;
        text[i] = c;
        bool is_parsed = true;
        std::string message;
        try {
          parse_json(text, "t");
        } catch (const Error& error) {
          is_parsed = false;
          message = error.what();
        }
        if (message.find("twice") != std::string::npos) continue;
        EXPECT_EQ(find_json_fault(text, kDepth).has_value(), !is_parsed) << text << message;
      }
    }
  }
}

}  // namespace
}  // namespace paceline
