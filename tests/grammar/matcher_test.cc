#include "grammar/matcher.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "grammar/constraint.h"
#include "grammar/json_schema.h"
#include "paceline/error.h"
#include "tests/expect_error.h"
#include "tests/test_scale.h"

namespace paceline {
namespace {

// list = "[" item{,3} ("," between) "]"; item = list | "a"*.
Grammar nested_lists() {
  GrammarBuilder builder;
  RegexSet& regexes = builder.regexes();
  const RuleId list = builder.add_rule("list");
  const StateId opened = builder.add_state(list);
  const StateId behind = builder.add_state(list);
  const StateId closed = builder.add_state(list);
  builder.add_terminal(builder.start(list), regexes.byte('['), opened);
  builder.add_terminal(opened, regexes.plus(regexes.byte('a')), behind, {.adds = 1});
  builder.add_call(opened, list, behind, {.adds = 1});
  builder.add_terminal(behind, regexes.byte(','), opened, {.count = {.max = 2}});
  builder.add_terminal(behind, regexes.byte(']'), closed);
  builder.set_end(closed);
  return std::move(builder).finish(list);
}

std::shared_ptr<const TokenTrie> trie() {
  return std::make_shared<const TokenTrie>(std::vector<std::string>{
      "[", "]", "a", "aa", ",", ",[", "],", "]]", "a,a", "a]", "", "[a", "a", "[[[[a,a,a]]]"});
}

std::string allowed(Matcher& matcher) {
  const auto mask = matcher.mask();
  std::string names;
  for (uint32_t token = 0; token < mask->num_tokens(); ++token) {
    if (!mask->allows(token)) continue;
    if (!names.empty()) names += ' ';
    names += matcher.constraint().trie().bytes(token);
  }
  return names;
}

TEST(Matcher, MasksAreWhatMayCome) {
  Matcher matcher(std::make_shared<Constraint>(nested_lists(), trie()));
  EXPECT_EQ(allowed(matcher), "[ [a [[[[a,a,a]]]");
  EXPECT_FALSE(matcher.accept(1));
  EXPECT_TRUE(matcher.accept(11));  // [a
  EXPECT_EQ(allowed(matcher), "] a aa , ,[ a,a a] a");
  EXPECT_TRUE(matcher.accept(8));  // [aa,a
  EXPECT_TRUE(matcher.accept(4));  // [aa,a,
  EXPECT_EQ(allowed(matcher), "[ a aa a] [a a [[[[a,a,a]]]")
      << "the third item, so no comma follows";
  EXPECT_TRUE(matcher.accept(9));
  EXPECT_EQ(allowed(matcher), "");
  EXPECT_TRUE(matcher.is_complete());
}

TEST(Matcher, TakesTokensBackAndCopiesGoOnAlone) {
  Matcher matcher(std::make_shared<Constraint>(nested_lists(), trie()));
  ASSERT_TRUE(matcher.accept(0));
  const std::string before = allowed(matcher);
  Matcher copy = matcher;
  ASSERT_TRUE(matcher.accept(2));
  ASSERT_TRUE(matcher.accept(1));
  EXPECT_TRUE(matcher.is_complete());
  EXPECT_EQ(allowed(copy), before);
  matcher.rollback(2);
  EXPECT_EQ(allowed(matcher), before);
  EXPECT_EQ(matcher.num_tokens(), 1U);
  EXPECT_FALSE(matcher.is_complete());
}

TEST(Matcher, ForcedBytesEndWhereThereIsAChoice) {
  GrammarBuilder builder;
  RegexSet& regexes = builder.regexes();
  const RuleId root = builder.add_rule("root");
  const StateId end = builder.add_state(root);
  builder.add_terminal(builder.start(root),
                       regexes.alternation(regexes.literal("pace"), regexes.literal("pacific")),
                       end);
  builder.set_end(end);
  const auto letters = std::make_shared<const TokenTrie>(std::vector<std::string>{"p", "pac", "e"});
  Matcher matcher(std::make_shared<Constraint>(std::move(builder).finish(root), letters));
  EXPECT_EQ(matcher.forced_bytes(100), "pac");
  EXPECT_EQ(matcher.forced_bytes(2), "pa");
  ASSERT_TRUE(matcher.accept(1));
  EXPECT_EQ(matcher.forced_bytes(100), "");
  ASSERT_TRUE(matcher.accept(2));
  EXPECT_EQ(matcher.forced_bytes(100), "");
}

// In an object's names most tokens lead to the body of any string; the names that are declared
// differ. The mask has to be what accepting each token says.
TEST(Matcher, MasksOfNamesAgreeWithEachToken) {
  std::vector<std::string> tokens;
  for (const char* text : {"a",   "b",   "n",  "na",  "nam",         "name",
                           "ame", "x",   "\"", "\":", ":1",          "1",
                           "{",   "{\"", "}",  ",",   ",\"",         "\",",
                           "id",  "i",   "d",  "dx",  "e\"",         "me\":1",
                           "\\",  "\\n", " ",  "ab",  "abcdefghijk", "nameabcdefgh\":"}) {
    tokens.push_back(text);
  }
  for (char first = 'a'; first <= 'z'; ++first) {
    for (char second = 'a'; second <= 'z'; ++second) {
      tokens.push_back({first, second});
      tokens.push_back({first, second, '"', ':'});
      tokens.push_back({'n', first, second, 'e'});
    }
  }
  const auto vocabulary = std::make_shared<const TokenTrie>(tokens);
  const auto constraint = std::make_shared<Constraint>(
      compile_json_schema(R"({"type": "object", "properties": {"name": {"type": "integer"},
          "id": {"type": "integer"}}, "required": ["id"],
          "additionalProperties": {"type": "integer", "maximum": 9}})"),
      vocabulary);
  std::mt19937_64 random(7);
  for (int round = 0; round < 8; ++round) {
    Matcher matcher(constraint);
    for (int step = 0; step < 25; ++step) {
      const auto mask = matcher.mask();
      std::vector<uint32_t> allowed;
      for (uint32_t token = 0; token < tokens.size(); ++token) {
        Matcher copy = matcher;
        ASSERT_EQ(copy.accept(token), mask->allows(token))
            << round << ", " << step << tokens[token];
        if (mask->allows(token)) allowed.push_back(token);
      }
      if (allowed.empty()) break;
      ASSERT_TRUE(matcher.accept(allowed[random() % allowed.size()]));
    }
  }
}

