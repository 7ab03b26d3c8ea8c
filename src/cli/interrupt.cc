#include "cli/interrupt.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <string>
#include <utility>

#include "base/new_directory.h"
#include "base/start_thread.h"
#include "cli/progress.h"

namespace paceline {
namespace {

sigset_t wanted_signals() {
  sigset_t wanted;
  sigemptyset(&wanted);
  for (int number : {SIGINT, SIGTERM}) {
    struct sigaction action {};
    if (sigaction(number, nullptr, &action) == 0 && action.sa_handler != SIG_IGN) {
      sigaddset(&wanted, number);
    }
  }
  return wanted;
}

}  // namespace

Interrupt::Interrupt() {
  const sigset_t wanted = wanted_signals();
  pthread_sigmask(SIG_BLOCK, &wanted, nullptr);
  signal_fd_ = signalfd(-1, &wanted, SFD_CLOEXEC);
  wake_fd_ = eventfd(0, EFD_CLOEXEC);
  watcher_ = start_thread<std::jthread>([this] { watch(); });
}

Interrupt::~Interrupt() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(wake_fd_, &one, sizeof one);
  watcher_.join();
  close(signal_fd_);
  close(wake_fd_);
}

void Interrupt::explain(std::function<std::string()> note) {
  const std::lock_guard lock(note_mutex_);
  note_ = std::move(note);
}

std::string Interrupt::line() const {
  const std::lock_guard lock(note_mutex_);
  const std::string note = note_ ? note_() : "";
  return "paceline: interrupted" + (note.empty() ? "" : "; " + note) + "\n";
}

void Interrupt::end(int number) {
  is_ending_ = true;
  const auto until_the_end = remove_temporary_directories();
  wipe_progress();
  const std::string text = line();
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
  _exit(128 + number);
}

Interrupt::Handler::Handler(Interrupt& interrupt, std::function<void(int signal)> act)
    : interrupt_(interrupt) {
  const std::lock_guard lock(interrupt_.handler_mutex_);
  interrupt_.handler_ = std::move(act);
}

Interrupt::Handler::~Handler() {
  const std::lock_guard lock(interrupt_.handler_mutex_);
  interrupt_.handler_ = nullptr;
}

bool Interrupt::handled(int number) {
  const std::lock_guard lock(handler_mutex_);
  if (!handler_) return false;
  handler_(number);
  return true;
}

void Interrupt::watch() {
  std::array<pollfd, 2> watched = {pollfd{.fd = signal_fd_, .events = POLLIN, .revents = 0},
                                   pollfd{.fd = wake_fd_, .events = POLLIN, .revents = 0}};
  while (true) {
    if (poll(watched.data(), watched.size(), -1) < 0) continue;
    if (watched[1].revents != 0) return;
    signalfd_siginfo received{};
    if (read(signal_fd_, &received, sizeof received) != sizeof received) continue;
    const int number = static_cast<int>(received.ssi_signo);
    if (handled(number)) continue;
    if (!graceful_ || signal_ != 0) end(number);
    signal_ = number;
    stop_.request_stop();
  }
}

}  // namespace paceline
