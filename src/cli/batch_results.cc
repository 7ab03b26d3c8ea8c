#include "cli/batch_results.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "base/start_thread.h"

namespace paceline {
namespace {

constexpr std::chrono::milliseconds kGroupTime{100};

// Makes the file's directory entry durable.
void sync_directory_of(const std::string& path) {
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  const int directory =
      open(parent.empty() ? "." : parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) return;
  fsync(directory);
  close(directory);
}

}  // namespace

BatchResults::BatchResults(const std::string& path)
    : path_(path), descriptor_(open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666)) {
  if (descriptor_ < 0) throw error_of(ErrorCode::not_found, "{}: {}", path, std::strerror(errno));
  struct stat status {};
  is_file_ = fstat(descriptor_, &status) == 0 && S_ISREG(status.st_mode);
  if (is_file_ && flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
    close(descriptor_);
    throw error_of(ErrorCode::invalid, "{}: another `paceline batch` is writing to it", path);
  }
  if (is_file_ && status.st_size == 0) sync_directory_of(path);
  size_ = is_file_ ? status.st_size : 0;
  synced_ = size_;
  syncer_ = start_thread<std::jthread>([this](const std::stop_token& stop) { keep_durable(stop); });
}

BatchResults::~BatchResults() {
  stop_syncing();
  close(descriptor_);
}

void BatchResults::stop_syncing() {
  if (!syncer_.joinable()) return;
  syncer_.request_stop();
  syncer_.join();
}

void BatchResults::cut(int64_t size) {
  if (ftruncate(descriptor_, size) != 0) {
    throw error_of(ErrorCode::exhausted, "{}: {}", path_, std::strerror(errno));
  }
  const std::lock_guard lock(mutex_);
  size_ = synced_ = size;
}

void BatchResults::fail(int reason, int64_t valid_size) {
  std::string message = fmt::format("{}: {}", path_, std::strerror(reason));
  if (is_file_) {
    // If this fails, the next run removes the incomplete line.
    if (ftruncate(descriptor_, valid_size) == 0) size_ = synced_ = valid_size;
    message += "; the results so far are valid; run the same command again to do the rest";
  }
  throw Error(ErrorCode::exhausted, message);
}

void BatchResults::append(std::string_view line) {
  const std::lock_guard lock(mutex_);
  if (sync_error_ != 0) fail(sync_error_, synced_);
  std::string_view rest = line;
  while (!rest.empty()) {
    const ssize_t written = write(descriptor_, rest.data(), rest.size());
    if (written >= 0) {
      rest.remove_prefix(static_cast<size_t>(written));
    } else if (errno != EINTR) {
      fail(errno, size_);
    }
  }
  size_ += static_cast<int64_t>(line.size());
  wake_.notify_one();
}

void BatchResults::finish() {
  stop_syncing();
  const std::lock_guard lock(mutex_);
  if (sync_error_ != 0) fail(sync_error_, synced_);
}

void BatchResults::sync(std::unique_lock<std::mutex>& lock) {
  const int64_t size = size_;
  lock.unlock();
  const int reason = fdatasync(descriptor_) == 0 ? 0 : errno;
  lock.lock();
  const bool cannot_sync = reason == EINVAL || reason == ENOTSUP;  // a device, a pipe
  if (reason == 0 || cannot_sync) {
    synced_ = size;
  } else {
    sync_error_ = reason;
  }
}

void BatchResults::keep_durable(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (sync_error_ == 0) {
    wake_.wait(lock, stop, [this] { return unsynced(); });
    if (!unsynced()) return;
    // Lines appended meanwhile are synced together.
    wake_.wait_for(lock, stop, kGroupTime, [] { return false; });
    sync(lock);
  }
}

}  // namespace paceline