// Two states that lead to each other, each by half of the tokens.
// Beside a pattern a length is left out while no token can reach it. The mask has to be what
// accepting each token says, at every distance from it.
TEST(Matcher, MasksOfLengthsBesidePatternsAgreeWithEachToken) {
  std::mt19937 random(5);
  std::vector<std::string> tokens;
  for (const char* text :
       {"a",   "b", "x",    "1",    " ",  "-",   ".",   "\"",  "\\",  "u",   "n",  "\\u0061",
        "\\n", "é", "\xC3", "\xA9", " a", " ab", "ab ", "a b", "\"a", "b\"", " \""}) {
    tokens.emplace_back(text);
  }
  for (int i = 0; i < 60; ++i) {
    std::string token;
    const size_t length = 1 + random() % 11;
    for (size_t k = 0; k < length; ++k) token += tokens[random() % 23];
    tokens.push_back(std::move(token));
  }
  for (const size_t length : {7, 12, 25, 30, 40, 64, 120}) {
    tokens.emplace_back(length, 'a');
    tokens.emplace_back();
    while (tokens.back().size() < length) tokens.back() += "ab ";
  }
  const auto trie = std::make_shared<const TokenTrie>(tokens);
  for (const std::string_view pattern :
       {R"(^\\S+( \\S+)*$)", R"(^(\\S+\\s+){0,9}\\S+$)", R"(^[a-x]{3,}$)", R"(^(ab?){2,30}1$)",
        R"(a.*b$)", R"(^$|^[^1]*$)"}) {
    for (const int max_length : {6, 14, 40, 70, 200}) {
      const std::string schema = R"({"type": "string", "minLength": 2, "maxLength": )" +
                                 std::to_string(max_length) + R"(, "pattern": ")" +
                                 std::string(pattern) + "\"}";
      SCOPED_TRACE(schema);
      const auto constraint = std::make_shared<Constraint>(compile_json_schema(schema), trie);
      for (int text = 0; text < 3; ++text) {
        Matcher matcher(constraint);
        for (int step = 0; step < 60; ++step) {
          const auto mask = matcher.mask();
          std::vector<uint32_t> allowed;
          for (uint32_t token = 0; token < tokens.size(); ++token) {
            Matcher next = matcher;
            ASSERT_EQ(mask->allows(token), next.accept(token)) << step << ' ' << tokens[token];
            if (mask->allows(token)) allowed.push_back(token);
          }
          if (allowed.empty()) break;
          matcher.accept(allowed[random() % allowed.size()]);
        }
      }
    }
  }
}

