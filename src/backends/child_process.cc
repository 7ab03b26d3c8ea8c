#include "backends/child_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"

extern char** environ;

namespace paceline {
namespace {

constexpr size_t kLastWords = 4096;

struct Pipe {
  int read_end = -1;
  int write_end = -1;
};

void close_end(int& end) {
  if (end >= 0) ::close(std::exchange(end, -1));
}

Pipe open_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    throw Error(ErrorCode::exhausted, fmt::format("pipe: {}", std::strerror(errno)));
  }
  return {.read_end = ends[0], .write_end = ends[1]};
}

// Of sockets: a write to a child that has ended is an error here, where one to a pipe is a signal
// that ends the program.
Pipe open_input() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    throw Error(ErrorCode::exhausted, fmt::format("socketpair: {}", std::strerror(errno)));
  }
  return {.read_end = ends[0], .write_end = ends[1]};
}

void set_nonblocking(int descriptor) {
  ::fcntl(descriptor, F_SETFL, ::fcntl(descriptor, F_GETFL) | O_NONBLOCK);
}

// In a process group of its own: a terminal's Ctrl-C is for this program, which then ends the
// child.
int spawn(const std::vector<std::string>& arguments, const Pipe& input, const Pipe& output,
          const Pipe& errors, pid_t& pid) {
  std::vector<char*> words;
  for (const std::string& argument : arguments)
    words.push_back(const_cast<char*>(argument.c_str()));
  words.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input.read_end, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output.write_end, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, errors.write_end, STDERR_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none, defaults;
  sigemptyset(&none);
  sigemptyset(&defaults);
  for (const int number : {SIGINT, SIGTERM, SIGPIPE}) sigaddset(&defaults, number);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  const int problem =
      ::posix_spawnp(&pid, words.front(), &actions, &attributes, words.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return problem;
}

std::string status_text(int status) {
  if (WIFSIGNALED(status)) return fmt::format("signal {}", WTERMSIG(status));
  return fmt::format("exit code {}", WEXITSTATUS(status));
}

// Without blanks at its ends; lines are joined.
std::string shown(std::string text) {
  const auto is_blank = [](char c) { return c == '\n' || c == ' ' || c == '\r'; };
  while (!text.empty() && is_blank(text.back())) text.pop_back();
  const size_t line = text.rfind('\n');
  return line == std::string::npos ? text : text.substr(line + 1);
}

}  // namespace

ChildProcess::ChildProcess(std::string name, const std::vector<std::string>& arguments)
    : name_(std::move(name)) {
  Pipe input = open_input(), output = open_pipe(), errors = open_pipe();
  const int problem = spawn(arguments, input, output, errors, pid_);
  close_end(input.read_end);
  close_end(output.write_end);
  close_end(errors.write_end);
  input_ = input.write_end;
  output_ = output.read_end;
  errors_ = errors.read_end;
  if (problem != 0) {
    pid_ = -1;
    for (int* end : {&input_, &output_, &errors_}) close_end(*end);
    throw Error(ErrorCode::not_found, fmt::format("{}: {} can't be started: {}", name_,
                                                  arguments.front(), std::strerror(problem)));
  }
  for (const int descriptor : {input_, output_, errors_}) set_nonblocking(descriptor);
}

ChildProcess::~ChildProcess() {
  kill_and_wait();
  for (int* end : {&input_, &output_, &errors_}) close_end(*end);
}

void ChildProcess::kill_and_wait() {
  if (pid_ < 0) return;
  ::kill(-pid_, SIGKILL);  // what it has started, too
  ::kill(pid_, SIGKILL);
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
}

void ChildProcess::fail_as_ended() {
  read_errors();
  std::string how = "its output was closed";
  int status = 0;
  // It may have closed its output a moment before it ends.
  for (int i = 0; i < 20 && pid_ >= 0; ++i) {
    const pid_t ended = ::waitpid(pid_, &status, WNOHANG);
    if (ended == pid_) {
      how = status_text(status);
      pid_ = -1;
      break;
    }
    ::usleep(10000);
  }
  kill_and_wait();
  read_errors();
  const std::string words = shown(last_words_);
  throw Error(ErrorCode::internal, fmt::format("{}: the child has ended ({}){}{}", name_, how,
                                               words.empty() ? "" : ": ", words));
}

// At most so much at once: a child that never stops writing must not hold the caller.
constexpr int kMostReads = 64;

void ChildProcess::read_errors() {
  std::array<char, 4096> part{};
  ssize_t count = -1;
  for (int i = 0; i < kMostReads && errors_ >= 0; ++i) {
    count = ::read(errors_, part.data(), part.size());
    if (count <= 0) break;
    last_words_.append(part.data(), static_cast<size_t>(count));
    if (last_words_.size() > kLastWords) last_words_.erase(0, last_words_.size() - kLastWords);
  }
  if (count == 0) close_end(errors_);
}

void ChildProcess::read_output() {
  std::array<char, 65536> part{};
  while (output_ >= 0) {
    const ssize_t count = ::read(output_, part.data(), part.size());
    if (count == 0) return close_end(output_);
    if (count < 0) return;
    unread_.append(part.data(), static_cast<size_t>(count));
    if (unread_.size() - begin_ > kLongestLine) {
      throw Error(ErrorCode::corrupt,
                  fmt::format("{}: a line of more than {} MiB, or as much that nobody asked for",
                              name_, kLongestLine >> 20));
    }
  }
}

void ChildProcess::write_input() {
  size_t done = 0;
  while (done < unsent_.size()) {
    const ssize_t count =
        ::send(input_, unsent_.data() + done, unsent_.size() - done, MSG_NOSIGNAL);
    if (count > 0) {
      done += static_cast<size_t>(count);
    } else if (errno == EAGAIN) {
      break;
    } else if (errno != EINTR) {
      fail_as_ended();
    }
  }
  unsent_.erase(0, done);
}

std::optional<std::string> ChildProcess::take_line() {
  const size_t end = unread_.find('\n', std::max(begin_, searched_));
  if (end == std::string::npos) {
    searched_ = unread_.size();
    return std::nullopt;
  }
  std::string line = unread_.substr(begin_, end - begin_);
  begin_ = end + 1;
  constexpr size_t kKept = size_t{1} << 20;  // of lines that were taken
  if (begin_ == unread_.size() || begin_ > kKept) {
    unread_.erase(0, begin_);
    begin_ = searched_ = 0;
  }
  return line;
}

// What the child writes while it is written to is read: else both could wait for each other.
void ChildProcess::exchange(std::chrono::milliseconds timeout, int wake) {
  const bool writes = !unsent_.empty();
  std::array<pollfd, 4> watched = {pollfd{output_, POLLIN, 0}, pollfd{errors_, POLLIN, 0},
                                   pollfd{writes ? input_ : -1, POLLOUT, 0},
                                   pollfd{wake, POLLIN, 0}};
  ::poll(watched.data(), watched.size(), static_cast<int>(timeout.count()));
  if (watched[1].revents != 0) read_errors();
  if (watched[0].revents != 0) read_output();
  if (watched[2].revents != 0) write_input();
}

std::optional<std::string> ChildProcess::poll_line(std::chrono::milliseconds timeout, int wake) {
  if (auto line = take_line()) {
    write_input();
    return line;
  }
  if (output_ < 0) fail_as_ended();  // an answer may be its last words
  exchange(timeout, wake);
  auto line = take_line();
  if (!line && output_ < 0) fail_as_ended();
  return line;
}

}  // namespace paceline
