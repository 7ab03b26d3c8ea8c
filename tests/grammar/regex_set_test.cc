#include "grammar/regex_set.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

#include "paceline/error.h"
#include "tests/expect_error.h"

namespace paceline {
namespace {

// Every text of at most `length` letters of `alphabet`.
std::vector<std::string> all_texts(std::string_view alphabet, size_t length) {
  std::vector<std::string> texts{""};
  for (size_t begin = 0, round = 0; round < length; ++round) {
    const size_t end = texts.size();
    for (; begin < end; ++begin) {
      for (const char letter : alphabet) texts.push_back(texts[begin] + letter);
    }
  }
  return texts;
}

// A random expression, and what it matches among the texts by the definition of each operator.
struct Sample {
  RegexId regex{};
  std::vector<bool> matched;  // by text
};

class RandomRegex {
 public:
  RandomRegex(RegexSet& regexes, uint64_t seed) : regexes_(regexes), random_(seed) {
    texts_ = all_texts("ab", 5);
    for (size_t i = 0; i < texts_.size(); ++i) index_[texts_[i]] = i;
  }

  const std::vector<std::string>& texts() const { return texts_; }

  Sample draw(int depth) {
    const uint64_t kind = depth == 0 ? random_() % 3 : random_() % 9;
    switch (kind) {
      case 0:
        return letter('a');
      case 1:
        return letter('b');
      case 2:
        return literal();
      case 3:
      case 4:
        return concat(draw(depth - 1), draw(depth - 1));
      case 5:
        return either(draw(depth - 1), draw(depth - 1));
      case 6:
        return both(draw(depth - 1), draw(depth - 1));
      case 7:
        return inverse(draw(depth - 1));
      default:
        return repeated(draw(depth - 1));
    }
  }

 private:
  Sample from(RegexId regex, const std::function<bool(const std::string&)>& is_matched) {
    Sample sample{regex, {}};
    for (const std::string& text : texts_) sample.matched.push_back(is_matched(text));
    return sample;
  }
  Sample letter(char value) {
    return from(regexes_.byte(static_cast<uint8_t>(value)),
                [&](const std::string& text) { return text == std::string(1, value); });
  }
  Sample literal() {
    const std::string& chosen = texts_[random_() % 15];
    return from(regexes_.literal(chosen), [&](const std::string& text) { return text == chosen; });
  }
  bool split_matches(const Sample& a, const Sample& b, const std::string& text) {
    for (size_t cut = 0; cut <= text.size(); ++cut) {
      if (a.matched[index_[text.substr(0, cut)]] && b.matched[index_[text.substr(cut)]])
        return true;
    }
    return false;
  }
  Sample concat(const Sample& a, const Sample& b) {
    return from(regexes_.concat(a.regex, b.regex),
                [&](const std::string& text) { return split_matches(a, b, text); });
  }
  Sample either(const Sample& a, const Sample& b) {
    return from(regexes_.alternation(a.regex, b.regex), [&](const std::string& text) {
      return a.matched[index_[text]] || b.matched[index_[text]];
    });
  }
  Sample both(const Sample& a, const Sample& b) {
    return from(regexes_.intersection(a.regex, b.regex), [&](const std::string& text) {
      return a.matched[index_[text]] && b.matched[index_[text]];
    });
  }
  Sample inverse(const Sample& a) {
    return from(regexes_.complement(a.regex),
                [&](const std::string& text) { return !a.matched[index_[text]]; });
  }
  // (of){min,max} by its definition: min of it, then up to max - min more.
  Sample repeated(const Sample& of) {
    const auto min = static_cast<uint32_t>(random_() % 4);
    const uint32_t max =
        random_() % 3 == 0 ? kUnbounded : min + static_cast<uint32_t>(random_() % 4);
    Sample power = from(RegexSet::kEmpty, [](const std::string& text) { return text.empty(); });
    Sample sum = from(RegexSet::kNothing, [](const std::string&) { return false; });
    const uint32_t last = max == kUnbounded ? min + 6 : max;  // texts have five letters
    for (uint32_t count = 0; count <= last; ++count) {
      if (count >= min) {
        for (size_t i = 0; i < texts_.size(); ++i)
          sum.matched[i] = sum.matched[i] || power.matched[i];
      }
      const Sample shorter = power;
      for (size_t i = 0; i < texts_.size(); ++i) {
        power.matched[i] = split_matches(shorter, of, texts_[i]);
      }
    }
    sum.regex = regexes_.repeat(of.regex, min, max);
    return sum;
  }

