#include "cli/session.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string>
#include <system_error>

#include "base/error.h"

namespace paceline {

void Output::write(std::string_view text) {
  constexpr size_t kMaxPending = 1 << 16;
  const std::lock_guard lock(mutex_);
  pending_ += text;
  if (pending_.size() >= kMaxPending) write_pending();
}

void Output::flush() {
  const std::lock_guard lock(mutex_);
  write_pending();
}

void Output::print(std::string_view text) {
  write(text);
  flush();
}

void Output::write_pending() {
  std::string_view rest = pending_;
  while (!rest.empty()) {
    const ssize_t written = ::write(STDOUT_FILENO, rest.data(), rest.size());
    if (written >= 0) {
      rest.remove_prefix(static_cast<size_t>(written));
    } else if (errno != EINTR) {
      const int reason = errno;
      pending_.clear();
      if (reason == EPIPE) throw OutputClosed();
      throw error_of(ErrorCode::exhausted, "standard output: {}", std::strerror(reason));
    }
  }
  pending_.clear();
}

void Session::explain_written(const std::string& path, const std::string& complete) {
  std::error_code ignored;
  const bool was_there = std::filesystem::exists(path, ignored);
  interrupt_.explain([=] {
    std::error_code error;
    const bool is_written = !was_there && std::filesystem::exists(path, error);
    return is_written ? path + complete : "nothing was written";
  });
}

bool Session::is_terminal(int descriptor) { return isatty(descriptor) == 1; }

int64_t Session::stdout_columns() const {
  winsize size = {};
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

void Session::print_line(std::string_view line) {
  out_.flush();
  const std::string whole = std::string(line) + "\n";
  std::fwrite(whole.data(), 1, whole.size(), stderr);
  std::fflush(stderr);
}

void Session::print_error(std::string_view message) {
  print_line("paceline: " + std::string(message));
}

void Session::print_error(ErrorCode code, std::string_view message) {
  if (has_error_codes_) {
    print_error("{}: {}", error_code_name(code), message);
  } else {
    print_error(message);
  }
}

}  // namespace paceline