TEST(Matcher, MasksOfStatesThatLeadToEachOther) {
  std::vector<std::string> tokens;
  for (char letter = 'a'; letter <= 'z'; ++letter) {
    const auto capital = static_cast<char>(letter - 'a' + 'A');
    tokens.insert(tokens.end(),
                  {{letter}, {capital}, {letter, letter}, {capital, capital}, {letter, '!'}});
  }
  GrammarBuilder builder;
  RegexSet& regexes = builder.regexes();
  ByteSet small;
  ByteSet any;
  for (size_t byte = 'a'; byte <= 'z'; ++byte)
    small[byte] = any[byte] = any[byte - 'a' + 'A'] = true;
  const RegexId body = regexes.concat(regexes.star(regexes.bytes(any)), regexes.bytes(small));
  const RuleId root = builder.add_rule("root");
  const StateId end = builder.add_state(root);
  builder.add_terminal(builder.start(root), regexes.concat(body, regexes.byte('!')), end);
  builder.set_end(end);
  Matcher matcher(std::make_shared<Constraint>(std::move(builder).finish(root),
                                               std::make_shared<const TokenTrie>(tokens)));
  for (const uint32_t token : {0, 1, 6, 2, 3}) {
    EXPECT_EQ(matcher.mask()->num_allowed(), tokens.size());
    ASSERT_TRUE(matcher.accept(token));
  }
}

// What a text under a constraint was told, step by step: masks, refusals and ends.
struct WalkedText {
  std::vector<std::shared_ptr<const TokenSet>> masks;
  std::vector<bool> answers;
  bool operator==(const WalkedText& other) const {
    return answers == other.answers &&
           std::ranges::equal(masks, other.masks,
                              [](const auto& a, const auto& b) { return *a == *b; });
  }
};

// Draws allowed tokens, and sometimes others; goes back and takes another way; goes on with copies.
WalkedText walk_text(Matcher matcher, uint64_t seed) {
  std::mt19937_64 random(seed);
  WalkedText walked;
  const auto num_tokens = static_cast<uint32_t>(matcher.constraint().trie().num_tokens());
  for (int step = 0; step < 40; ++step) {
    walked.masks.push_back(matcher.mask());
    walked.answers.push_back(matcher.is_complete());
    std::vector<uint32_t> allowed;
    for (uint32_t token = 0; token < num_tokens; ++token) {
      if (walked.masks.back()->allows(token)) allowed.push_back(token);
    }
    const auto any = static_cast<uint32_t>(random() % num_tokens);
    const uint32_t token =
        allowed.empty() || random() % 8 == 0 ? any : allowed[random() % allowed.size()];
    walked.answers.push_back(matcher.accept(token));
    if (random() % 6 == 0) matcher.rollback(random() % (matcher.num_tokens() + 1));
    if (random() % 6 == 0) matcher = Matcher(matcher);
  }
  return walked;
}

// Texts share what a constraint has found; whoever finds it, each is told what it is told alone.
TEST(Matcher, TextsOfOneConstraintOnSeveralThreadsAreToldWhatTheyAreAlone) {
  std::vector<std::string> tokens = {"{\"", "\":",  "\": ", ",\"",  ", \"", "\",\"",
                                     "[1",  "null", "tru",  "\":[", "],\"", "\\u00e9"};
  for (const char* bytes = "{}[]\",: \\ntrufalse0123456789abcxyz-."; *bytes != 0; ++bytes) {
    tokens.emplace_back(1, *bytes);
  }
  const auto trie = std::make_shared<const TokenTrie>(tokens);
  constexpr std::string_view kSchema = R"({"type": "object", "required": ["name"], "properties":
      {"name": {"type": "string", "maxLength": 9}, "list": {"type": "array", "maxItems": 3}},
      "additionalProperties": {"anyOf": [{"type": "integer"}, {"$ref": "#"}]}})";
  const auto constraint = [&] {
    return std::make_shared<Constraint>(compile_json_schema(kSchema), trie);
  };
  constexpr uint64_t kNumThreads = 4;
  const uint64_t num_texts = static_cast<uint64_t>(scaled(12, 400));
  std::vector<WalkedText> alone;
  for (uint64_t seed = 0; seed < kNumThreads * num_texts; ++seed) {
    alone.push_back(walk_text(Matcher(constraint()), seed));
  }
  const auto shared = constraint();
  const Matcher begun(shared);  // before the text, as a request's choices are copied
  std::vector<WalkedText> together(alone.size());
  std::vector<std::jthread> threads;
  for (uint64_t thread = 0; thread < kNumThreads; ++thread) {
    threads.emplace_back([&, thread] {
      for (uint64_t i = 0; i < num_texts; ++i) {
        const uint64_t seed = i * kNumThreads + thread;
        together[seed] = walk_text(i % 2 == 0 ? begun : Matcher(shared), seed);
      }
    });
  }
  threads.clear();
  size_t num_masks = 0;
  for (size_t seed = 0; seed < alone.size(); ++seed) {
    EXPECT_TRUE(together[seed] == alone[seed]) << seed;
    for (const auto& mask : alone[seed].masks) num_masks += mask->num_allowed() > 1 ? 1 : 0;
  }
  EXPECT_GT(num_masks, alone.size() * 10);
}

