#include "base/mapped_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstring>
#include <fstream>
#include <string>
#include <utility>

#include "base/error.h"
#include "tests/expect_error.h"
#include "tests/test_directory.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

class MappedFileTest : public testing::Test {
 protected:
  fs::path write(const std::string& name, const std::string& content) const {
    fs::path path = directory_ / name;
    std::ofstream(path, std::ios::binary) << content;
    return path;
  }

  TestDirectory temporary_;
  fs::path directory_ = temporary_.path();
};

std::string content_of(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

template <class Body>
void expect_path_error(ErrorCode code, const fs::path& path, Body&& body) {
  expect_error(code, {path.string()}, body);
}

TEST_F(MappedFileTest, MapsTheContent) {
  const std::string content("a\0b\xFF", 4);
  const MappedFile file(write("x", content));
  EXPECT_EQ(content_of(file), content);
  EXPECT_EQ(file.path(), directory_ / "x");
}

TEST_F(MappedFileTest, AnEmptyFileIsAnEmptySpan) {
  const MappedFile file(write("empty", ""));
  EXPECT_TRUE(file.bytes().empty());
  file.release_pages(file.bytes());
}

TEST_F(MappedFileTest, TheMappingOutlivesTheName) {
  const fs::path path = write("x", "still here");
  const MappedFile file(path);
  fs::remove(path);
  EXPECT_EQ(content_of(file), "still here");
}

TEST_F(MappedFileTest, MovesLeaveOneOwner) {
  MappedFile first(write("1", "first"));
  MappedFile second(write("2", "second"));
  MappedFile moved(std::move(first));
  EXPECT_EQ(content_of(moved), "first");
  moved = std::move(second);
  EXPECT_EQ(content_of(moved), "second");
  EXPECT_EQ(moved.path(), directory_ / "2");
}

TEST_F(MappedFileTest, ErrorsNameThePath) {
  const fs::path missing = directory_ / "missing";
  expect_path_error(ErrorCode::not_found, missing, [&] { MappedFile file(missing); });
  expect_path_error(ErrorCode::not_found, missing, [&] { read_text_file(missing, 10); });
  expect_path_error(ErrorCode::invalid, directory_, [&] { MappedFile file(directory_); });
  const fs::path fifo = directory_ / "through" / "x";
  write("through", "a file, not a directory");
  expect_path_error(ErrorCode::invalid, fifo, [&] { MappedFile file(fifo); });
}

// All pages of a file of several pages: any part may be released, and reads the same afterwards.
TEST_F(MappedFileTest, APipeIsRefusedAtOnce) {
  const fs::path pipe = directory_ / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  expect_error(ErrorCode::invalid, {"pipe: not a regular file"}, [&] { MappedFile{pipe}; });
  expect_error(ErrorCode::invalid, {"pipe: not a regular file"},
               [&] { read_text_file(pipe, 100); });
}

TEST_F(MappedFileTest, ReleasedPagesReadTheSame) {
  std::string content(5 * 4096 + 123, '\0');
  for (size_t i = 0; i < content.size(); ++i) content[i] = static_cast<char>(i * 31 + i / 4096);
  const MappedFile file(write("pages", content));
  const size_t parts[][2] = {{0, content.size()}, {1, 4096}, {4096, 8192}, {100, 10}, {9000, 9000}};
  for (const auto& [begin, size] : parts) {
    file.release_pages(file.bytes().subspan(begin, size));
    ASSERT_EQ(content_of(file), content);
  }
}

TEST_F(MappedFileTest, ReadTextFile) {
  const std::string content("line\r\n\xC3\xA9\0end", 12);
  const fs::path path = write("text", content);
  EXPECT_EQ(read_text_file(path, content.size()), content);
  EXPECT_EQ(read_text_file(write("none", ""), 0), "");
  expect_path_error(ErrorCode::invalid, path, [&] { read_text_file(path, content.size() - 1); });
}

}  // namespace
}  // namespace paceline
