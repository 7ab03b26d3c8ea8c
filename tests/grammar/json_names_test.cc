// Objects under a constraint have each name once. Masks are compared with a reader of whole texts
// that knows nothing of tokens.
#include "grammar/json_names.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "grammar/constraint.h"
#include "grammar/json_schema.h"
#include "grammar/matcher.h"
#include "tests/test_scale.h"

namespace paceline {
namespace {

TEST(NameSet, FindsWhatWasAddedAndWhatFollows) {
  std::mt19937 random(3);
  NameSet names;
  std::set<std::string> known;
  std::vector<NameSet> copies;
  for (int i = 0; i < 200; ++i) {
    std::string name;
    for (size_t length = random() % 5; name.size() < length;) {
      name += static_cast<char>("ab\xC3\xFF"[random() % 4]);
    }
    ASSERT_EQ(names.contains(name), known.contains(name)) << i;
    ByteSet next;
    for (const std::string& other : known) {
      if (other.size() > name.size() && other.starts_with(name)) {
        next[static_cast<uint8_t>(other[name.size()])] = true;
      }
    }
    ASSERT_EQ(names.next_bytes(name), next) << i;
    if (i == 100) copies.push_back(names);
    if (known.insert(name).second) names.add(name);
  }
  size_t num_known = 0;
  for (const std::string& name : known) num_known += copies[0].contains(name) ? 1 : 0;
  EXPECT_LT(num_known, known.size()) << "a copy doesn't grow";
}

std::shared_ptr<const TokenTrie> names_trie() {
  std::vector<std::string> tokens;
  for (const char* text : {"{\"",
                           "\":",
                           "\": ",
                           ",\"",
                           ", \"",
                           "\",\"",
                           "\":1,\"",
                           "\"a\"",
                           "\"a\":",
                           "\"",
                           "a",
                           "b",
                           "ab",
                           "aa",
                           "bc\":",
                           "a\":1",
                           "a\":1}",
                           "c",
                           "é",
                           "\xC3",
                           "\xA9",
                           "\\u00",
                           "\\u",
                           "\\",
                           "0",
                           "6",
                           "1",
                           "e9",
                           "61",
                           "2",
                           "{",
                           "}",
                           "[",
                           "]",
                           ",",
                           ":",
                           " ",
                           "\n",
                           "{\"a\":1,\"a\":1}",
                           "\"\"",
                           "\"\":",
                           "{}",
                           "},\"",
                           "]},\"a",
                           "n",
                           "ull",
                           "true",
                           "\",\"a\":",
                           "d",
                           "\\ud83d",
                           "\\ude00",
                           "\xF0\x9F\x98\x80",
                           "\\n",
                           "\"a",
                           "a"}) {
    tokens.emplace_back(text);
  }
  return std::make_shared<const TokenTrie>(tokens);
}

// Whether an object of a JSON text, which may be cut off anywhere, has a name twice.
class RepeatedNames {
 public:
  static bool in(std::string_view text) {
    std::vector<std::vector<std::string>> open;
    bool is_name = false;
    for (size_t i = 0; i < text.size(); ++i) {
      const char byte = text[i];
      if (byte == '{' || byte == '[') open.push_back({});
      if (byte == '}' || byte == ']') open.pop_back();
      if (byte == '{' || byte == ',') is_name = byte == '{' || !is_array(text.substr(0, i));
      if (byte == '[' || byte == ':') is_name = false;
      if (byte != '"') continue;
      size_t end = i + 1;
      while (end < text.size() && text[end] != '"') end += text[end] == '\\' ? 2 : 1;
      if (end >= text.size()) return false;
      if (is_name) {
        const std::string name = parse_json(text.substr(i, end - i + 1), "name").as_string("name");
        if (std::ranges::find(open.back(), name) != open.back().end()) return true;
        open.back().push_back(name);
      }
      is_name = false;
      i = end;
    }
    return false;
  }

 private:
  // Whether the innermost open value is an array.
  static bool is_array(std::string_view text) {
    std::string open;
    for (size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '"') {
        for (++i; text[i] != '"'; ++i) i += text[i] == '\\' ? 1 : 0;
      } else if (text[i] == '{' || text[i] == '[') {
        open += text[i];
      } else if (text[i] == '}' || text[i] == ']') {
        open.pop_back();
      }
    }
    return open.ends_with('[');
  }
};

// Two matchers of a schema's grammar, one of which lets names repeat, along one text.
class TwoMatchers {
 public:
  explicit TwoMatchers(const std::string& schema) : trie_(names_trie()) {
    Grammar grammar = compile_json_schema(schema);
    constraint_ = std::make_shared<Constraint>(grammar, trie_);
    for (GrammarRule& rule : grammar.rules) rule.is_json = false;
    without_names_ = std::make_shared<Constraint>(grammar, trie_);
    begin();
  }

