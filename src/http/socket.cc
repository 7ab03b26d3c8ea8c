#include "http/socket.h"

#include <linux/sockios.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cerrno>

namespace paceline {
namespace {

using Status = HttpSocket::Status;

// Of recv() and send(); `blocked` is what to wait for.
HttpSocket::Outcome outcome_of(ssize_t result, Status blocked) {
  if (result > 0) return {.status = Status::done, .size = static_cast<size_t>(result)};
  const bool is_for_later = result < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
  return {.status = is_for_later ? blocked : Status::closed};
}

template <class Call>
ssize_t uninterrupted(Call&& call) {
  ssize_t result = 0;
  do {
    result = call();
  } while (result < 0 && errno == EINTR);
  return result;
}

HttpSocket::Outcome receive(int descriptor, std::span<char> buffer, int flags) {
  return outcome_of(
      uninterrupted([&] { return ::recv(descriptor, buffer.data(), buffer.size(), flags); }),
      Status::wait_to_read);
}

}  // namespace

HttpSocket::Outcome HttpSocket::session_outcome(int result, size_t size) const {
  if (result > 0) return {.status = Status::done, .size = size};
  const int error = SSL_get_error(session_.get(), result);
  if (error == SSL_ERROR_WANT_READ) return {.status = Status::wait_to_read};
  if (error == SSL_ERROR_WANT_WRITE) return {.status = Status::wait_to_write};
  return {.status = Status::closed};
}

Status HttpSocket::handshake() {
  if (session_ == nullptr) return Status::done;
  ERR_clear_error();
  return session_outcome(SSL_do_handshake(session_.get()), 1).status;
}

HttpSocket::Outcome HttpSocket::read(std::span<char> buffer) {
  if (session_ == nullptr) return receive(descriptor_, buffer, 0);
  ERR_clear_error();
  size_t size = 0;
  const int result = SSL_read_ex(session_.get(), buffer.data(), buffer.size(), &size);
  return session_outcome(result, size);
}

HttpSocket::Outcome HttpSocket::write(std::string_view bytes) {
  if (session_ == nullptr) {
    return outcome_of(uninterrupted([&] {
                        return ::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
                      }),
                      Status::wait_to_write);
  }
  ERR_clear_error();
  size_t size = 0;
  const int result = SSL_write_ex(session_.get(), bytes.data(), bytes.size(), &size);
  return session_outcome(result, size);
}

Status HttpSocket::peek() {
  char byte = 0;
  if (session_ == nullptr) return receive(descriptor_, {&byte, 1}, MSG_PEEK).status;
  ERR_clear_error();
  size_t size = 0;
  const int result = SSL_peek_ex(session_.get(), &byte, 1, &size);
  return session_outcome(result, size).status;
}

bool HttpSocket::has_hung_up() const {
  pollfd entry{.fd = descriptor_, .events = POLLRDHUP, .revents = 0};
  return ::poll(&entry, 1, 0) > 0 && (entry.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

int64_t HttpSocket::num_unconfirmed() const {
  int size = 0;
  return ::ioctl(descriptor_, SIOCOUTQ, &size) == 0 ? size : 0;
}

bool HttpSocket::finish_writing() {
  if (session_ != nullptr && SSL_is_init_finished(session_.get())) {
    ERR_clear_error();
    SSL_shutdown(session_.get());
  }
  return ::shutdown(descriptor_, SHUT_WR) == 0;
}

HttpSocket::Outcome HttpSocket::discard(std::span<char> buffer) const {
  return receive(descriptor_, buffer, 0);
}

void HttpSocket::break_on_close() const {
  const linger now{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(descriptor_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
}

}  // namespace paceline
