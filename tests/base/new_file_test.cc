#include "base/new_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <thread>

#include "base/mapped_file.h"
#include "tests/expect_error.h"
#include "tests/test_directory.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

class NewFileTest : public testing::Test {
 protected:
  size_t num_entries() const {
    return static_cast<size_t>(
        std::distance(fs::directory_iterator(parent_), fs::directory_iterator()));
  }
  std::string text() const { return read_text_file(path_, 1 << 20); }

  TestDirectory temporary_;
  fs::path parent_ = temporary_.path();
  fs::path path_ = parent_ / "out";
};

TEST_F(NewFileTest, StandsUnderItsNameOnceItIsCommitted) {
  NewFile file(path_);
  file.reserve(100);
  file.append(std::string_view("text"));
  EXPECT_FALSE(fs::exists(path_));
  file.commit();
  EXPECT_EQ(text(), "text");
  EXPECT_EQ(num_entries(), 1u);
}

TEST_F(NewFileTest, LeavesNothingWithoutACommit) {
  {
    NewFile file(path_);
    file.append(std::string(3 << 20, 'x'));
    EXPECT_FALSE(fs::exists(path_));
  }
  EXPECT_EQ(num_entries(), 0u);
}

// Another process may take the name between the last check and the commit.
TEST_F(NewFileTest, ANameThatWasTakenMeanwhileIsLeftAlone) {
  {
    NewFile file(path_);
    std::ofstream(path_) << "other";
    expect_error(ErrorCode::invalid, {"out: exists already"}, [&] { file.commit(); });
  }
  EXPECT_EQ(text(), "other");
  EXPECT_EQ(num_entries(), 1u);
}

TEST_F(NewFileTest, ReplacesOnlyWhereThatIsAskedFor) {
  std::ofstream(path_) << "old";
  expect_error(ErrorCode::invalid, {"out: exists already"}, [&] { NewFile file(path_); });
  NewFile file(path_, NewFile::Existing::replace);
  file.append(std::string_view("new"));
  EXPECT_EQ(text(), "old");
  file.commit();
  EXPECT_EQ(text(), "new");
  EXPECT_EQ(num_entries(), 1u);
}

TEST_F(NewFileTest, MayBeWrittenBySeveralAtOnce) {
  std::vector<std::thread> writers;
  for (int i = 0; i < 4; ++i) {
    writers.emplace_back([&, i] {
      NewFile file(path_, NewFile::Existing::replace);
      for (int n = 0; n < 100; ++n) file.append(std::string(1000, static_cast<char>('a' + i)));
      file.commit();
    });
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(text(), std::string(100'000, text()[0]));
  EXPECT_EQ(num_entries(), 1u);
}

TEST_F(NewFileTest, AProcessThatEndsMeanwhileLeavesNothing) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    NewFile file(path_);
    file.append(std::string(3 << 20, 'x'));
    ::_exit(0);
  }
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  const int nameless = ::open(parent_.c_str(), O_WRONLY | O_TMPFILE, 0600);
  if (nameless < 0) GTEST_SKIP() << "this file system has no files without a name";
  ::close(nameless);
  EXPECT_EQ(num_entries(), 0u);
}

TEST_F(NewFileTest, AFileLargerThanAllowedIsRefusedBeforeItIsWritten) {
  struct rlimit before {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  struct rlimit small = before;
  small.rlim_cur = 1000;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  {
    NewFile file(path_);
    expect_error(ErrorCode::exhausted, {"out: 1001 bytes", "(1000, ulimit -f)"},
                 [&] { file.reserve(1001); });
    file.reserve(1000);
  }
  ::setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_EQ(num_entries(), 0u);
}

TEST_F(NewFileTest, MoreThanADiskHoldsIsRefused) {
  NewFile file(path_);
  try {
    file.reserve(uint64_t{1} << 60);
    GTEST_SKIP() << "this file system promises no room";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::exhausted);
    EXPECT_THAT(error.what(), testing::HasSubstr("out: no room for"));
  }
}

}  // namespace
}  // namespace paceline
