#include "protocol/seal.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "base/random.h"
#include "paceline/error.h"
#include "tests/expect_error.h"
#include "tests/test_directory.h"

namespace paceline {
namespace {

constexpr SealScope kScope = {.purpose = "reasoning", .owner = "ann"};

TEST(Seal, OpensWhatItClosed) {
  const Seal seal = Seal::random();
  for (size_t size : {0, 1, 2, 3, 15, 16, 17, 1000, 100'000}) {
    std::string text(size, '\0');
    for (size_t i = 0; i < size; ++i) text[i] = static_cast<char>(philox4x32(size, i)[0]);
    const std::string sealed = seal.close(text, kScope);
    EXPECT_EQ(seal.open(sealed, kScope), text);
    EXPECT_EQ(seal.close(text, kScope), sealed);
    EXPECT_EQ(sealed.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                       "0123456789-_"),
              std::string::npos);
    EXPECT_LE(sealed.size(), 5 + (size + 48) * 4 / 3 + 1);
  }
}

TEST(Seal, HidesTheText) {
  const Seal seal = Seal::random();
  std::set<std::string> values;
  for (const char* text : {"", "a", "b", "aa"}) {
    for (const char* owner : {"ann", "bob"}) {
      values.insert(seal.close(text, {.purpose = "reasoning", .owner = owner}));
    }
  }
  EXPECT_EQ(values.size(), 8);
}

TEST(Seal, OpensNothingForeign) {
  const Seal seal = Seal::random();
  const std::string sealed = seal.close("a thought", kScope);
  EXPECT_FALSE(Seal::random().open(sealed, kScope));
  EXPECT_FALSE(seal.open(sealed, {.purpose = "reasoning", .owner = "bob"}));
  EXPECT_FALSE(seal.open(sealed, {.purpose = "compaction", .owner = "ann"}));
  EXPECT_FALSE(seal.open(sealed, {.purpose = "reasonin", .owner = "gann"}));
  for (const char* foreign : {"", "pls1_", "pls1", "pls1_AAAA", "gAAAAABo", "pls1_=", "pls1_+/"}) {
    EXPECT_FALSE(seal.open(foreign, kScope)) << foreign;
  }
}

TEST(Seal, OpensNothingAltered) {
  const Seal seal = Seal::random();
  const std::string sealed = seal.close("thoughts of it", kScope);
  for (size_t i = 0; i < sealed.size(); ++i) {
    for (const char other : {'A', 'q', '-', '\0'}) {
      std::string altered = sealed;
      altered[i] = other;
      if (other == sealed[i]) continue;
      EXPECT_FALSE(seal.open(altered, kScope)) << i;
    }
    EXPECT_FALSE(seal.open(sealed.substr(0, i), kScope)) << i;
    EXPECT_FALSE(seal.open(sealed + sealed.substr(5, i + 1), kScope)) << i;
  }
}

TEST(Seal, KeyOfAFileIsRead) {
  const TestDirectory directory;
  const auto file = directory.path() / "key";
  const auto write = [&](const std::string& text) { std::ofstream(file) << text; };
  write(std::string(64, '7') + "\n");
  Seal::Key key;
  key.fill(0x77);
  EXPECT_EQ(Seal::from_file(file).open(Seal(key).close("x", kScope), kScope), "x");
  for (const std::string& wrong : {std::string(), std::string(63, '7'), std::string(66, '7'),
                                   std::string(64, 'g'), std::string(62, '7') + "\n7"}) {
    write(wrong);
    expect_error(ErrorCode::invalid, {"expected a key of 64 hexadecimal digits"},
                 [&] { Seal::from_file(file); });
  }
  expect_error(ErrorCode::not_found, {"no_such"},
               [&] { Seal::from_file(directory.path() / "no_such"); });
}

}  // namespace
}  // namespace paceline