  RegexSet& regexes_;
  std::mt19937_64 random_;
  std::vector<std::string> texts_;
  std::unordered_map<std::string, size_t> index_;
};

TEST(RegexSet, MatchesWhatTheOperatorsDefine) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    RegexSet regexes;
    RandomRegex random(regexes, seed);
    const Sample sample = random.draw(4);
    bool any = false;
    for (size_t i = 0; i < random.texts().size(); ++i) {
      any |= sample.matched[i];
      ASSERT_EQ(regexes.matches(sample.regex, random.texts()[i]), sample.matched[i])
          << "seed " << seed << ", text " << random.texts()[i];
    }
    ASSERT_TRUE(!any || !regexes.is_nothing(sample.regex)) << "seed " << seed;
  }
}

TEST(RegexSet, SpellingsMatchWhatTheTextsDo) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    RegexSet regexes;
    RandomRegex random(regexes, seed);
    const Sample sample = random.draw(4);
    ByteSpelling spelling;
    spelling.of_byte['b'] = "\\b";
    spelling.of_byte['\\'] = "\\\\";
    const RegexId spelt = regexes.spelt(sample.regex, spelling);
    std::unordered_map<std::string, bool> matched;
    for (size_t i = 0; i < random.texts().size(); ++i) {
      std::string text;
      for (const char c : random.texts()[i]) text += c == 'b' ? "\\b" : "a";
      matched[text] = sample.matched[i];
      ASSERT_EQ(regexes.matches(spelt, text), sample.matched[i]) << seed << ' ' << text;
    }
    for (const std::string& text : all_texts("ab", 5)) {
      const bool is_spelt = text.find('b') == std::string::npos;
      ASSERT_EQ(regexes.matches(spelt, text), is_spelt && matched[text]) << seed << ' ' << text;
    }
    ASSERT_FALSE(regexes.matches(spelt, "a\\"));
  }
}

// A prefix lives when some text continues it: is_nothing of the derivatives says so before
// first_bytes.
TEST(RegexSet, FirstBytesLeaveOutNone) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    RegexSet regexes;
    RandomRegex random(regexes, seed);
    const Sample sample = random.draw(4);
    for (size_t i = 1; i < random.texts().size(); ++i) {
      if (!sample.matched[i]) continue;
      const auto first = static_cast<uint8_t>(random.texts()[i][0]);
      ASSERT_TRUE(regexes.first_bytes(sample.regex)[first]) << "seed " << seed;
    }
  }
}

TEST(RegexSet, CutCountsAgreeWithinTheHorizon) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    RegexSet regexes;
    RandomRegex random(regexes, seed);
    const Sample sample = random.draw(4);
    for (uint32_t horizon = 1; horizon <= 4; ++horizon) {
      const RegexId cut = regexes.cut_counts(sample.regex, horizon);
      for (const std::string& text : random.texts()) {
        if (text.size() > horizon) continue;
        ASSERT_EQ(regexes.matches(cut, text), regexes.matches(sample.regex, text))
            << "seed " << seed << ", horizon " << horizon << ", text " << text;
      }
    }
  }
}

TEST(RegexSet, CutCountsMakesFarCountsEqual) {
  RegexSet regexes;
  const RegexId letter = regexes.byte('a');
  const RegexId quote = regexes.byte('"');
  const auto limited = [&](uint32_t max) {
    return regexes.cut_counts(regexes.concat(regexes.repeat(letter, 0, max), quote), 8);
  };
  EXPECT_EQ(limited(1000), limited(900));
  EXPECT_EQ(limited(1000), regexes.concat(regexes.star(letter), quote));
  EXPECT_NE(limited(7), limited(8));
}

// A text lives in the cut expression as long as in the whole one: as long as the horizon is.
TEST(RegexSet, CutLengthsLeaveTheSameBeginningsAlive) {
  RegexSet regexes;
  const RegexId a = regexes.byte('a');
  const RegexId b = regexes.byte('b');
  const RegexId letter = regexes.alternation(a, b);
  const std::array texts = {regexes.star(letter),
                            regexes.concat(regexes.star(a), regexes.literal("bbbb")),
                            regexes.plus(regexes.concat(regexes.star(a), regexes.repeat(b, 2, 3))),
                            regexes.repeat(regexes.alternation(a, regexes.literal("bab")), 0, 9),
                            regexes.concat(a, regexes.repeat(letter, 3, 5))};
  constexpr uint32_t kHorizon = 4;
  for (const RegexId text : texts) {
    for (uint32_t min = 0; min <= 1; ++min) {
      for (uint32_t max = 1; max <= 14; ++max) {
        const RegexId whole = regexes.with_length(text, letter, min, max);
        const RegexId cut = regexes.cut_counts(whole, kHorizon);
        for (uint32_t word = 0; word < 1U << (kHorizon + 1); ++word) {  // behind its highest bit
          RegexId in_whole = whole;
          RegexId in_cut = cut;
          for (uint32_t length = 0; word >> (length + 1) != 0; ++length) {
            const uint8_t byte = (word >> length & 1) != 0 ? 'a' : 'b';
            in_whole = regexes.derivative(in_whole, byte);
            in_cut = regexes.derivative(in_cut, byte);
          }
          ASSERT_EQ(regexes.is_nothing(in_whole), regexes.is_nothing(in_cut)) << max << ' ' << word;
          ASSERT_EQ(regexes.is_nullable(in_whole), regexes.is_nullable(in_cut))
              << max << ' ' << word;
        }
      }
    }
  }
  const auto cut = [&](uint32_t max) {
    return regexes.cut_counts(regexes.with_length(texts[1], letter, 0, max), kHorizon);
  };
  EXPECT_EQ(cut(1000), texts[1]);
  EXPECT_NE(cut(5), texts[1]);
}

