#include "engine/stop_matcher.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.h"
#include "tests/test_scale.h"

namespace paceline {
namespace {

// The earliest end of any stop string in `text`, and the longest string that ends there.
std::optional<StopMatch> naive_match(std::string_view text, const std::vector<std::string>& stops) {
  for (size_t end = 1; end <= text.size(); ++end) {
    std::optional<StopMatch> best;
    size_t longest = 0;
    for (size_t i = 0; i < stops.size(); ++i) {
      const std::string& stop = stops[i];
      if (stop.size() > end || stop.size() <= longest) continue;
      if (text.substr(end - stop.size(), stop.size()) != stop) continue;
      longest = stop.size();
      best = StopMatch{.string_index = static_cast<int32_t>(i),
                       .begin = static_cast<int64_t>(end - stop.size())};
    }
    if (best) return best;
  }
  return std::nullopt;
}

// Bytes at the end of `text` that could begin a stop string.
size_t naive_held(std::string_view text, const std::vector<std::string>& stops) {
  size_t held = 0;
  for (const std::string& stop : stops) {
    for (size_t length = 1; length < stop.size() && length <= text.size(); ++length) {
      if (text.substr(text.size() - length) == stop.substr(0, length)) {
        held = std::max(held, length);
      }
    }
  }
  return held;
}

TEST(StopMatcher, AgreesWithANaiveSearchOnRandomStreams) {
  uint64_t counter = 0;
  const auto draw = [&](uint64_t limit) {
    return static_cast<size_t>(uniform_draw(5, counter++) * static_cast<double>(limit));
  };
  const int num_rounds = scaled(3000, 300'000);
  for (int round = 0; round < num_rounds; ++round) {
    std::vector<std::string> stops(1 + draw(4));
    for (std::string& stop : stops) {
      stop.resize(1 + draw(5));
      for (char& c : stop) c = static_cast<char>('a' + draw(2));
    }
    const StopAutomaton automaton(stops);
    StopMatcher matcher(automaton);
    std::string text;
    for (int piece = 0; piece < 12; ++piece) {
      std::string bytes(draw(4), ' ');
      for (char& c : bytes) c = static_cast<char>('a' + draw(3));
      const auto found = matcher.push(bytes);
      text += bytes;
      const auto expected = naive_match(text, stops);
      ASSERT_EQ(found.has_value(), expected.has_value()) << text;
      if (found) {
        EXPECT_EQ(found->begin, expected->begin);
        EXPECT_EQ(stops[static_cast<size_t>(found->string_index)],
                  stops[static_cast<size_t>(expected->string_index)]);
        break;
      }
      ASSERT_EQ(matcher.releasable_bytes(),
                static_cast<int64_t>(text.size() - naive_held(text, stops)));
    }
  }
}

TEST(StopMatcher, WithoutStringsEverythingIsReleased) {
  const StopAutomaton none({});
  StopMatcher matcher(none);
  EXPECT_FALSE(matcher.push("any bytes \xff").has_value());
  EXPECT_EQ(matcher.releasable_bytes(), 11);
}

}  // namespace
}  // namespace paceline
