#include "tools/value_notation.h"

#include <gtest/gtest.h>

#include "base/json_writer.h"
#include "tools/value_scanner.h"

namespace paceline {
namespace {

const ValueNotation kPython{.strings = {.quote = "'", .escapes = StringNotation::Escapes::python},
                            .true_text = "True",
                            .false_text = "False",
                            .null_text = "None"};
const ValueNotation kMarked{.strings = {.quote = "<|\"|>"}, .quotes_keys = false};

std::string value_of(std::string_view text, const ValueNotation& notation = {}) {
  const std::optional<Json> value = read_value(text, notation);
  return value ? to_json(*value) : "none";
}

TEST(ValueNotation, ReadsJson) {
  EXPECT_EQ(value_of(R"( {"a": [1, -2.5e3, true, null, "x\n\"y"]} )"),
            R"({"a":[1,-2500.0,true,null,"x\n\"y"]})");
  EXPECT_EQ(value_of("{\"a\": 1"), "none");
  EXPECT_EQ(value_of("1 2"), "none");
  EXPECT_EQ(value_of("{\"a\": 1, \"a\": 2}"), "none");
  EXPECT_EQ(value_of("True"), "true") << "a word of Python";
}

TEST(ValueNotation, ReadsPythonsRepr) {
  EXPECT_EQ(value_of(R"({'a': [1, True, None], 'b': 'it\'s', "c": "it's"})", kPython),
            R"({"a":[1,true,null],"b":"it's","c":"it's"})");
  EXPECT_EQ(value_of(R"('a\x41\u00e9\U0001F600\n\q')", kPython), R"("aAé😀\n\\q")");
  EXPECT_EQ(value_of(R"('\ud800')", kPython), "none");
  EXPECT_EQ(value_of(R"('open)", kPython), "none");
}

TEST(ValueNotation, ReadsStringsBetweenMarks) {
  EXPECT_EQ(value_of(R"({a:<|"|>x "y" \n<|"|>,b:[1,{c:false}]})", kMarked),
            R"({"a":"x \"y\" \\n","b":[1,{"c":false}]})");
  EXPECT_EQ(value_of(R"({a:{}})", kMarked), R"({"a":{}})");
}

TEST(ValueNotation, WritesWhatItReads) {
  const Json value = parse_json(R"({"a": [1, true, null, "x'\ny"], "b": {"c": "d"}})", "value");
  for (const ValueNotation& notation : {ValueNotation{}, kPython, kMarked}) {
    EXPECT_EQ(value_of(written_value(value, notation), notation), to_json(value));
  }
}

TEST(ValueNotation, DeepNestingIsRefused) {
  EXPECT_EQ(value_of(std::string(100, '[') + std::string(100, ']'), kMarked), "none");
}

TEST(ValueScanner, FindsTheEndWhereverTheTextIsCut) {
  const std::string text = R"({"a": "}]\"", "b": [{}, 1]})";
  EXPECT_EQ(json_container_bytes(text + " more}"), text.size());
  EXPECT_EQ(json_container_bytes("{\"a\": 1"), 0U);
  EXPECT_EQ(json_container_bytes("[}"), 0U);
  EXPECT_EQ(json_container_bytes("1"), 0U);
  ValueScanner scanner;
  for (size_t i = 0; i < text.size(); ++i) {
    ASSERT_EQ(scanner.state(), ValueScanner::State::running) << i;
    ASSERT_EQ(scanner.take(text.substr(i, 1)), 1U);
  }
  EXPECT_EQ(scanner.state(), ValueScanner::State::done);
  ValueScanner marked(kMarked.strings);
  const std::string own = R"({a:<|"|>}<<|"|>})";
  EXPECT_EQ(marked.take(own + "}"), own.size());
}

}  // namespace
}  // namespace paceline
