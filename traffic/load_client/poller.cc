#include "traffic/load_client/poller.h"

#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "base/error.h"

namespace paceline::traffic {

Poller::Poller() : epoll_fd_(epoll_create1(EPOLL_CLOEXEC)) {
  PL_CHECK(epoll_fd_ >= 0, "the system gives an epoll");
}

Poller::~Poller() { close(epoll_fd_); }

void Poller::add(int fd, Pollable& pollable) {
  epoll_event event{};
  event.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
  event.data.ptr = &pollable;
  PL_CHECK(epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, fd, &event) == 0, "an open socket can be watched");
}

void Poller::at(Clock::time_point time, std::function<void()> work) {
  timed_.push({.time = time, .number = num_timed_++, .work = std::move(work)});
}

void Poller::poll(std::chrono::milliseconds most) {
  auto wait = most;
  if (!timed_.empty()) {
    const auto until =
        std::chrono::ceil<std::chrono::milliseconds>(timed_.top().time - Clock::now());
    wait = std::clamp(until, std::chrono::milliseconds(0), most);
  }
  std::array<epoll_event, 512> events;
  const int count = epoll_wait(epoll_fd_, events.data(), static_cast<int>(events.size()),
                               static_cast<int>(wait.count()));
  PL_CHECK(count >= 0 || errno == EINTR, "waiting for sockets works");
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = events[static_cast<size_t>(i)];
    static_cast<Pollable*>(event.data.ptr)->on_ready(event.events);
  }
  run_due();
  for (const auto& work : std::exchange(deferred_, {})) work();
}

void Poller::run_due() {
  while (!timed_.empty() && timed_.top().time <= Clock::now()) {
    const auto work = timed_.top().work;
    timed_.pop();
    work();
  }
}

}  // namespace paceline::traffic
