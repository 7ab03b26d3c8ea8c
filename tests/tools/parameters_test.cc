// Arguments that are written key by key: how they are read, and what their grammar allows.
#include <gtest/gtest.h>

#include "tests/expect_error.h"
#include "tests/tools/mini_templates.h"
#include "tests/tools/turn_matching.h"
#include "tests/tools/turn_reading.h"

namespace paceline {
namespace {

const char* const kSchema = R"({"type": "object", "properties": {
    "text": {"type": "string"},
    "count": {"type": "integer", "minimum": 1},
    "unit": {"enum": ["km", "mile"]},
    "code": {"type": "string", "pattern": "^[A-Z]{2}$"},
    "flag": {"type": ["boolean", "null"]},
    "either": {"anyOf": [{"type": "number"}, {"type": "string", "maxLength": 3}]},
    "place": {"$ref": "#/$defs/place"}},
  "required": ["text"],
  "$defs": {"place": {"type": "object", "properties": {"name": {"type": "string"},
    "at": {"type": "array", "items": {"type": "number"}}}, "required": ["name"],
    "additionalProperties": false}}})";

std::shared_ptr<const ToolSet> one_tool(const char* schema = kSchema) {
  return std::make_shared<const ToolSet>(std::vector<ToolSpec>{{"f", schema}});
}

// <tool_call>f<k>KEY</k><v>VALUE</v></tool_call>, values of strings as they are, others as JSON.
const TurnFormat& tagged() {
  static const TurnFormat format = [] {
    for (const MiniTemplate& one : mini_templates()) {
      if (one.name == "keys and values") return format_of(one.source);
    }
    return TurnFormat{};
  }();
  return format;
}

std::string tagged_call(std::vector<std::pair<std::string, std::string>> parameters) {
  std::string text = "<tool_call>f";
  for (const auto& [key, value] : parameters) text += "<k>" + key + "</k><v>" + value + "</v>";
  return text + "</tool_call>";
}

// f{KEY:VALUE,KEY:VALUE} with strings between <"> and keys in order, in all depths.
const TurnFormat& marked() {
  static const TurnFormat format = format_of(
      "{%- macro show(v) -%}{%- if v is string -%}{{- '<\">' + v + '<\">' -}}"
      "{%- elif v is mapping -%}{{- '{' -}}{%- for k, w in v|dictsort -%}"
      "{{- k + ':' -}}{{- show(w) -}}{{- ',' if not loop.last -}}{%- endfor -%}{{- '}' -}}"
      "{%- elif v is sequence -%}{{- '[' -}}{%- for w in v -%}{{- show(w) -}}"
      "{{- ',' if not loop.last -}}{%- endfor -%}{{- ']' -}}"
      "{%- else -%}{{- v|tojson -}}{%- endif -%}{%- endmacro -%}" +
      calls_source("", "{{- '<call>' + f.name -}}{{- show(f.arguments) -}}{{- '</call>' }}", "",
                   ""));
  return format;
}

TurnRead read(const TurnFormat& format, const std::string& text, const char* schema = kSchema) {
  return read_turn(format, one_tool(schema), {.text = text});
}

TurnRead call_of(std::string arguments) { return {"", "", {{"f", std::move(arguments)}}}; }

