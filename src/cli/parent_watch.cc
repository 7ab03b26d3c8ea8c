#include "cli/parent_watch.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>

#include "base/error.h"
#include "base/start_thread.h"

namespace paceline {
namespace {

void check_input() {
  struct stat input {};
  if (fstat(STDIN_FILENO, &input) == 0 && (S_ISFIFO(input.st_mode) || S_ISSOCK(input.st_mode)))
    return;
  if (isatty(STDIN_FILENO) == 1) return;
  throw Error(
      ErrorCode::invalid,
      "--stop-with-parent: standard input is no pipe, whose end would say that the parent is "
      "gone; start the program with one that stays open");
}

}  // namespace

ParentWatch::ParentWatch() {
  check_input();
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  wake_fd_ = eventfd(0, EFD_CLOEXEC);
  watcher_ = start_thread<std::jthread>([this] { watch(); });
}

ParentWatch::~ParentWatch() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(wake_fd_, &one, sizeof one);
  watcher_.join();
  close(wake_fd_);
}

void ParentWatch::watch() const {
  std::array<pollfd, 2> watched = {pollfd{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0},
                                   pollfd{.fd = wake_fd_, .events = POLLIN, .revents = 0}};
  std::array<char, 4096> ignored{};
  while (true) {
    if (poll(watched.data(), watched.size(), -1) < 0) continue;
    if (watched[1].revents != 0) return;
    const ssize_t received = read(STDIN_FILENO, ignored.data(), ignored.size());
    if (received > 0 || (received < 0 && (errno == EINTR || errno == EAGAIN))) continue;
    kill(getpid(), SIGTERM);  // the stream is over
    return;
  }
}

}  // namespace paceline