TEST(RegexSet, LengthsThatSayNothingMoreAreLeftOut) {
  RegexSet regexes;
  const RegexId letter = regexes.alternation(regexes.byte('a'), regexes.byte('b'));
  const RegexId text = regexes.concat(regexes.star(letter), regexes.literal("ab"));
  EXPECT_EQ(regexes.with_length(text, letter, 0, kUnbounded), text);
  const RegexId at_least = regexes.with_length(text, letter, 2, kUnbounded);
  EXPECT_NE(regexes.derivative(at_least, 'a'), regexes.derivative(text, 'a'));
  EXPECT_EQ(regexes.derivative(regexes.derivative(at_least, 'a'), 'a'),
            regexes.derivative(regexes.derivative(text, 'a'), 'a'));
  // An intersection of one is that one, whose length can be cut.
  const RegexId limited = regexes.with_length(text, letter, 0, 1000);
  EXPECT_EQ(regexes.intersection(std::array{limited}), limited);
}

TEST(RegexSet, CountsAreNotUnrolled) {
  RegexSet regexes;
  const RegexId thousand = regexes.repeat(regexes.byte('a'), 1000, 1000);
  const RegexId million = regexes.repeat(thousand, 1000, 1000);
  EXPECT_LT(regexes.num_nodes(), 10U);
  EXPECT_FALSE(regexes.matches(million, std::string(2'000, 'a')));
  EXPECT_FALSE(regexes.is_nothing(regexes.repeat(regexes.byte('b'), 0, 1'000'000'000)));
}

TEST(RegexSet, KnowsMultiples) {
  RegexSet regexes;
  for (const auto& [divisor, scale] : {std::pair{7U, 0U}, {25U, 2U}, {1U, 2U}, {15U, 1U}}) {
    const RegexId multiple = regexes.multiple_of(divisor, scale);
    for (int hundredths = 0; hundredths < 3000; ++hundredths) {
      const std::string text = fmt::format("{}.{:02}", hundredths / 100, hundredths % 100);
      uint64_t factor = 1;
      for (uint32_t i = 0; i < scale; ++i) factor *= 10;
      const bool expected = static_cast<uint64_t>(hundredths) * factor % (divisor * 100) == 0;
      ASSERT_EQ(regexes.matches(multiple, text), expected)
          << divisor << " " << scale << " " << text;
      ASSERT_EQ(regexes.matches(multiple, "-" + text + "0"), expected) << text;
    }
  }
}

TEST(RegexSet, FindsEmptyIntersections) {
  RegexSet regexes;
  const RegexId a = regexes.byte('a');
  const RegexId even = regexes.star(regexes.repeat(a, 2, 2));
  const RegexId odd = regexes.concat(a, even);
  EXPECT_TRUE(regexes.is_nothing(regexes.intersection(even, odd)));
  EXPECT_FALSE(regexes.overlap(even, odd));
  EXPECT_TRUE(regexes.contains(regexes.star(a), odd));
  EXPECT_FALSE(regexes.contains(odd, regexes.star(a)));
  EXPECT_TRUE(regexes.is_nothing(
      regexes.intersection(regexes.repeat(a, 0, 5), regexes.repeat(a, 10, kUnbounded))));
}

TEST(RegexSet, OptionalPartsInARowAreBounded) {
  RegexSet regexes;
  const auto row = [&](size_t length) {
    RegexId tail = RegexSet::kEmpty;
    for (size_t i = 0; i < length; ++i) {
      tail = regexes.concat(regexes.optional(regexes.byte(i % 2 == 0 ? 'a' : 'b')), tail);
    }
    return tail;
  };
  EXPECT_TRUE(regexes.matches(row(900), "abba"));
  expect_error(ErrorCode::exhausted, {"more than 1000 optional parts in a row"},
               [&] { regexes.matches(row(20'000), "abba"); });
}

TEST(RegexSet, LimitsAreNamed) {
  RegexSet regexes({.max_nodes = 100});
  try {
    for (uint32_t i = 2; i < 200; ++i) regexes.repeat(regexes.byte('a'), i, i);
    FAIL() << "expected Error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::exhausted);
    EXPECT_EQ(error.what(), std::string("the constraint is too complex: more than 100 nodes of "
                                        "regular expressions"));
  }
}

}  // namespace
}  // namespace paceline
