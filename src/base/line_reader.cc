#include "base/line_reader.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "paceline/error.h"

namespace paceline {

LineReader::LineReader(const std::string& path)
    : name_(path == "-" ? "standard input" : path),
      descriptor_(path == "-" ? STDIN_FILENO : open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
  if (descriptor_ < 0) {
    throw Error(ErrorCode::not_found, fmt::format("{}: {}", path, std::strerror(errno)));
  }
}

LineReader::~LineReader() {
  if (descriptor_ > STDIN_FILENO) close(descriptor_);
}

bool LineReader::fill() {
  constexpr size_t kChunk = 1 << 16;
  buffer_.erase(0, begin_);
  begin_ = 0;
  const size_t size = buffer_.size();
  buffer_.resize(size + kChunk);
  ssize_t count = -1;
  do {
    count = read(descriptor_, buffer_.data() + size, kChunk);
  } while (count < 0 && errno == EINTR);
  buffer_.resize(size + static_cast<size_t>(std::max<ssize_t>(count, 0)));
  if (count < 0)
    throw Error(ErrorCode::invalid, fmt::format("{}: {}", name_, std::strerror(errno)));
  bytes_read_ += count;
  return count > 0;
}

bool LineReader::is_ready() {
  while (!at_end_ && buffer_.find('\n', begin_) == std::string::npos &&
         buffer_.size() - begin_ <= kMaxLineBytes) {
    pollfd readable{.fd = descriptor_, .events = POLLIN, .revents = 0};
    if (poll(&readable, 1, 0) <= 0) return false;
    if (!fill()) at_end_ = true;
  }
  return true;
}

double LineReader::share_read() const {
  struct stat status {};
  if (fstat(descriptor_, &status) != 0 || !S_ISREG(status.st_mode) || status.st_size == 0) return 0;
  const auto returned = bytes_read_ - static_cast<int64_t>(buffer_.size() - begin_);
  return static_cast<double>(returned) / static_cast<double>(status.st_size);
}

std::optional<Line> LineReader::next() {
  Line line{.number = ++number_, .text = {}};
  while (true) {
    const size_t end = buffer_.find('\n', begin_);
    const size_t stop = std::min(end, buffer_.size());
    const size_t room = kMaxLineBytes - line.text.size();
    line.text.append(buffer_, begin_, std::min(stop - begin_, room));
    line.is_too_long = line.is_too_long || stop - begin_ > room;
    begin_ = stop;
    if (end != std::string::npos) {
      ++begin_;
      break;
    }
    if (at_end_ || !fill()) {
      at_end_ = true;
      if (line.text.empty() && !line.is_too_long) return std::nullopt;
      break;
    }
  }
  if (!line.text.empty() && line.text.back() == '\r') line.text.pop_back();
  return line;
}

}  // namespace paceline
