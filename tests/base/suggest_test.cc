#include "base/suggest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

namespace paceline {
namespace {

constexpr std::array<std::string_view, 5> kNames = {"max_tokens", "temperature", "top_p", "top_k",
                                                    "stop"};

TEST(EditDistance, CountsEdits) {
  EXPECT_EQ(edit_distance("", ""), 0u);
  EXPECT_EQ(edit_distance("", "abc"), 3u);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
  EXPECT_EQ(edit_distance("flaw", "lawn"), 2u);
}

TEST(EditDistance, SwappedNeighboursAreOneEdit) {
  EXPECT_EQ(edit_distance("temprature", "temperature"), 1u);
  EXPECT_EQ(edit_distance("tmeperature", "temperature"), 1u);
  EXPECT_EQ(edit_distance("ab", "ba"), 1u);
}

TEST(EditDistance, CaseAndDashesCostNothing) {
  EXPECT_EQ(edit_distance("Max-Tokens", "max_tokens"), 0u);
}

TEST(ClosestName, FindsWhatWasMeant) {
  EXPECT_EQ(closest_name("max_tokns", kNames), "max_tokens");
  EXPECT_EQ(closest_name("temprature", kNames), "temperature");
  EXPECT_EQ(closest_name("top_q", kNames), "top_p");  // the first of equals
  EXPECT_EQ(closest_name("stops", kNames), "stop");
}

TEST(ClosestName, TakesAnAbbreviation) {
  EXPECT_EQ(closest_name("temp", kNames), "temperature");
  EXPECT_EQ(closest_name("max", kNames), "max_tokens");
}

TEST(ClosestName, TakesAnAbbreviationOfOneNameOnly) {
  constexpr std::array<std::string_view, 2> kTwo = {"batch_size", "batch_timeout"};
  EXPECT_EQ(closest_name("batch", kTwo), std::nullopt);
  EXPECT_EQ(closest_name("batch_s", kTwo), "batch_size");
}

TEST(ClosestName, FindsTheSameWords) {
  constexpr std::array<std::string_view, 3> kFlags = {"--max-tokens", "--model", "--top-p"};
  EXPECT_EQ(closest_name("--tokens-max", kFlags), "--max-tokens");
  EXPECT_EQ(closest_name("--model-path", kFlags), "--model");
  EXPECT_EQ(closest_name("--path", kFlags), std::nullopt);
}

TEST(ClosestName, LooksAtTheLettersBehindTheDashes) {
  constexpr std::array<std::string_view, 2> kFlags = {"--max-loras", "--jsonl"};
  EXPECT_EQ(closest_name("--max-tokens", kFlags), std::nullopt);
  EXPECT_EQ(closest_name("--json", kFlags), "--jsonl");
  EXPECT_EQ(closest_name("--", kFlags), std::nullopt);
}

TEST(ClosestName, SaysNothingWhenNothingIsNear) {
  EXPECT_EQ(closest_name("banana", kNames), std::nullopt);
  EXPECT_EQ(closest_name("x", kNames), std::nullopt);
  EXPECT_EQ(closest_name("", kNames), std::nullopt);
  EXPECT_EQ(closest_name(std::string(1000, 't'), kNames), std::nullopt);
}

TEST(DidYouMean, EndsAMessage) {
  EXPECT_EQ(did_you_mean("stpo", kNames), "; did you mean stop?");
  EXPECT_EQ(did_you_mean("banana", kNames), "");
}

}  // namespace
}  // namespace paceline