  void begin() {
    matcher_ = std::make_unique<Matcher>(constraint_);
    plain_ = std::make_unique<Matcher>(without_names_);
    tokens_.clear();
  }
  // The mask has to be what the grammar alone allows, less tokens that end a name which its object
  // has; accepting a token has to say the same. Returns what is allowed.
  std::vector<uint32_t> check() {
    const auto mask = matcher_->mask(), all = plain_->mask();
    std::vector<uint32_t> allowed;
    for (uint32_t token = 0; token < trie_->num_tokens(); ++token) {
      const std::string next = text() + std::string(trie_->bytes(token));
      const bool repeats = all->allows(token) && RepeatedNames::in(next);
      EXPECT_EQ(mask->allows(token), all->allows(token) && !repeats) << next;
      Matcher copy = *matcher_;
      EXPECT_EQ(copy.accept(token), mask->allows(token)) << next;
      num_forbidden += repeats ? 1 : 0;
      if (mask->allows(token)) allowed.push_back(token);
    }
    return allowed;
  }
  void accept(uint32_t token) {
    EXPECT_TRUE(matcher_->accept(token) && plain_->accept(token));
    tokens_.push_back(token);
  }
  void rollback(size_t count) {
    matcher_->rollback(count);
    plain_->rollback(count);
    tokens_.resize(tokens_.size() - count);
  }
  size_t num_tokens() const { return tokens_.size(); }
  std::string text() const {
    std::string text;
    for (const uint32_t token : tokens_) text += trie_->bytes(token);
    return text;
  }

  size_t num_forbidden = 0;  // tokens that only their names forbid

 private:
  std::shared_ptr<const TokenTrie> trie_;
  std::shared_ptr<Constraint> constraint_, without_names_;
  std::unique_ptr<Matcher> matcher_, plain_;
  std::vector<uint32_t> tokens_;
};

TEST(JsonNames, MasksAreTheGrammarsLessRepeatedNames) {
  const int num_texts = scaled(20, 1000);
  for (const std::string schema :
       {R"({"type": "object", "additionalProperties": {"anyOf": [{"type": "integer"},
            {"$ref": "#"}, {"type": "array", "items": {"$ref": "#"}}]}})",
        R"({"type": "object", "properties": {"ab": {"type": "integer"}, "c": {}},
            "additionalProperties": {"type": "string"}})",
        R"({"type": "object", "patternProperties": {"^[a-c]+$": {"type": ["object", "null"]}},
            "additionalProperties": false})",
        R"({"type": "array", "items": {"type": "object"}})"}) {
    SCOPED_TRACE(schema);
    TwoMatchers both(schema);
    std::mt19937_64 random(11);
    for (int i = 0; i < num_texts; ++i) {
      both.begin();
      for (int step = 0; step < 90; ++step) {
        const std::vector<uint32_t> allowed = both.check();
        if (HasFailure()) return;
        if (allowed.empty()) break;
        both.accept(allowed[random() % allowed.size()]);
        if (random() % 16 == 0) both.rollback(random() % (both.num_tokens() + 1));
        if (random() % 16 == 0) both.rollback(std::min<size_t>(both.num_tokens(), random() % 3));
      }
    }
    EXPECT_GT(both.num_forbidden, static_cast<size_t>(num_texts));
  }
}

class OneConstraint {
 public:
  explicit OneConstraint(Grammar grammar) {
    std::vector<std::string> bytes;
    for (int byte = 0; byte < 256; ++byte) bytes.emplace_back(1, static_cast<char>(byte));
    constraint_ = std::make_shared<Constraint>(
        std::move(grammar), std::make_shared<const TokenTrie>(bytes), WalkerLimits{},
        [](std::string_view text) { return std::vector<uint32_t>(text.begin(), text.end()); });
  }
  explicit OneConstraint(std::string_view schema) : OneConstraint(compile_json_schema(schema)) {}

  // Behind as much of the text as may come.
  std::pair<Matcher, size_t> at(std::string_view text) const {
    Matcher matcher(constraint_);
    size_t count = 0;
    while (count < text.size() && matcher.accept(static_cast<uint8_t>(text[count]))) ++count;
    return {matcher, count};
  }
  bool accepts(std::string_view text) const {
    auto [matcher, count] = at(text);
    return count == text.size() && matcher.is_complete();
  }

 private:
  std::shared_ptr<Constraint> constraint_;
};

TEST(JsonNames, AreEachOnceInTheirObject) {
  const OneConstraint any(any_json_object());
  EXPECT_TRUE(any.accepts(R"({"a":1,"b":{"a":1},"c":[{"a":1},{"a":1}],"d":"a"})"));
  EXPECT_FALSE(any.accepts(R"({"a":1,"a":1})"));
  EXPECT_FALSE(any.accepts(R"({"a":{"b":1,"b":2}})"));
  EXPECT_FALSE(any.accepts(R"({"a":[1,"x,",{"b":"}"}],"a":1})"));
  EXPECT_FALSE(any.accepts(R"({"":1,"":1})"));
  EXPECT_TRUE(any.accepts(R"({"a":1,"aa":1,"aaa":1})"));
}

