#include "base/error.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace paceline {
namespace {

TEST(Error, CarriesCodeAndMessage) {
  try {
    throw Error(ErrorCode::corrupt, "shard.bin: 3 bytes, expected 8");
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "shard.bin: 3 bytes, expected 8");
    EXPECT_EQ(dynamic_cast<const Error&>(error).code(), ErrorCode::corrupt);
  }
}

TEST(Error, EveryCodeHasANameOfItsOwn) {
  std::set<std::string_view> names;
  for (int code = 0; code <= static_cast<int>(ErrorCode::internal); ++code) {
    names.insert(error_code_name(static_cast<ErrorCode>(code)));
  }
  EXPECT_EQ(names.size(), 8u);
  EXPECT_EQ(error_code_name(ErrorCode::not_found), "not_found");
}

TEST(CheckDeathTest, SaysWhereAndWhyAndAborts) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const int two = 2;
  PL_CHECK(two == 2, "never read");
  EXPECT_DEATH(PL_CHECK(two == 3, "two is " + std::to_string(two)),
               "error_test\\.cc:[0-9]+: check failed: two == 3: two is 2");
}

// A message costs nothing while the check holds.
TEST(Check, EvaluatesTheMessageOnlyOnFailure) {
  int evaluations = 0;
  const auto message = [&] {
    ++evaluations;
    return std::string("unused");
  };
  PL_CHECK(evaluations == 0, message());
  EXPECT_EQ(evaluations, 0);
}

}  // namespace
}  // namespace paceline