TEST(Parameters, ValuesAreReadByTheirTypes) {
  EXPECT_EQ(read(tagged(), tagged_call({{"text", "5"}, {"count", "5"}, {"unit", "km"}})),
            call_of(R"({"text": "5", "count": 5, "unit": "km"})"));
  EXPECT_EQ(read(tagged(), tagged_call({{"text", "true"}, {"flag", "True"}})),
            call_of(R"({"text": "true", "flag": true})"));
  EXPECT_EQ(read(tagged(), tagged_call({{"either", "1.50"}})), call_of(R"({"either": 1.50})"));
  EXPECT_EQ(read(tagged(), tagged_call({{"either", "abc"}})), call_of(R"({"either": "abc"})"));
  EXPECT_EQ(read(tagged(), tagged_call({{"other", "[1]"}, {"more", "[1"}})),
            call_of(R"({"other": [1], "more": "[1"})"));
  EXPECT_EQ(read(tagged(), tagged_call({{"count", "five"}})), call_of(R"({"count": "five"})"));
  EXPECT_EQ(read(tagged(), tagged_call({{"text", " a \"b\"\n</v </k>\\"}})),
            call_of(R"({"text": " a \"b\"\u000a</v </k>\\"})"));
  EXPECT_EQ(read(tagged(), tagged_call({{"place", R"({"name": "</v>"})"}})),
            call_of(R"({"place": {"name": "</v>"}})"));
  EXPECT_EQ(read(tagged(), tagged_call({})), call_of("{}"));
}

TEST(Parameters, ACallThatIsCutShortShowsWhatThereIs) {
  EXPECT_EQ(read(tagged(), "<tool_call>f<k>text</k><v>Hello </v"),
            (TurnRead{"", "", {{"f", R"({"text": "Hello )", "made0", false}}}));
  EXPECT_EQ(read(tagged(), "<tool_call>f<k>count</k><v>1"),
            (TurnRead{"", "", {{"f", R"({"count": )", "made0", false}}}));
  EXPECT_EQ(read(tagged(), "<tool_call>f<k>text</k>"), TurnRead{});
}

TEST(Parameters, TheGrammarIsThatOfTheSchema) {
  const TurnMatching turn(tagged(), *one_tool(), {.choice = ToolChoice::required});
  const auto allows = [&](std::vector<std::pair<std::string, std::string>> parameters) {
    return turn.accepts(tagged_call(std::move(parameters)));
  };
  EXPECT_TRUE(allows({{"text", "any <b> \n text"}}));
  EXPECT_TRUE(allows({{"text", ""}, {"count", "2"}, {"unit", "km"}, {"code", "AB"}}));
  EXPECT_TRUE(allows({{"text", "x"}, {"flag", "null"}, {"either", "abc"}}));
  EXPECT_TRUE(allows({{"text", "x"}, {"either", "1234.5"}}));
  EXPECT_TRUE(allows({{"text", "x"}, {"place", R"({"name": "a", "at": [1.5, 2]})"}}));
  EXPECT_FALSE(allows({}));
  EXPECT_FALSE(allows({{"count", "2"}}));
  EXPECT_FALSE(allows({{"count", "2"}, {"text", "x"}})) << "not in the schema's order";
  EXPECT_FALSE(allows({{"text", "x"}, {"count", "0"}}));
  EXPECT_FALSE(allows({{"text", "x"}, {"count", "two"}}));
  EXPECT_FALSE(allows({{"text", "x"}, {"unit", "m"}}));
  EXPECT_FALSE(allows({{"text", "x"}, {"code", "ABC"}}));
  EXPECT_FALSE(allows({{"text", "x"}, {"flag", "yes"}}));
  EXPECT_FALSE(allows({{"text", "x"}, {"either", "long text"}}));
  EXPECT_FALSE(allows({{"text", "x"}, {"place", R"({"at": []})"}}));
  EXPECT_FALSE(allows({{"text", "x"}, {"unknown", "x"}}));
  EXPECT_FALSE(allows({{"text", "x</v>"}}));
}

TEST(Parameters, StringsObeyTheWholeSchema) {
  const char* const kUnion = R"({"type": "object", "properties": {
      "unit": {"$ref": "#/$defs/unit"},
      "perhaps": {"anyOf": [{"$ref": "#/$defs/unit"}, {"type": "null"}]},
      "mixed": {"enum": ["a", 1, null]},
      "short": {"type": "string", "allOf": [{"pattern": "^a+$"}, {"maxLength": 2}]},
      "other": {"type": "string", "enum": ["a", "b\n<"], "not": {"const": "a"}},
      "digits": {"anyOf": [{"type": "string"}, {"type": "integer", "maximum": 3}]}},
    "$defs": {"unit": {"type": "string", "enum": ["km", "mile"]}}})";
  const TurnMatching turn(tagged(), *one_tool(kUnion), {.choice = ToolChoice::required});
  const auto allows = [&](const std::string& name, const std::string& value) {
    return turn.accepts(tagged_call({{name, value}}));
  };
  for (const char* name : {"unit", "perhaps"}) {
    EXPECT_TRUE(allows(name, "km")) << name;
    EXPECT_FALSE(allows(name, "m")) << name;
  }
  EXPECT_FALSE(allows("unit", "null"));
  EXPECT_TRUE(allows("perhaps", "null"));
  for (const char* value : {"a", "1", "null"}) EXPECT_TRUE(allows("mixed", value)) << value;
  for (const char* value : {"b", "2", "true", ""}) EXPECT_FALSE(allows("mixed", value)) << value;
  EXPECT_TRUE(allows("short", "aa"));
  EXPECT_FALSE(allows("short", "aaa"));
  EXPECT_FALSE(allows("short", "b"));
  EXPECT_TRUE(allows("other", "b\n<"));
  EXPECT_FALSE(allows("other", "a"));
  EXPECT_TRUE(allows("digits", "4 of them"));
  EXPECT_TRUE(allows("digits", "3"));
  EXPECT_FALSE(allows("digits", "4")) << "it is read as a number";
}

TEST(Parameters, ReferencesMeanTheWholeSchema) {
  const char* const kReferences = R"({"type": "object", "properties": {
      "from": {"type": "object", "properties": {"x": {"type": "integer", "maximum": 9}},
               "required": ["x"], "additionalProperties": false},
      "to": {"$ref": "#/properties/from"},
      "word": {"$ref": "#/$defs/a~1b%25"},
      "named": {"$ref": "#anchor"},
      "again": {"$ref": "#"}},
    "$defs": {"a/b%": {"enum": ["yes"]}, "c": {"$anchor": "anchor", "enum": ["no", 5]}}})";
  const TurnMatching turn(tagged(), *one_tool(kReferences), {.choice = ToolChoice::required});
  const auto allows = [&](const std::string& name, const std::string& value) {
    return turn.accepts(tagged_call({{name, value}}));
  };
  EXPECT_TRUE(allows("to", R"({"x": 1})"));
  EXPECT_FALSE(allows("to", R"({"x": 10})"));
  EXPECT_TRUE(allows("word", "yes"));
  EXPECT_FALSE(allows("word", "no"));
  EXPECT_TRUE(allows("named", "no"));
  EXPECT_TRUE(allows("named", "5"));
  EXPECT_FALSE(allows("named", "yes"));
  EXPECT_FALSE(allows("named", "true"));
  EXPECT_TRUE(allows("again", R"({"word": "yes"})"));
  EXPECT_FALSE(allows("again", R"({"word": "no"})"));
}

