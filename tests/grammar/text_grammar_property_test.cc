// Random grammars, read from their texts, against a recogniser of their trees.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "grammar/matcher.h"
#include "grammar/text_grammar.h"
#include "tests/expect_error.h"
#include "tests/grammar/naive_language.h"

namespace paceline {
namespace {

struct RandomExpression {
  enum class Kind : uint8_t { literal, character, reference, sequence, choice, repeat };
  Kind kind = Kind::literal;
  std::string text;  // literal, or the characters of a class
  size_t rule = 0;
  uint32_t min = 0;
  uint32_t max = 0;  // 99: unbounded
  std::vector<RandomExpression> parts;
};

using RandomRules = std::vector<RandomExpression>;
constexpr uint32_t kNoLimit = 99;

class RandomGrammars {
 public:
  explicit RandomGrammars(uint32_t seed) : random_(seed) {}

  RandomRules rules() {
    num_rules_ = 1 + below(4);
    RandomRules rules;
    for (size_t i = 0; i < num_rules_; ++i) rules.push_back(expression(3));
    return rules;
  }

 private:
  using Kind = RandomExpression::Kind;

  size_t below(size_t limit) { return random_() % limit; }

  RandomExpression expression(int depth) {
    RandomExpression made;
    const size_t kind = below(depth == 0 ? 5 : 12);
    if (kind < 2) {
      for (size_t i = below(3); i > 0; --i) made.text += "ab"[below(2)];
    } else if (kind == 2) {
      made.kind = Kind::character;
      made.text = below(2) == 0 ? "a" : "ab";
    } else if (kind < 5) {
      made.kind = Kind::reference;
      made.rule = below(num_rules_);
    } else if (kind < 10) {
      made.kind = kind < 8 ? Kind::sequence : Kind::choice;
      for (size_t i = 1 + below(3); i > 0; --i) made.parts.push_back(expression(depth - 1));
    } else {
      made.kind = Kind::repeat;
      constexpr uint32_t kCounts[][2] = {{0, 1}, {0, kNoLimit}, {1, kNoLimit}, {2, 2},
                                         {0, 2}, {1, 3},        {2, kNoLimit}, {0, 0}};
      const auto& counts = kCounts[below(std::size(kCounts))];
      made.min = counts[0];
      made.max = counts[1];
      made.parts.push_back(expression(depth - 1));
    }
    return made;
  }

  std::mt19937 random_;
  size_t num_rules_ = 0;
};

enum class Notation : bool { gbnf, lark };

std::string written(const RandomExpression& expression, Notation notation) {
  using Kind = RandomExpression::Kind;
  std::string text;
  switch (expression.kind) {
    case Kind::literal:
      return fmt::format("\"{}\"", expression.text);
    case Kind::character:
      return notation == Notation::gbnf ? fmt::format("[{}]", expression.text)
                                        : fmt::format("/[{}]/", expression.text);
    case Kind::reference:
      return fmt::format("r{}", expression.rule);
    case Kind::repeat: {
      const std::string of = written(expression.parts[0], notation);
      if (expression.max != kNoLimit) {
        return fmt::format("({}){{{},{}}}", of, expression.min, expression.max);
      }
      if (expression.min > 1) return fmt::format("({}){{{},}}", of, expression.min);
      return fmt::format("({}){}", of, expression.min == 0 ? "*" : "+");
    }
    default:
      for (const RandomExpression& part : expression.parts) {
        if (!text.empty()) text += expression.kind == Kind::choice ? " | " : " ";
        text += written(part, notation);
      }
      return fmt::format("({})", text);
  }
}

std::string written(const RandomRules& rules, Notation notation) {
  std::string text = notation == Notation::gbnf ? "root ::= r0\n" : "%ignore \" \"\nstart: r0\n";
  for (size_t i = 0; i < rules.size(); ++i) {
    text += fmt::format("r{}{} {}\n", i, notation == Notation::gbnf ? " ::=" : ":",
                        written(rules[i], notation));
  }
  return text;
}

// Sets of places in a text of at most 31 bytes, as bits.
class TreeRecogniser {
 public:
  TreeRecogniser(const RandomRules& rules, std::string_view text, Notation notation)
      : rules_(rules),
        text_(text),
        ignores_blanks_(notation == Notation::lark),
        ends_(rules.size(), std::vector<uint32_t>(text.size() + 1)) {}

  bool accepts() {
    bool has_changed = true;
    while (has_changed) {
      has_changed = false;
      for (size_t rule = 0; rule < rules_.size(); ++rule) {
        for (size_t at = 0; at <= text_.size(); ++at) {
          const uint32_t found = read(rules_[rule], 1U << at);
          has_changed |= (found & ~ends_[rule][at]) != 0;
          ends_[rule][at] |= found;
        }
      }
    }
    const RandomExpression root{.kind = RandomExpression::Kind::reference, .text = {}, .parts = {}};
    return (read(root, after_blanks(1)) >> text_.size() & 1) != 0;
  }

 private:
  uint32_t after_blanks(uint32_t places) const {
    if (!ignores_blanks_) return places;
    for (size_t at = 0; at < text_.size(); ++at) {
      if (text_[at] == ' ') places |= (places >> at & 1) << (at + 1);
    }
    return places;
  }

