#include "base/file_stamp.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "base/mapped_file.h"
#include "tests/test_directory.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

class FileStampTest : public testing::Test {
 protected:
  void SetUp() override { write("0123456789"); }
  void write(const std::string& text) { std::ofstream(path_, std::ios::binary) << text; }

  TestDirectory temporary_;
  fs::path path_ = temporary_.path() / "file";
};

TEST_F(FileStampTest, IsTheSameForAsLongAsNobodyWrites) {
  const MappedFile mapped(path_);
  EXPECT_EQ(mapped.stamp().size_bytes, 10u);
  EXPECT_EQ(file_stamp(path_), mapped.stamp());
  EXPECT_EQ(MappedFile(path_).stamp(), mapped.stamp());
  EXPECT_FALSE(file_stamp(path_ / "nothing"));
}

TEST_F(FileStampTest, IsAnotherAfterAWriteEvenIfTheOldTimeIsPutBack) {
  const FileStamp before = *file_stamp(path_);
  const auto time = fs::last_write_time(path_);
  ::usleep(20'000);  // more than a tick of the clock that files are stamped with
  write("abcdefghij");
  fs::last_write_time(path_, time);
  const FileStamp after = *file_stamp(path_);
  EXPECT_EQ(after.size_bytes, before.size_bytes);
  EXPECT_EQ(after.modified_ns, before.modified_ns);
  EXPECT_NE(after, before);
}

TEST_F(FileStampTest, IsAnotherForAFileThatTookTheName) {
  const FileStamp before = *file_stamp(path_);
  const fs::path other = path_.string() + ".other";
  std::ofstream(other) << "9876543210";
  fs::rename(other, path_);
  EXPECT_NE(file_stamp(path_)->inode, before.inode);
}

}  // namespace
}  // namespace paceline
