#include "tests/http/http_client.h"

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cctype>
#include <cstdlib>
#include <utility>

namespace paceline {
namespace {

constexpr std::chrono::milliseconds kPatience{5000};

bool is_readable(int descriptor, std::chrono::milliseconds within) {
  pollfd entry{.fd = descriptor, .events = POLLIN, .revents = 0};
  return ::poll(&entry, 1, static_cast<int>(within.count())) > 0;
}

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

}  // namespace

std::string RawAnswer::header(std::string_view name) const {
  const std::string all = lower(head);
  const size_t line = all.find("\r\n" + lower(std::string(name)) + ": ");
  if (line == std::string::npos) return "";
  const size_t value = line + 2 + name.size() + 2;
  return head.substr(value, head.find("\r\n", value) - value);
}

RawHttpClient::RawHttpClient(uint16_t port, const std::string& address) {
  descriptor_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  ::inet_pton(AF_INET, address.c_str(), &to.sin_addr);
  if (::connect(descriptor_, reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) close();
}

RawHttpClient RawHttpClient::to_unix(const std::string& path) {
  RawHttpClient client(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  path.copy(to.sun_path, sizeof to.sun_path - 1);
  if (::connect(client.descriptor_, reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) {
    client.close();
  }
  return client;
}

RawHttpClient::RawHttpClient(RawHttpClient&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), input_(std::move(other.input_)) {}

RawHttpClient::~RawHttpClient() { close(); }

bool RawHttpClient::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
  return true;
}

bool RawHttpClient::receive() {
  char buffer[16384];
  if (!is_readable(descriptor_, kPatience)) return false;
  const ssize_t received = ::recv(descriptor_, buffer, sizeof buffer, 0);
  if (received <= 0) return false;
  input_.append(buffer, static_cast<size_t>(received));
  return true;
}

std::string RawHttpClient::take(size_t size) {
  while (input_.size() < size && receive()) {
  }
  std::string taken = input_.substr(0, size);
  input_.erase(0, size);
  return taken;
}

RawAnswer RawHttpClient::read_head() {
  RawAnswer answer;
  size_t end = 0;
  while ((end = input_.find("\r\n\r\n")) == std::string::npos) {
    if (!receive()) return answer;
  }
  answer.head = take(end + 4);
  if (answer.head.starts_with("HTTP/1.1 ")) answer.status = std::atoi(answer.head.c_str() + 9);
  return answer;
}

RawAnswer RawHttpClient::read_answer_to_head() {
  RawAnswer answer = read_head();
  answer.is_whole = answer.status != 0;
  return answer;
}

std::string RawHttpClient::read_some(size_t at_least) {
  while (input_.size() < at_least && receive()) {
  }
  return std::exchange(input_, {});
}

void RawHttpClient::read_chunks(RawAnswer& answer) {
  while (true) {
    size_t end = 0;
    while ((end = input_.find("\r\n")) == std::string::npos) {
      if (!receive()) return;
    }
    const size_t size = std::strtoul(take(end + 2).c_str(), nullptr, 16);
    const std::string chunk = take(size + 2);
    answer.body += chunk.substr(0, std::min(size, chunk.size()));
    if (chunk.size() < size + 2) return;
    if (size == 0) {
      answer.is_whole = true;
      return;
    }
  }
}

RawAnswer RawHttpClient::read_answer() {
  RawAnswer answer = read_head();
  if (answer.status == 0) return answer;
  if (answer.header("Transfer-Encoding") == "chunked") {
    read_chunks(answer);
  } else if (const std::string length = answer.header("Content-Length"); !length.empty()) {
    const size_t size = std::strtoul(length.c_str(), nullptr, 10);
    answer.body = take(size);
    answer.is_whole = answer.body.size() == size;
  } else {
    while (receive()) {
    }
    answer.body = std::exchange(input_, {});
    answer.is_whole = true;
  }
  return answer;
}

bool RawHttpClient::is_closed(std::chrono::milliseconds within) {
  const auto end = std::chrono::steady_clock::now() + within;
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        end - std::chrono::steady_clock::now());
    if (left.count() < 0 || !is_readable(descriptor_, left)) return false;
    char buffer[16384];
    if (::recv(descriptor_, buffer, sizeof buffer, 0) <= 0) return true;
  }
}

void RawHttpClient::half_close() { ::shutdown(descriptor_, SHUT_WR); }

void RawHttpClient::close() {
  if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
}

void RawHttpClient::reset() {
  const linger now{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(descriptor_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
  close();
}

}  // namespace paceline