  uint32_t read(const RandomExpression& expression, uint32_t places) const {
    using Kind = RandomExpression::Kind;
    uint32_t ends = 0;
    switch (expression.kind) {
      case Kind::literal:
      case Kind::character:
        for (size_t at = 0; at <= text_.size(); ++at) {
          if ((places >> at & 1) == 0) continue;
          if (expression.kind == Kind::literal) {
            if (text_.substr(at).starts_with(expression.text)) {
              ends |= 1U << (at + expression.text.size());
            }
          } else if (at < text_.size() && expression.text.find(text_[at]) != std::string::npos) {
            ends |= 2U << at;
          }
        }
        return after_blanks(ends);
      case Kind::reference:
        for (size_t at = 0; at <= text_.size(); ++at) {
          if ((places >> at & 1) != 0) ends |= ends_[expression.rule][at];
        }
        return ends;
      case Kind::sequence:
        for (const RandomExpression& part : expression.parts) places = read(part, places);
        return places;
      case Kind::choice:
        for (const RandomExpression& part : expression.parts) ends |= read(part, places);
        return ends;
      case Kind::repeat:
        return repeated(expression, places);
    }
    return ends;
  }

  uint32_t repeated(const RandomExpression& expression, uint32_t places) const {
    const auto enough = static_cast<uint32_t>(expression.min + text_.size() + 1);
    uint32_t ends = 0;
    for (uint32_t count = 0; count <= std::min(expression.max, enough); ++count) {
      if (count >= expression.min) ends |= places;
      places = read(expression.parts[0], places);
    }
    return ends;
  }

  const RandomRules& rules_;
  std::string_view text_;
  bool ignores_blanks_;
  std::vector<std::vector<uint32_t>> ends_;  // by rule and place
};

std::vector<std::string> texts_over(std::string_view alphabet, size_t max_length) {
  std::vector<std::string> texts{""};
  for (size_t i = 0; i < texts.size() && texts[i].size() < max_length; ++i) {
    for (const char c : alphabet) texts.push_back(texts[i] + c);
  }
  return texts;
}

void compare(Notation notation, uint32_t num_grammars, const std::vector<std::string>& texts) {
  size_t num_accepted = 0;
  for (uint32_t seed = 0; seed < num_grammars; ++seed) {
    const RandomRules rules = RandomGrammars(seed).rules();
    const std::string source = written(rules, notation);
    std::vector<bool> expected;
    for (const std::string& text : texts) {
      expected.push_back(TreeRecogniser(rules, text, notation).accepts());
    }
    Grammar grammar;
    const std::string error = error_text([&] { grammar = compile_grammar_text(source); });
    if (!error.empty()) {
      ASSERT_EQ(error, "invalid: the constraint allows no text at all") << source;
      ASSERT_EQ(std::count(expected.begin(), expected.end(), true), 0) << source;
      continue;
    }
    for (size_t i = 0; i < texts.size(); ++i) {
      ASSERT_EQ(naively_accepts(grammar, texts[i]), expected[i])
          << "seed " << seed << ", \"" << texts[i] << "\":\n"
          << source;
      num_accepted += expected[i] ? 1 : 0;
    }
  }
  EXPECT_GT(num_accepted, num_grammars);
}

TEST(TextGrammarProperty, GbnfHasTheLanguageOfItsTree) {
  compare(Notation::gbnf, 300, texts_over("ab", 5));
}

TEST(TextGrammarProperty, LarkHasTheLanguageOfItsTree) {
  compare(Notation::lark, 150, texts_over("ab ", 4));
}

// Goes on by the bytes of the token, each of which is a token itself.
bool accepts_bytes(Matcher matcher, std::string_view token) {
  return std::all_of(token.begin(), token.end(),
                     [&](char byte) { return matcher.accept(static_cast<uint8_t>(byte - 'a')); });
}

// Masks of tokens of several bytes agree with bytes, and whole texts with the tree.
TEST(TextGrammarProperty, MatchersFollowTheLanguage) {
  const std::vector<std::string> tokens = {"a",   "b",   "ab",   "ba",  "aa",   "bb",
                                           "aba", "bab", "aabb", "abb", "aaaa", ""};
  const auto trie = std::make_shared<const TokenTrie>(tokens);
  const std::vector<std::string> texts = texts_over("ab", 5);
  for (uint32_t seed = 0; seed < 200; ++seed) {
    const RandomRules rules = RandomGrammars(seed).rules();
    const std::string source = written(rules, Notation::gbnf);
    Grammar grammar;
    if (!error_text([&] { grammar = compile_grammar_text(source); }).empty()) continue;
    const Matcher start(std::make_shared<Constraint>(std::move(grammar), trie));
    for (const std::string& text : texts) {
      Matcher matcher = start;
      const bool is_alive = std::all_of(text.begin(), text.end(), [&](char byte) {
        return matcher.accept(static_cast<uint8_t>(byte - 'a'));
      });
      ASSERT_EQ(is_alive && matcher.is_complete(),
                TreeRecogniser(rules, text, Notation::gbnf).accepts())
          << "seed " << seed << ", \"" << text << "\":\n"
          << source;
      if (!is_alive) continue;
      const auto mask = matcher.mask();
      for (uint32_t token = 0; token + 1 < tokens.size(); ++token) {
        ASSERT_EQ(mask->allows(token), accepts_bytes(matcher, tokens[token]))
            << "seed " << seed << ", \"" << tokens[token] << "\" behind \"" << text << "\":\n"
            << source;
      }
    }
  }
}

}  // namespace
}  // namespace paceline