TEST(Matcher, TooManyStepsFailAndLeaveTheMatcherAsItWas) {
  Matcher matcher(
      std::make_shared<Constraint>(nested_lists(), trie(), WalkerLimits{.max_mask_steps = 10}));
  ASSERT_TRUE(matcher.accept(0));
  expect_error(ErrorCode::exhausted, {"more than 10 steps"}, [&] { matcher.mask(); });
  EXPECT_TRUE(matcher.accept(9));
  EXPECT_TRUE(matcher.is_complete());
}

// Texts by their longest tokens first.
std::vector<uint32_t> longest_first(const TokenTrie& trie, std::string_view text) {
  std::vector<uint32_t> ids;
  while (!text.empty()) {
    uint32_t best = TokenTrie::kNoToken;
    size_t size = 0;
    for (uint32_t id = 0; id < trie.num_tokens(); ++id) {
      const std::string_view bytes = trie.bytes(id);
      if (bytes.size() > size && text.starts_with(bytes)) {
        best = id;
        size = bytes.size();
      }
    }
    if (size == 0) return {};
    ids.push_back(best);
    text.remove_prefix(size);
  }
  return ids;
}

TEST(Matcher, TokensAreForcedUpToWhereALongerOneMayFollow) {
  const auto vocabulary = std::make_shared<const TokenTrie>(
      std::vector<std::string>{"{", "\"", "na", "me", "name", "\":", "\":1", "1", "2", "}", ":"});
  const auto make = [&](const std::string& pattern) {
    return Matcher(std::make_shared<Constraint>(
        compile_constraint({.kind = ConstraintSpec::Kind::regex, .text = pattern}), vocabulary,
        WalkerLimits{}, [&](std::string_view text) { return longest_first(*vocabulary, text); }));
  };
  using Ids = std::vector<uint32_t>;
  Matcher value = make(R"(\{"name":[12]\})");
  EXPECT_EQ(value.forced_tokens(64), (Ids{0, 1, 4})) << "\": may become \":1";
  for (const uint32_t token : value.forced_tokens(64)) EXPECT_TRUE(value.accept(token));
  EXPECT_EQ(value.forced_tokens(64), Ids{});
  EXPECT_TRUE(value.accept(5));
  EXPECT_EQ(value.forced_tokens(64), Ids{}) << "1 or 2";
  EXPECT_TRUE(value.accept(8));
  EXPECT_EQ(value.forced_tokens(64), Ids{9});
  EXPECT_FALSE(value.only_ends());
  EXPECT_TRUE(value.accept(9));
  EXPECT_TRUE(value.only_ends());
  EXPECT_EQ(value.forced_tokens(64), Ids{});

  // Where the text ends, its last token is forced, too.
  EXPECT_EQ(make(R"(\{"name":)").forced_tokens(64), (Ids{0, 1, 4, 5}));
  EXPECT_EQ(make(R"(\{"name":)").forced_tokens(6), (Ids{0, 1, 4})) << "bounded";
  EXPECT_FALSE(make("1*").only_ends());
  EXPECT_EQ(make("na(me)?").forced_tokens(64), Ids{}) << "name is one token";
}

}  // namespace
}  // namespace paceline
