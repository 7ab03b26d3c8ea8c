// A child that answers, ends before it is asked, or says nothing.
#include "backends/child_process.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <string>
#include <thread>

#include "tests/expect_error.h"

namespace paceline {
namespace {

using std::chrono::milliseconds;
constexpr milliseconds kLong{60000};

// The next line.
std::string read_line(ChildProcess& child) {
  while (true) {
    if (auto line = child.poll_line(kLong)) return *line;
  }
}

TEST(ChildProcess, LinesGoThereAndBack) {
  ChildProcess child("cat", {"cat"});
  const std::string long_line(300'000, 'x');
  for (const std::string& line : {std::string("one"), std::string(), long_line}) {
    child.post_line(line);  // more than the pipes between them hold
    EXPECT_EQ(read_line(child), line);
  }
}

TEST(ChildProcess, OneThatHasEndedIsAnErrorAndNoSignal) {
  struct sigaction usual {
  }, before{};
  usual.sa_handler = SIG_DFL;
  sigaction(SIGPIPE, &usual, &before);
  ChildProcess child("child", {"sh", "-c", "echo the last words >&2; exec <&-; exit 3"});
  std::this_thread::sleep_for(milliseconds(300));
  const std::string large(1 << 20, 'x');  // more than a socket takes
  expect_error(ErrorCode::internal, {"child", "exit code 3", "the last words"}, [&] {
    child.post_line(large);
    read_line(child);
  });
  sigaction(SIGPIPE, &before, nullptr);
}

TEST(ChildProcess, AnAnswerMayBeItsLastWords) {
  ChildProcess child("child", {"sh", "-c", "echo one; echo two"});
  std::this_thread::sleep_for(milliseconds(200));
  EXPECT_EQ(read_line(child), "one");
  EXPECT_EQ(read_line(child), "two");
  expect_error(ErrorCode::internal, {"exit code 0"}, [&] { read_line(child); });
}

TEST(ChildProcess, WaitsNoLongerThanItMay) {
  ChildProcess child("child", {"sleep", "1000"});
  EXPECT_EQ(child.poll_line(milliseconds(20)), std::nullopt);
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe(pipe.data()), 0);
  ASSERT_EQ(::write(pipe[1], "x", 1), 1);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(child.poll_line(kLong, pipe[0]), std::nullopt);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, kLong / 2);
  for (const int end : pipe) ::close(end);
}

// Else the reader would never come back.
TEST(ChildProcess, OneThatNeverStopsToComplainIsRead) {
  ChildProcess child("child", {"sh", "-c", "echo one; yes >&2; true"});
  EXPECT_EQ(read_line(child), "one");
  EXPECT_EQ(child.poll_line(milliseconds(20)), std::nullopt);
}

TEST(ChildProcess, ItsEndTakesWhatItHasStartedWithIt) {
  pid_t grandchild = 0;
  {
    ChildProcess child("child", {"sh", "-c", "sleep 1000 & echo $!; wait"});
    grandchild = static_cast<pid_t>(std::stol(read_line(child)));
    EXPECT_EQ(kill(grandchild, 0), 0);
  }
  bool is_gone = false;  // or waits for whoever adopts it to look
  for (int i = 0; i < 200 && !is_gone; ++i) {
    is_gone = kill(grandchild, 0) != 0 ||
              access(("/proc/" + std::to_string(grandchild) + "/exe").c_str(), F_OK) != 0;
    if (!is_gone) std::this_thread::sleep_for(milliseconds(20));
  }
  EXPECT_TRUE(is_gone);
}

TEST(ChildProcess, AProgramThatIsNotThereIsNamed) {
  expect_error(ErrorCode::not_found, {"child", "/nowhere/at/all"},
               [] { ChildProcess("child", {"/nowhere/at/all"}); });
}

}  // namespace
}  // namespace paceline