TEST(Parameters, StandInWhatHoldsTogetherWithTheSchema) {
  const char* const kParts = R"({"$ref": "#/$defs/tree", "allOf": [
      {"properties": {"size": {"maximum": 9}}, "required": ["size"]}, {"$ref": "#"}],
    "$defs": {"tree": {"type": "object", "required": ["value"], "properties": {
      "value": {"enum": ["a", "b"]}, "below": {"$ref": "#/$defs/tree"},
      "size": {"type": "integer"}}}}})";
  const TurnMatching turn(tagged(), *one_tool(kParts), {.choice = ToolChoice::required});
  const auto allows = [&](std::vector<std::pair<std::string, std::string>> parameters) {
    return turn.accepts(tagged_call(std::move(parameters)));
  };
  EXPECT_TRUE(allows({{"value", "a"}, {"size", "9"}}));
  EXPECT_TRUE(allows({{"value", "a"}, {"below", R"({"value": "b"})"}, {"size", "1"}}));
  EXPECT_FALSE(allows({{"value", "a"}})) << "size is required";
  EXPECT_FALSE(allows({{"value", "c"}, {"size", "1"}}));
  EXPECT_FALSE(allows({{"value", "a"}, {"size", "10"}}));
  EXPECT_FALSE(allows({{"value", "a"}, {"size", "1.5"}}));
  EXPECT_FALSE(allows({{"value", "a"}, {"size", "1"}, {"other", "1"}}));
}

TEST(Parameters, SchemasThatNameEachOtherInManyWaysAreReadOnce) {
  std::string definitions;
  for (int i = 0; i < 12; ++i) {
    definitions += R"("a)" + std::to_string(i) + R"(": {"anyOf": [)";
    for (int way = 0; way < 10; ++way) {
      definitions += std::string(way > 0 ? "," : "") + R"({"$ref": "#/$defs/a)" +
                     std::to_string(i + 1) + R"("})";
    }
    definitions += "]},";
  }
  const auto tools = one_tool((R"({"type": "object", "properties": {"x": {"$ref": "#/$defs/a0"}},
      "$defs": {)" + definitions +
                               R"("a12": {"type": "string"}}})")
                                  .c_str());
  EXPECT_EQ(tools->tools()[0].parameters()[0].kinds, kStringKind);
}

