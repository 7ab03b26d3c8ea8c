#include "cli/terminal_keys.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <string>
#include <string_view>

namespace paceline {
namespace {

class TerminalKeysTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(pipe(input_.data()), 0);
    ASSERT_EQ(pipe(wake_.data()), 0);
  }
  void TearDown() override {
    for (const int end : {input_[0], input_[1], wake_[0], wake_[1]}) close(end);
  }

  void send(std::string_view bytes) const {
    ASSERT_EQ(write(input_[1], bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  }
  // The keys up to the end of the input, when the wake end is readable.
  std::wstring keys_of(std::string_view bytes) {
    send(bytes);
    TerminalKeys keys(input_[0], wake_[0]);
    std::wstring all;
    for (size_t i = 0; i < bytes.size(); ++i) {
      const auto key = keys.next();
      if (!key) break;
      all.push_back(*key);
      if (all.back() == L'~') break;  // each test ends in one
    }
    return all;
  }

  std::array<int, 2> input_{};
  std::array<int, 2> wake_{};
};

TEST_F(TerminalKeysTest, CharactersOfAllLengthsComeWhole) {
  EXPECT_EQ(keys_of("a\xC3\xA9\xE4\xBD\xA0\xF0\x9F\x98\x80~"), L"aé你😀~");
}

TEST_F(TerminalKeysTest, IllFormedBytesBecomeAReplacementAndLoseNothingElse) {
  EXPECT_EQ(keys_of("\xC3x\xFFy\xE4\xBDz~"), L"\uFFFDx\uFFFDy\uFFFDz~");
}

TEST_F(TerminalKeysTest, AnEscapeSequenceThatIsNoMarkIsPassedOn) {
  EXPECT_EQ(keys_of("\x1b[A\x1b[20~"), L"\x1b[A\x1b[20~");
}

TEST_F(TerminalKeysTest, NewlinesOfAPasteAreShownAndThoseAtItsEndDropped) {
  EXPECT_EQ(keys_of("x\x1b[200~one\r\ntwo\n\nthree\tfour\x01\r\x1b[201~\r~"),
            L"xone\u21B5two\u21B5\u21B5three\tfour\r~");
}

TEST_F(TerminalKeysTest, AnEscapeInsideAPasteIsLeftOut) {
  EXPECT_EQ(keys_of("\x1b[200~a\x1b[31mb\x1b[201~~"), L"a[31mb~");
}

TEST_F(TerminalKeysTest, WakingEndsTheWaitAndTheInputGoesOnLater) {
  TerminalKeys keys(input_[0], wake_[0]);
  ASSERT_EQ(write(wake_[1], "!", 1), 1);
  EXPECT_FALSE(keys.next().has_value());
  char taken = 0;
  ASSERT_EQ(::read(wake_[0], &taken, 1), 1);
  send("q");
  EXPECT_EQ(keys.next(), L'q');
}

TEST_F(TerminalKeysTest, TheEndOfTheInputIsNoKey) {
  TerminalKeys keys(input_[0], wake_[0]);
  close(input_[1]);
  input_[1] = dup(input_[0]);
  EXPECT_FALSE(keys.next().has_value());
}

}  // namespace
}  // namespace paceline
