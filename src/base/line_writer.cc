#include "base/line_writer.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <utility>

#include "base/start_thread.h"

namespace paceline {
namespace {

constexpr std::chrono::seconds kLastSecond{1};
constexpr int kPollMs = 50;
// A pipe that poll() reports as writable takes this many bytes without blocking (PIPE_BUF).
constexpr size_t kPieceBytes = 4096;

// write(), but never blocking on a socket (journald's standard error is one).
ssize_t write_piece(int descriptor, std::string_view piece) {
  const ssize_t sent = ::send(descriptor, piece.data(), piece.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  return sent < 0 && errno == ENOTSOCK ? ::write(descriptor, piece.data(), piece.size()) : sent;
}

bool is_for_later(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

// Leaves signals to the other threads.
void block_signals() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
}

}  // namespace

LineWriter::LineWriter(int descriptor, size_t max_waiting)
    : descriptor_(descriptor),
      max_waiting_(max_waiting),
      thread_(start_thread([this] { run(); })) {}

LineWriter::~LineWriter() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void LineWriter::write(std::string_view line) {
  {
    const std::lock_guard lock(mutex_);
    if (waiting_.size() + line.size() + 1 > max_waiting_) {
      ++num_dropped_;
      ++num_unreported_;
      return;
    }
    waiting_.append(line).push_back('\n');
  }
  changed_.notify_all();
}

int64_t LineWriter::num_dropped() const {
  const std::lock_guard lock(mutex_);
  return num_dropped_;
}

void LineWriter::run() {
  block_signals();
  while (true) {
    std::string text;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return is_stopping_ || !waiting_.empty(); });
      if (waiting_.empty()) return;
      text = std::exchange(waiting_, {});
      if (num_unreported_ > 0) {
        text += fmt::format("({} lines of the log were dropped: nothing read it)\n",
                            std::exchange(num_unreported_, 0));
      }
    }
    if (!send(text)) return;
  }
}

// False when the last second has passed.
bool LineWriter::send(std::string_view text) {
  using Clock = std::chrono::steady_clock;
  auto end = Clock::time_point::max();
  while (!text.empty()) {
    pollfd entry{.fd = descriptor_, .events = POLLOUT, .revents = 0};
    if (::poll(&entry, 1, kPollMs) > 0) {
      const ssize_t sent = write_piece(descriptor_, text.substr(0, kPieceBytes));
      if (sent < 0 && !is_for_later(errno)) return true;  // the reader has gone: dropped
      text.remove_prefix(static_cast<size_t>(std::max<ssize_t>(sent, 0)));
    }
    const std::lock_guard lock(mutex_);
    if (is_stopping_ && end == Clock::time_point::max()) end = Clock::now() + kLastSecond;
    if (Clock::now() > end) return false;
  }
  return true;
}

}  // namespace paceline