TEST(Parameters, ARequiredOneThatCanNotBeWrittenIsNamed) {
  const std::string schema = R"({"type": "object", "required": ["end"],
      "properties": {"end": {"const": "a</v>b"}}})";
  expect_error(ErrorCode::invalid, {"tool f", "parameter end", "can stand in the calls"}, [&] {
    TurnMatching(tagged(), ToolSet({{"f", schema, true}}), {.choice = ToolChoice::required});
  });
  const TurnMatching any(tagged(), *one_tool(schema.c_str()), {.choice = ToolChoice::required});
  EXPECT_TRUE(any.accepts(tagged_call({{"end", "ab"}})));
  ASSERT_EQ(any.warnings().size(), 1U);
  EXPECT_NE(any.warnings()[0].find("tool f: parameter end"), std::string::npos);
}

TEST(Parameters, DeclaredNamesMayHoldWhatStandsInFrontOfValues) {
  const char* const kNames = R"({"type": "object", "properties": {
      " a ": {"type": "string"}, "b</k>c": {"type": "string"}, "b": {"type": "string"},
      "x:y": {"type": "string"}, "x": {"type": "integer"}}})";
  const auto reads = [&](const std::string& name, const std::string& key) {
    EXPECT_EQ(read(tagged(), tagged_call({{name, "1"}}), kNames),
              call_of("{\"" + key + R"(": "1"})"));
  };
  reads(" a ", " a ");
  reads("b</k>c", "b</k>c");
  reads("b", "b");
  reads(" b ", "b");
  EXPECT_EQ(read(marked(), R"(<call>f{x:y:<">1<">,x:2}</call>)", kNames),
            call_of(R"({"x:y": "1", "x": 2})"));
}

TEST(Parameters, ToolsWithoutPropertiesTakeAny) {
  const TurnMatching turn(tagged(), *one_tool(R"({"type": "object"})"), {});
  EXPECT_TRUE(turn.accepts(tagged_call({})));
  EXPECT_TRUE(turn.accepts(tagged_call({{"a", "any"}, {"b_2", "[1]"}})));
  const TurnMatching none(tagged(), *one_tool(""), {});
  EXPECT_TRUE(none.accepts(tagged_call({})));
  EXPECT_FALSE(none.accepts(tagged_call({{"a", "1"}})));
}

