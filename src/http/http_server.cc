#if defined(__clang__)
// Clang 14 can't emit a coroutine with -fsanitize=function ("difference across sections").
#pragma clang attribute push(__attribute__((no_sanitize("function"))), apply_to = function)
#endif

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <cerrno>
#include <list>
#include <optional>

#include "http/connection.h"
#include "http/descriptor_limit.h"

namespace paceline {
namespace {

// Further connections over a limit are closed without a response.
constexpr size_t kMaxRejected = 256;
constexpr std::chrono::milliseconds kAcceptPause{50};
constexpr size_t kAcceptsAtOnce = 64;

struct Listener {
  Listener(asio::io_context& context, OwnedDescriptor socket)
      : descriptor(context, socket.get()), pause(context) {
    socket.release();
  }

  HttpDescriptor descriptor;
  HttpTimer pause;
  bool lacks_descriptors = false;
};

class AsioHttpServer final : public HttpServer {
 public:
  AsioHttpServer(const HttpAddress& address, const HttpLimits& limits, HttpHandler handler);

  uint16_t port() const override { return port_; }
  void run() override { pool_.context.run(); }
  void post(std::function<void()> work) override;
  void after(std::chrono::milliseconds delay, std::function<void()> work) override;
  void close_listeners() override;
  void stop() override;
  HttpCounters counters() const override;

 private:
  Awaitable<void> listen(Listener& listener);
  void accept_some(Listener& listener);
  void admit(OwnedDescriptor socket, HttpPeer peer);
  bool is_over_limit(const HttpPeer& peer) const;
  void shut_listeners();
  void stop_now();

  HttpConnectionPool pool_;
  std::optional<TlsContext> tls_;
  uint16_t port_ = 0;
  SocketFile file_;
  std::atomic<bool> is_stopped_{false};
  std::list<Listener> listeners_;
  std::list<HttpTimer> delays_;
  asio::executor_work_guard<HttpExecutor> work_;
};

// The system gives out the lowest free number.
bool has_free_descriptors(int any_descriptor) {
  const OwnedDescriptor probe(::fcntl(any_descriptor, F_DUPFD_CLOEXEC, 0));
  return probe.get() >= 0 && probe.get() < descriptor_mark();
}

bool is_shortage(int error) {
  return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

AsioHttpServer::AsioHttpServer(const HttpAddress& address, const HttpLimits& limits,
                               HttpHandler handler)
    : pool_(limits, std::move(handler)), work_(pool_.context.get_executor()) {
  if (!address.tls_certificate.empty() || !address.tls_key.empty()) {
    tls_.emplace(address.tls_certificate, address.tls_key);
  }
  raise_descriptor_limit();
  HttpListeners opened = open_http_listeners(address);
  port_ = opened.port;
  file_ = std::move(opened.file);
  for (OwnedDescriptor& socket : opened.sockets) {
    Listener& listener = listeners_.emplace_back(pool_.context, std::move(socket));
    asio::co_spawn(
        pool_.context, [this, &listener] { return listen(listener); }, asio::detached);
  }
}

Awaitable<void> AsioHttpServer::listen(Listener& listener) {
  boost::system::error_code error;
  while (listener.descriptor.is_open()) {
    if (listener.lacks_descriptors && !has_free_descriptors(listener.descriptor.native_handle())) {
      listener.pause.expires_after(kAcceptPause);
      co_await listener.pause.async_wait(asio::redirect_error(kAwait, error));
      continue;
    }
    co_await listener.descriptor.async_wait(HttpDescriptor::wait_read,
                                            asio::redirect_error(kAwait, error));
    if (!error) accept_some(listener);
  }
}

void AsioHttpServer::accept_some(Listener& listener) {
  listener.lacks_descriptors = false;
  for (size_t i = 0; i < kAcceptsAtOnce && !listener.lacks_descriptors; ++i) {
    try {
      AcceptedSocket accepted = accept_http(listener.descriptor.native_handle());
      if (accepted.error == EAGAIN) return;
      listener.lacks_descriptors = is_shortage(accepted.error);
      if (accepted.error != 0) continue;  // as a rule the client has gone already
      listener.lacks_descriptors = accepted.descriptor >= descriptor_mark();
      admit(OwnedDescriptor(accepted.descriptor), std::move(accepted.peer));
    } catch (const std::exception&) {  // no memory, or no room in epoll: without this client
      listener.lacks_descriptors = true;
    }
  }
}

void AsioHttpServer::admit(OwnedDescriptor socket, HttpPeer peer) {
  ++pool_.num_accepted;
  const bool is_over = is_over_limit(peer);
  if (is_over && (tls_ || pool_.num_rejected >= kMaxRejected)) return;
  TlsSession session = tls_ ? tls_->new_session(socket.get()) : TlsSession();
  std::make_shared<HttpConnection>(pool_, std::move(socket), std::move(session), std::move(peer),
                                   is_over ? HttpAdmission::rejected : HttpAdmission::served)
      ->start();
}

bool AsioHttpServer::is_over_limit(const HttpPeer& peer) const {
  if (pool_.num_connections >= static_cast<int64_t>(pool_.limits.max_connections)) return true;
  const auto count = pool_.connections_by_address.find(peer.counted_as);
  return !peer.is_loopback && count != pool_.connections_by_address.end() &&
         count->second >= pool_.limits.max_connections_per_address;
}

void AsioHttpServer::post(std::function<void()> work) {
  asio::post(pool_.context,
             std::move(work));  // at its end it dies with the loop, on no other thread
}

void AsioHttpServer::after(std::chrono::milliseconds delay, std::function<void()> work) {
  if (is_stopped_) return;
  const auto timer = delays_.emplace(delays_.end(), pool_.context, delay);
  timer->async_wait([this, timer, work = std::move(work)](const boost::system::error_code& error) {
    delays_.erase(timer);
    if (!error) work();
  });
}

void AsioHttpServer::close_listeners() {
  // Who has connected already is served still.
  for (Listener& listener : listeners_) {
    if (listener.descriptor.is_open()) accept_some(listener);
  }
  shut_listeners();
  pool_.is_draining = true;
  for (HttpConnection* const connection : pool_.connections) connection->close_if_idle();
}

void AsioHttpServer::shut_listeners() {
  boost::system::error_code ignored;
  for (Listener& listener : listeners_) {
    listener.descriptor.close(ignored);
    listener.pause.cancel();
  }
  file_.remove();
}

void AsioHttpServer::stop() {
  if (!is_stopped_.exchange(true)) asio::post(pool_.context, [this] { stop_now(); });
}

void AsioHttpServer::stop_now() {
  shut_listeners();
  pool_.is_draining = true;
  for (HttpTimer& timer : delays_) timer.cancel();
  for (HttpConnection* const connection : pool_.connections) connection->close_now();
  work_.reset();  // run() returns when the connections have ended
}

HttpCounters AsioHttpServer::counters() const {
  return {.connections = pool_.num_connections,
          .accepted = pool_.num_accepted,
          .requests = pool_.num_requests,
          .malformed = pool_.num_malformed,
          .stalled = pool_.num_stalled,
          .slow = pool_.num_slow,
          .shed = pool_.num_shed,
          .unsent_bytes = pool_.num_unsent_bytes};
}

}  // namespace

std::unique_ptr<HttpServer> make_http_server(const HttpAddress& address, const HttpLimits& limits,
                                             HttpHandler handler) {
  return std::make_unique<AsioHttpServer>(address, limits, std::move(handler));
}

}  // namespace paceline

#if defined(__clang__)
#pragma clang attribute pop
#endif
