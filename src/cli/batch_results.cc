#include "cli/batch_results.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <functional>

#include "base/error.h"
#include "base/json_cursor.h"
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

// The part of a line that is parsed: a line with an error is shorter, one with a response begins
// with the needed fields.
constexpr size_t kMaxHeadBytes = 1 << 16;
constexpr size_t kChunkBytes = 1 << 18;

struct ScannedLine {
  int64_t number = 0;
  std::string head;  // without its end
  int64_t end = 0;   // the offset behind its end
  bool has_zeros = false;
};

// Calls `take` for every whole line, until it returns false.
void scan_lines(int descriptor, const std::string& name,
                const std::function<bool(const ScannedLine& line)>& take) {
  std::string chunk(kChunkBytes, '\0');
  ScannedLine line{.number = 1};
  while (true) {
    const ssize_t count = pread(descriptor, chunk.data(), chunk.size(), line.end);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw error_of(ErrorCode::invalid, "{}: {}", name, std::strerror(errno));
    if (count == 0) return;
    std::string_view rest(chunk.data(), static_cast<size_t>(count));
    while (!rest.empty()) {
      const size_t size = std::min(rest.find('\n'), rest.size());
      const std::string_view part = rest.substr(0, size);
      line.head += part.substr(0, kMaxHeadBytes - std::min(line.head.size(), kMaxHeadBytes));
      line.has_zeros = line.has_zeros || part.find('\0') != std::string_view::npos;
      const bool is_whole = size < rest.size();
      rest.remove_prefix(size + (is_whole ? 1 : 0));
      line.end += static_cast<int64_t>(size) + (is_whole ? 1 : 0);
      if (!is_whole) continue;
      if (!take(line)) return;
      line = {.number = line.number + 1, .end = line.end};
    }
  }
}

// Parses id, custom_id, and the beginning of a response or a whole error. Quotes inside JSON
// strings are escaped, so the mark occurs nowhere else.
Json parse_head(const std::string& head, const std::string& where) {
  constexpr std::string_view kMark = ",\"response\":{";
  const size_t mark = head.find(kMark);
  if (mark == std::string::npos) return parse_json_line(head, where);
  return parse_json_line(head.substr(0, mark + kMark.size()) + "},\"error\":null}", where);
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

bool FinishedRequests::note_seen(const std::string& custom_id) {
  Marks& marks = requests_[custom_id];
  const bool is_new = !marks.is_seen;
  marks.is_seen = true;
  return is_new;
}

bool FinishedRequests::is_done(const std::string& custom_id) const {
  const auto found = requests_.find(custom_id);
  return found != requests_.end() && found->second.is_done;
}

void FinishedRequests::note_line(const std::string& head, const std::string& where) {
  const Json record = parse_head(head, where);
  const JsonCursor root(record, where);
  const auto response = root.find("response");
  const auto custom_id = root.find("custom_id");
  if (response && custom_id && custom_id->is_string()) {
    requests_[custom_id->string()].is_done = true;
    return;
  }
  const auto error = root.find("error");
  const auto line = error ? error->find("line") : std::nullopt;
  if (response || !line) root.fail("neither a response nor an error");
  reported_lines_.insert(line->integer());
}

FinishedRequests read_finished_requests(int descriptor, const std::string& name) {
  FinishedRequests finished;
  scan_lines(descriptor, name, [&](const ScannedLine& line) {
    if (line.has_zeros) return false;
    const std::string where = fmt::format("line {}", line.number);
    try {
      finished.note_line(line.head, where);
    } catch (const Error& error) {
      throw error_of(ErrorCode::invalid,
                     "{}: not the output of a batch, nothing was written to it: {}", name,
                     error.what());
    }
    finished.valid_bytes_ = line.end;
    return true;
  });
  return finished;
}

}  // namespace paceline
