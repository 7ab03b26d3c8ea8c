#include "base/line_writer.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <thread>

namespace paceline {
namespace {

using Clock = std::chrono::steady_clock;

class LineWriterTest : public testing::Test {
 protected:
  LineWriterTest() {
    std::signal(SIGPIPE, SIG_IGN);
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe(ends.data()), 0);
    reader_ = ends[0];
    writer_ = ends[1];
  }
  ~LineWriterTest() override {
    ::close(reader_);
    ::close(writer_);
  }

  // Reads until `size` bytes have come or the pipe stays empty.
  std::string read_some(size_t size) {
    ::fcntl(reader_, F_SETFL, O_NONBLOCK);
    std::string text;
    const auto end = Clock::now() + std::chrono::seconds(10);
    while (text.size() < size && Clock::now() < end) {
      std::array<char, 4096> buffer{};
      const ssize_t got = ::read(reader_, buffer.data(), buffer.size());
      if (got > 0) text.append(buffer.data(), static_cast<size_t>(got));
      if (got <= 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return text;
  }

  int reader_ = -1;
  int writer_ = -1;
};

TEST_F(LineWriterTest, WritesLinesInOrder) {
  LineWriter log(writer_);
  log.write("one");
  log.write("two");
  EXPECT_EQ(read_some(8), "one\ntwo\n");
  EXPECT_EQ(log.num_dropped(), 0);
}

TEST_F(LineWriterTest, NeverBlocksAndCountsWhatItDrops) {
  const std::string line(99, 'x');
  const auto begin = Clock::now();
  {
    LineWriter log(writer_, 10'000);
    for (int i = 0; i < 5000; ++i) {
      log.write(line);
      if (i % 500 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_LT(Clock::now() - begin, std::chrono::seconds(5));
    const int64_t num_dropped = log.num_dropped();
    EXPECT_GT(num_dropped, 1000);
    // Once the reader is back, it gets the number of dropped lines.
    const size_t num_written = 5000 - static_cast<size_t>(num_dropped);
    EXPECT_THAT(read_some(100 * num_written + 40),
                testing::HasSubstr("lines of the log were dropped"));
  }
}

TEST_F(LineWriterTest, EndsThoughNobodyReads) {
  const auto begin = Clock::now();
  {
    LineWriter log(writer_);
    for (int i = 0; i < 5000; ++i) log.write(std::string(99, 'x'));
  }
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(5));
}

TEST_F(LineWriterTest, EndsThoughTheReaderHasGone) {
  ::close(std::exchange(reader_, -1));
  LineWriter log(writer_);
  for (int i = 0; i < 100; ++i) log.write("lost");
}

}  // namespace
}  // namespace paceline
