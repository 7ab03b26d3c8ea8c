#include "base/base64.h"

#include <gtest/gtest.h>

namespace paceline {
namespace {

TEST(Base64, IsReadAsItIsWritten) {
  for (const char* text : {"", "a", "ab", "abc", "abcd", "\xff\xfe\x01"}) {
    const std::string bytes = text;
    EXPECT_EQ(bytes_of_base64(base64_of_bytes(bytes)), bytes);
  }
  EXPECT_EQ(base64_of_bytes("ab"), "YWI=");
  for (const char* wrong : {"Y", "YW", "YWI", "Y===", "YW=I", "YW I", "=YWI", "YWI=YWI="}) {
    EXPECT_FALSE(bytes_of_base64(wrong)) << wrong;
  }
}

}  // namespace
}  // namespace paceline