TEST(JsonNames, AreComparedWithTheirEscapesRead) {
  const OneConstraint any(any_json_object());
  for (const std::string_view second : {R"("\u00e9\n")", R"("\u00E9\u000a")"}) {
    EXPECT_FALSE(any.accepts("{\"\xC3\xA9\\n\":1," + std::string(second) + ":1}")) << second;
  }
  EXPECT_FALSE(any.accepts("{\"\xF0\x9F\x98\x80\":1,\"\\uD83D\\uDE00\":1}"));
  EXPECT_TRUE(any.accepts("{\"\xF0\x9F\x98\x80\":1,\"\\uD83D\\uDE01\":1}"));
  EXPECT_FALSE(any.accepts(R"({"a\/b\"":1,"a/b\"":1})"));
}

// Where nothing else can be written they repeat, so that a text never gets stuck.
TEST(JsonNames, RepeatWhereNothingElseIsLeft) {
  const OneConstraint few(R"({"type": "object", "minProperties": 3, "additionalProperties":
      {"type": "integer"}, "propertyNames": {"enum": ["ab", "ac"]}})");
  EXPECT_TRUE(few.accepts(R"({"ab":1,"ac":2,"ab":3})"));
  EXPECT_TRUE(few.accepts(R"({"ab":1,"ab":2,"ac":3})")) << "behind ab only a quote may come";
  auto [matcher, count] = few.at(R"({"ab":1,"a)");
  EXPECT_EQ(matcher.mask()->num_allowed(), 2U) << "of both names";
  EXPECT_TRUE(matcher.accept('b'));
  EXPECT_EQ(matcher.mask()->num_allowed(), 1U);
  EXPECT_TRUE(matcher.accept('"'));
}

// No text is forced that ends a name twice: it is drawn.
TEST(JsonNames, ThatRepeatAreNotForced) {
  const OneConstraint one(R"({"type": "object", "minProperties": 2, "additionalProperties":
      {"type": "integer"}, "propertyNames": {"enum": ["abc"]}})");
  auto [matcher, count] = one.at(R"({"abc":1,"a)");
  for (const uint32_t token : matcher.forced_tokens(64)) EXPECT_TRUE(matcher.accept(token));
  EXPECT_EQ(matcher.forced_bytes(64), "");
  EXPECT_EQ(matcher.mask()->num_allowed(), 1U);
  EXPECT_TRUE(matcher.accept('"'));
}

TEST(JsonNames, MayRepeatWhereTheyAreLongAndDeepAndInTextsThatAreNotJson) {
  const OneConstraint any(any_json_object());
  for (const size_t size : {JsonNames::kMaxNameBytes, JsonNames::kMaxNameBytes + 1}) {
    const std::string member = '"' + std::string(size, 'a') + "\":1";
    EXPECT_EQ(any.accepts('{' + member + ',' + member + '}'), size > JsonNames::kMaxNameBytes);
  }
  std::string deep;
  for (size_t i = 0; i < JsonNames::kMaxDepth + 3; ++i) deep += R"({"a":)";
  EXPECT_EQ(any.at(deep + R"({"b":1,"b":1)").second, deep.size() + 12);
  GrammarBuilder builder;
  const RuleId text =
      add_constraint({.kind = ConstraintSpec::Kind::regex, .text = R"(\{("a":1,?)*\})"}, builder);
  EXPECT_TRUE(OneConstraint(std::move(builder).finish(text)).accepts(R"({"a":1,"a":1})"));
}

// Then the grammar itself has each name once.
TEST(JsonNames, AreNotReadWhereAllNamesAreDeclared) {
  const auto reads_names = [](std::string_view schema) {
    const Grammar grammar = compile_json_schema(schema);
    return std::ranges::any_of(grammar.rules, [](const auto& rule) { return rule.is_json; });
  };
  EXPECT_FALSE(reads_names(R"({"type": "object", "properties": {"a": {"type": "integer"}},
      "additionalProperties": false})"));
  EXPECT_TRUE(reads_names(R"({"type": "object", "properties": {"a": {}},
      "additionalProperties": false})"));
  EXPECT_TRUE(reads_names(R"({"type": "object", "patternProperties": {"^a": {"type": "null"}},
      "additionalProperties": false})"));
}

// As calls of tools are: JSON between other texts, and another one behind it.
TEST(JsonNames, AreThoseOfEachValueWithinAText) {
  GrammarBuilder builder;
  const RuleId calls = builder.add_rule("calls");
  const RuleId json = add_any_json_object(builder);
  const StateId opened = builder.add_state(calls), closed = builder.add_state(calls);
  builder.add_terminal(builder.start(calls), builder.regexes().literal("\"{\"a\"<"), opened);
  builder.add_call(opened, json, closed);
  builder.add_terminal(closed, builder.regexes().byte('>'), builder.start(calls));
  builder.set_end(builder.start(calls));
  const OneConstraint constraint(std::move(builder).finish(calls));
  EXPECT_TRUE(constraint.accepts(R"("{"a"<{"a":1}>"{"a"<{"a":1}>)"));
  EXPECT_FALSE(constraint.accepts(R"("{"a"<{"a":1}>"{"a"<{"a":1,"a":2}>)"));
}

}  // namespace
}  // namespace paceline