TEST(Parameters, WordsOfPythonAreWhatTheTemplateWrites) {
  TurnFormat format;
  for (const MiniTemplate& one : mini_templates()) {
    if (one.name == "parameters on lines") format = format_of(one.source);
  }
  ASSERT_TRUE(format.calls.has_value());
  EXPECT_EQ(format.calls->arguments.true_text, "True");
  EXPECT_EQ(format.calls->arguments.null_text, "None");
  const auto text = [](const std::string& key, const std::string& value) {
    return "<tool_call>\n<function=f>\n<parameter=" + key + ">\n" + value +
           "\n</parameter>\n</function>\n</tool_call>";
  };
  const char* const schema = R"({"type": "object", "properties": {
      "flag": {"type": "boolean"}, "off": {"const": false}, "list": {"type": "array", "items": {"type": "string"}}}})";
  const TurnMatching turn(format, *one_tool(schema), {});
  for (const char* const flag : {"True", "true"}) {
    EXPECT_TRUE(turn.accepts(text("flag", flag)));
    EXPECT_EQ(read(format, text("flag", flag), schema), call_of(R"({"flag": true})"));
  }
  EXPECT_FALSE(turn.accepts(text("flag", "None")));
  EXPECT_TRUE(turn.accepts(text("off", "False")));
  EXPECT_FALSE(turn.accepts(text("off", "True")));
  for (const char* const list : {"['a', \"b's\"]", R"(["a", "b's"])"}) {
    EXPECT_TRUE(turn.accepts(text("list", list))) << list;
    TurnRead found = read(format, text("list", list), schema);
    ASSERT_EQ(found.calls.size(), 1U);
    EXPECT_EQ(to_json(parse_json(found.calls[0].arguments, "read")), R"({"list":["a","b's"]})");
  }
  EXPECT_FALSE(turn.accepts(text("list", "[1]")));
}

TEST(Parameters, ANotationOfItsOwn) {
  ASSERT_TRUE(marked().calls.has_value()) << marked().no_calls;
  const ArgumentsFormat& arguments = marked().calls->arguments;
  EXPECT_TRUE(arguments.sorts_keys);
  EXPECT_EQ(arguments.nested.strings.quote, "<\">");
  EXPECT_FALSE(arguments.nested.quotes_keys);
  const std::string text =
      R"(<call>f{count:3,place:{at:[1,-2.5],name:<">a "b", }<">},text:<">x,<">}</call>)";
  EXPECT_EQ(read(marked(), text),
            call_of(R"({"count": 3, "place": {"at":[1,-2.5],"name":"a \"b\", }"}, "text": "x,"})"));
  const TurnMatching turn(marked(), *one_tool(), {});
  EXPECT_TRUE(turn.accepts(text));
  EXPECT_TRUE(turn.accepts(R"(<call>f{flag:null,text:<"><">}</call>)"));
  EXPECT_FALSE(turn.accepts(R"(<call>f{text:<"><">,flag:null}</call>)")) << "not in order";
  EXPECT_FALSE(turn.accepts(R"(<call>f{text:x}</call>)"));
  EXPECT_FALSE(turn.accepts(R"(<call>f{place:{at:[]},text:<"><">}</call>)"));
  EXPECT_FALSE(turn.accepts(R"(<call>f{place:{at:[true],name:<"><">},text:<"><">}</call>)"));
  EXPECT_FALSE(turn.accepts(R"(<call>f{count:<">3<">,text:<"><">}</call>)"));
}

TEST(Parameters, AStrictToolSaysNothingThatCannotBeEnforced) {
  const auto compile = [](const TurnFormat& format, const std::string& schema, bool is_strict) {
    return TurnMatching(format, ToolSet({{"f", schema, is_strict}}), {}).warnings();
  };
  const auto expect_refused = [&](const TurnFormat& format, const std::string& schema,
                                  const char* place) {
    SCOPED_TRACE(schema);
    const std::vector<std::string> warnings = compile(format, schema, false);
    ASSERT_EQ(warnings.size(), 1U);
    EXPECT_NE(warnings[0].find(place), std::string::npos) << warnings[0];
    expect_error(ErrorCode::unsupported, {"tool f: schema: ", place, "or \"strict\""},
                 [&] { compile(format, schema, true); });
  };
  const auto schema_with = [](const std::string& keywords) {
    return R"({"type": "object", "properties": {"a": {"type": "integer"}}, )" + keywords + "}";
  };
  expect_refused(tagged(), schema_with(R"("minProperties": 1)"), "#: \"minProperties\"");
  expect_refused(tagged(), schema_with(R"("anyOf": [{"required": ["a"]}])"), "#: \"anyOf\"");
  expect_refused(tagged(), schema_with(R"("allOf": [{"not": {"required": ["b"]}}])"),
                 "#/allOf/0: \"not\"");
  expect_refused(tagged(), R"({"$ref": "#args", "$defs": {"x": {"$anchor": "args", "type": "object",
      "properties": {"a": {"type": "integer"}}}}})",
                 "#: \"$ref\"");
  expect_refused(tagged(), schema_with(R"("additionalProperties": {"type": "null"})"),
                 "#: \"additionalProperties\"");
  const std::string list =
      R"({"type": "object", "properties": {"a": {"type": "array", "items":
          {"type": "string", "maxLength": 3}}}, "additionalProperties": false})";
  expect_refused(marked(), list, "#/properties/a/items: \"maxLength\"");
  EXPECT_NO_THROW(compile(tagged(), list, true));  // JSON there
  EXPECT_NO_THROW(compile(tagged(), kSchema, true));
  EXPECT_NO_THROW(compile(marked(), kSchema, true));
}

}  // namespace
}  // namespace paceline
