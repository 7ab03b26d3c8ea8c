#include "base/new_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/siphash.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxPendingBytes = 1 << 20;

[[noreturn]] void fail(ErrorCode code, const fs::path& path, std::string_view what, int error) {
  throw Error(code, fmt::format("{}: {}: {}", path.string(), what, std::strerror(error)));
}

[[noreturn]] void refuse_existing(const fs::path& path) {
  throw Error(ErrorCode::invalid,
              fmt::format("{}: exists already, and nothing is overwritten", path.string()));
}

bool is_there(const fs::path& path) {
  struct stat ignored {};
  return ::lstat(path.c_str(), &ignored) == 0;
}

fs::path directory_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

void sync_directory_of(const fs::path& path) {
  const int directory = ::open(directory_of(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) return;  // can be written but not read, so it can't be synced
  ::fsync(directory);
  ::close(directory);
}

std::string link_of(int fd) { return fmt::format("/proc/self/fd/{}", fd); }

// An unnamed file, which disappears with a killed process; -1 where the system has none or could
// not name it later.
int open_nameless(const fs::path& directory) {
  const int fd = ::open(directory.c_str(), O_WRONLY | O_TMPFILE | O_CLOEXEC, 0666);
  if (fd < 0 || ::access(link_of(fd).c_str(), F_OK) == 0) return fd;
  ::close(fd);
  return -1;
}

void write_all(int fd, std::string_view bytes, const fs::path& path) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(fd, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail(ErrorCode::exhausted, path, "can't be written", errno);
    bytes.remove_prefix(static_cast<size_t>(count));
  }
}

}  // namespace

NewFile::NewFile(fs::path path, Existing existing) : path_(std::move(path)), existing_(existing) {
  if (existing_ == Existing::refuse && is_there(path_)) refuse_existing(path_);
  // Several processes and threads may write the same file at once.
  temporary_ = directory_of(path_) /
               fmt::format(".{}.{:016x}.partial", path_.filename().string(), random_sip_key().low);
  fd_ = open_nameless(directory_of(path_));
  if (fd_ >= 0) return;
  fd_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  has_name_ = true;
  if (fd_ < 0) fail(ErrorCode::invalid, path_, "can't be made", errno);
}

NewFile::~NewFile() {
  if (fd_ < 0) return;
  ::close(fd_);
  if (has_name_) ::unlink(temporary_.c_str());
}

void NewFile::reserve(uint64_t bytes) {
  struct rlimit limit {};
  if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < bytes) {
    throw Error(ErrorCode::exhausted,
                fmt::format("{}: {} bytes, more than a file of this process may have ({}, ulimit "
                            "-f)",
                            path_.string(), bytes, limit.rlim_cur));
  }
  if (::fallocate(fd_, FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(bytes)) == 0) return;
  if (errno == ENOSPC || errno == EDQUOT || errno == EFBIG) {
    fail(ErrorCode::exhausted, path_, fmt::format("no room for {} bytes", bytes), errno);
  }
}

void NewFile::append(std::span<const std::byte> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  size_bytes_ += text.size();
  if (pending_.size() + text.size() < kMaxPendingBytes) {
    pending_ += text;
    return;
  }
  flush();
  write_all(fd_, text, path_);
}

void NewFile::overwrite(uint64_t at, std::span<const std::byte> bytes) {
  PL_CHECK(at <= size_bytes_ && bytes.size() <= size_bytes_ - at, "overwrites what was appended");
  flush();
  while (!bytes.empty()) {
    const ssize_t count = ::pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(at));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail(ErrorCode::exhausted, path_, "can't be written", errno);
    bytes = bytes.subspan(static_cast<size_t>(count));
    at += static_cast<uint64_t>(count);
  }
}

void NewFile::flush() {
  write_all(fd_, pending_, path_);
  pending_.clear();
}

void NewFile::commit() {
  flush();
  if (::fsync(fd_) != 0) fail(ErrorCode::exhausted, path_, "can't be brought to the disk", errno);
  if (!has_name_ && ::linkat(AT_FDCWD, link_of(fd_).c_str(), AT_FDCWD, temporary_.c_str(),
                             AT_SYMLINK_FOLLOW) != 0) {
    fail(ErrorCode::invalid, path_, "can't be given its name", errno);
  }
  has_name_ = true;
  if (existing_ == Existing::replace) {
    rename_over(temporary_, path_);
  } else {
    rename_to_new(temporary_, path_);
  }
  ::close(std::exchange(fd_, -1));
}

void rename_over(const fs::path& from, const fs::path& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) {
    fail(ErrorCode::invalid, to, "can't be given its name", errno);
  }
  sync_directory_of(to);
}

void rename_to_new(const fs::path& from, const fs::path& to) {
  int result = ::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE);
  if (result != 0 && (errno == EINVAL || errno == ENOSYS)) {  // a file system without the flag
    if (is_there(to)) refuse_existing(to);
    result = ::rename(from.c_str(), to.c_str());
  }
  if (result != 0 && errno == EEXIST) refuse_existing(to);
  if (result != 0) fail(ErrorCode::invalid, to, "can't be given its name", errno);
  sync_directory_of(to);
}

void write_new_file(const std::filesystem::path& path, std::string_view text) {
  NewFile file(path);
  file.append(text);
  file.commit();
}

}  // namespace paceline
