#include "base/new_directory.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <latch>
#include <thread>

#include "tests/expect_error.h"
#include "tests/test_directory.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

class NewDirectoryTest : public testing::Test {
 protected:
  size_t num_entries() const {
    return static_cast<size_t>(
        std::distance(fs::directory_iterator(parent_), fs::directory_iterator()));
  }

  TestDirectory temporary_;
  fs::path parent_ = temporary_.path();
};

TEST_F(NewDirectoryTest, StandsUnderItsNameOnceItIsCommitted) {
  for (const char* name : {"out", "with_slash/"}) {
    NewDirectory directory(parent_ / name);
    std::ofstream(directory.filling_path() / "file") << "text";
    EXPECT_FALSE(fs::exists(parent_ / name));
    directory.commit();
    EXPECT_TRUE(fs::exists(parent_ / name / "file"));
  }
  EXPECT_EQ(num_entries(), 2u);
}

TEST_F(NewDirectoryTest, LeavesNothingWithoutACommit) {
  {
    const NewDirectory directory(parent_ / "out");
    std::ofstream(directory.filling_path() / "file") << "text";
    EXPECT_EQ(num_entries(), 1u);
  }
  EXPECT_EQ(num_entries(), 0u);
}

TEST_F(NewDirectoryTest, AProcessThatEndsEarlyLeavesNothing) {
  NewDirectory whole(parent_ / "whole");
  whole.commit();
  NewDirectory begun(parent_ / "begun");
  std::ofstream(begun.filling_path() / "file") << "text";
  const fs::path other = parent_ / "other";
  TemporaryDirectory temporary([&] {
    fs::create_directory(other);
    return other;
  });
  EXPECT_EQ(num_entries(), 3u);
  const auto lock = remove_temporary_directories();
  EXPECT_EQ(num_entries(), 1u);
  EXPECT_TRUE(fs::exists(parent_ / "whole"));
}

TEST_F(NewDirectoryTest, StandsWholeOrNotAtAllWhenTheProcessEndsDuringACommit) {
  constexpr int kFiles = 400, kRuns = 20;
  for (int run = 0; run < kRuns; ++run) {
    const fs::path out = parent_ / std::to_string(run);
    NewDirectory directory(out);
    for (int i = 0; i < kFiles; ++i) {
      std::ofstream(directory.filling_path() / std::to_string(i)) << "text";
    }
    std::latch start(2);
    std::jthread ending([&] {
      start.arrive_and_wait();
      const auto lock = remove_temporary_directories();
    });
    start.arrive_and_wait();
    std::this_thread::sleep_for(std::chrono::microseconds(50 * run));
    try {
      directory.commit();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::cancelled) << error.what();
    }
    ending.join();
    const auto files = fs::exists(out) ? std::distance(fs::directory_iterator(out), {}) : 0;
    EXPECT_TRUE(files == 0 || files == kFiles) << files;
  }
}

TEST_F(NewDirectoryTest, NoneIsMadeWhileTheProcessEnds) {
  std::atomic<bool> is_made = false;
  std::jthread late;
  {
    const auto lock = remove_temporary_directories();
    late = std::jthread([&] {
      const NewDirectory directory(parent_ / "out");
      is_made = true;
    });
    for (int i = 0; i < 20; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      ASSERT_EQ(num_entries(), 0u);
    }
  }
  late.join();
  EXPECT_TRUE(is_made);
}

TEST_F(NewDirectoryTest, CannotBeCommittedOnceRemoved) {
  NewDirectory directory(parent_ / "out");
  { const auto lock = remove_temporary_directories(); }
  expect_error(ErrorCode::cancelled, {"out: interrupted; not written"},
               [&] { directory.commit(); });
  EXPECT_EQ(num_entries(), 0u);
}

TEST_F(NewDirectoryTest, ReplacesNothing) {
  fs::create_directory(parent_ / "empty");
  expect_error(ErrorCode::invalid, {"empty: exists already"},
               [&] { NewDirectory directory(parent_ / "empty"); });
  expect_error(ErrorCode::invalid, {"no/out: can't be made: No such file"},
               [&] { NewDirectory directory(parent_ / "no/out"); });
  NewDirectory late(parent_ / "late");
  fs::create_directory(parent_ / "late");
  expect_error(ErrorCode::invalid, {"late: exists already"}, [&] { late.commit(); });
}

}  // namespace
}  // namespace paceline
