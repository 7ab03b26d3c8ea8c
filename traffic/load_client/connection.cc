#include "traffic/load_client/connection.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <exception>
#include <utility>

#include "base/error.h"

namespace paceline::traffic {

Connection::Connection(Poller& poller, uint16_t port) {
  fd_ = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd_ < 0) {
    throw Error(ErrorCode::exhausted,
                fmt::format("socket: {}; a higher limit of open files (ulimit -n) may help",
                            std::strerror(errno)));
  }
  const int on = 1;
  setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int connected = connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  poller.add(fd_, *this);
  if (connected != 0 && errno != EINPROGRESS)
    lose(fmt::format("connect: {}", std::strerror(errno)));
}

Connection::~Connection() {
  if (fd_ >= 0) close(fd_);
}

void Connection::send(std::string request, AnswerSink& sink) {
  PL_CHECK(is_idle(), "a connection carries one request at a time");
  sink_ = &sink;
  unsent_ = std::move(request);
  reader_.begin([this](std::string_view piece) { sink_->on_body(reader_.status(), piece); });
  if (is_connected_) write_out();
}

void Connection::on_ready(uint32_t epoll_events) {
  if (fd_ < 0) return;
  if (!is_connected_ && (epoll_events & (EPOLLOUT | EPOLLERR | EPOLLHUP)) != 0) {
    int error = 0;
    socklen_t size = sizeof error;
    getsockopt(fd_, SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) return lose(fmt::format("connect: {}", std::strerror(error)));
    is_connected_ = true;
    connect_seconds_ = std::chrono::duration<double>(Clock::now() - began_).count();
  }
  if ((epoll_events & EPOLLOUT) != 0 && !unsent_.empty()) write_out();
  constexpr uint32_t kEnd = EPOLLRDHUP | EPOLLERR | EPOLLHUP;
  if ((epoll_events & (EPOLLIN | kEnd)) != 0) read_in((epoll_events & kEnd) != 0);
}

void Connection::write_out() {
  while (!unsent_.empty()) {
    const ssize_t count = ::send(fd_, unsent_.data(), unsent_.size(), MSG_NOSIGNAL);
    // A server that refuses a request by its header may have closed; its answer can still be read.
    if (count < 0) return;
    unsent_.erase(0, static_cast<size_t>(count));
  }
}

// `has_ended`: the connection ends after the bytes.
void Connection::read_in(bool has_ended) {
  static std::array<char, 256 << 10> buffer;
  while (fd_ >= 0) {
    const ssize_t count = recv(fd_, buffer.data(), buffer.size(), 0);
    if (count > 0) {
      take({buffer.data(), static_cast<size_t>(count)});
      // A short read has emptied it; later bytes are a new edge.
      if (!has_ended && static_cast<size_t>(count) < buffer.size()) return;
    } else if (count < 0 && errno == EINTR) {
      continue;
    } else if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      return;
    } else {
      return lose(count == 0 ? "the server has closed" : std::strerror(errno));
    }
  }
}

void Connection::take(std::string_view bytes) {
  if (sink_ == nullptr) return lose("bytes without a request");
  try {
    reader_.feed(bytes);
  } catch (const std::exception& error) {
    return lose(error.what());
  }
  if (reader_.is_done()) end_answer();
}

void Connection::end_answer() {
  if (reader_.closes()) {
    close(fd_);
    fd_ = -1;
  }
  std::exchange(sink_, nullptr)->on_end(reader_.status());
}

void Connection::lose(const std::string& reason) {
  close(fd_);
  fd_ = -1;
  if (sink_ == nullptr) return;
  std::exchange(sink_, nullptr)
      ->on_failure(reader_.has_begun() ? reason + ", in the middle of the answer" : reason);
}

}  // namespace paceline::traffic
