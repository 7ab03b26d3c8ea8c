#include "base/mapped_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include "base/error.h"

namespace paceline {
namespace {

// Spare capacity behind a text, so that simdjson, which reads SIMDJSON_PADDING bytes beyond it,
// needn't copy it.
constexpr size_t kParserPadding = 64;

// An open file descriptor and its size; closes itself.
class OpenFile {
 public:
  // O_NONBLOCK: a pipe without a writer would block, before it is refused.
  explicit OpenFile(const std::filesystem::path& path)
      : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    if (fd_ < 0) {
      throw Error(errno == ENOENT ? ErrorCode::not_found : ErrorCode::invalid,
                  fmt::format("{}: can't be opened: {}", path.string(), std::strerror(errno)));
    }
    struct stat status {};
    const bool regular = ::fstat(fd_, &status) == 0 && S_ISREG(status.st_mode);
    if (!regular) {
      ::close(fd_);
      throw Error(ErrorCode::invalid, fmt::format("{}: not a regular file", path.string()));
    }
    stamp_ = file_stamp(status);
  }
  ~OpenFile() { ::close(fd_); }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  int fd() const { return fd_; }
  size_t size() const { return stamp_.size_bytes; }
  const FileStamp& stamp() const { return stamp_; }

 private:
  int fd_;
  FileStamp stamp_;
};

}  // namespace

MappedFile::MappedFile(const std::filesystem::path& path) : path_(path) {
  const OpenFile file(path);
  stamp_ = file.stamp();
  if (file.size() == 0) return;
  void* address = ::mmap(nullptr, file.size(), PROT_READ, MAP_PRIVATE, file.fd(), 0);
  if (address == MAP_FAILED) {
    throw Error(ErrorCode::exhausted,
                fmt::format("{}: can't be mapped: {}", path.string(), std::strerror(errno)));
  }
  bytes_ = static_cast<const std::byte*>(address);
  size_ = file.size();
  name_ = MappingName(bytes(), path_.string());
}

MappedFile::~MappedFile() {
  name_ = {};
  if (bytes_ != nullptr) ::munmap(const_cast<std::byte*>(bytes_), size_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      stamp_(other.stamp_),
      bytes_(std::exchange(other.bytes_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      name_(std::move(other.name_)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(stamp_, other.stamp_);
  std::swap(bytes_, other.bytes_);
  std::swap(size_, other.size_);
  std::swap(name_, other.name_);
  return *this;
}

void MappedFile::release_pages(std::span<const std::byte> part) const {
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto first = (reinterpret_cast<uintptr_t>(part.data()) + page - 1) / page * page;
  const auto last = (reinterpret_cast<uintptr_t>(part.data()) + part.size()) / page * page;
  if (first < last) ::madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
}

std::string read_text_file(const std::filesystem::path& path, size_t max_bytes) {
  const OpenFile file(path);
  if (file.size() > max_bytes) {
    throw Error(ErrorCode::invalid, fmt::format("{}: {} bytes, at most {} are read", path.string(),
                                                file.size(), max_bytes));
  }
  std::string text;
  text.reserve(file.size() + kParserPadding);
  text.resize(file.size());
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t got = ::read(file.fd(), text.data() + done, text.size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      throw Error(ErrorCode::invalid,
                  fmt::format("{}: can't be read: {}", path.string(), std::strerror(errno)));
    }
    if (got == 0) break;
    done += static_cast<size_t>(got);
  }
  text.resize(done);
  return text;
}

}  // namespace paceline
