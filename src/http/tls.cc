#include "http/socket.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <new>

#include "base/error.h"

namespace paceline {
namespace {

int socket_of(BIO* bio) { return static_cast<int>(reinterpret_cast<intptr_t>(BIO_get_data(bio))); }

bool is_for_later(int error) { return error == EAGAIN || error == EINTR; }

// OpenSSL's own socket BIO writes with write(), which raises SIGPIPE.
int write_to_socket(BIO* bio, const char* bytes, int size) {
  BIO_clear_retry_flags(bio);
  const ssize_t sent = ::send(socket_of(bio), bytes, static_cast<size_t>(size), MSG_NOSIGNAL);
  if (sent < 0 && is_for_later(errno)) BIO_set_retry_write(bio);
  return static_cast<int>(sent);
}

int read_from_socket(BIO* bio, char* bytes, int size) {
  BIO_clear_retry_flags(bio);
  const ssize_t received = ::recv(socket_of(bio), bytes, static_cast<size_t>(size), 0);
  if (received < 0 && is_for_later(errno)) BIO_set_retry_read(bio);
  return static_cast<int>(received);
}

long control_socket(BIO* /*bio*/, int command, long /*number*/, void* /*pointer*/) {
  return command == BIO_CTRL_FLUSH ? 1 : 0;
}

BIO_METHOD* socket_method() {
  static BIO_METHOD* const method = [] {
    BIO_METHOD* const made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "socket");
    if (made == nullptr) throw std::bad_alloc();
    BIO_meth_set_write(made, write_to_socket);
    BIO_meth_set_read(made, read_from_socket);
    BIO_meth_set_ctrl(made, control_socket);
    return made;
  }();
  return method;
}

// HTTP/1.1 is what is offered; a client that names only others gets no answer to the extension.
int choose_protocol(SSL* /*session*/, const unsigned char** chosen, unsigned char* chosen_size,
                    const unsigned char* offered, unsigned int offered_size, void* /*unused*/) {
  static constexpr std::array<unsigned char, 9> kHttp11 = {8,   'h', 't', 't', 'p',
                                                           '/', '1', '.', '1'};
  unsigned char* match = nullptr;
  if (SSL_select_next_proto(&match, chosen_size, kHttp11.data(), kHttp11.size(), offered,
                            offered_size) != OPENSSL_NPN_NEGOTIATED) {
    return SSL_TLSEXT_ERR_NOACK;
  }
  *chosen = match;
  return SSL_TLSEXT_ERR_OK;
}

void check_readable(std::string_view what, const std::string& file) {
  if (::access(file.c_str(), R_OK) == 0) return;
  throw error_of(ErrorCode::not_found, "{} {}: {}", what, file, std::strerror(errno));
}

[[noreturn]] void throw_unusable(const std::string& file, std::string_view what) {
  const char* const reason = ERR_reason_error_string(ERR_peek_last_error());
  ERR_clear_error();
  throw error_of(ErrorCode::invalid,
                 "{}: can't be used as {} ({}); PEM files of a certificate (with its "
                 "chain) and of its key are expected",
                 file, what, reason == nullptr ? "no reason given" : reason);
}

}  // namespace

void TlsSessionDeleter::operator()(ssl_st* session) const { SSL_free(session); }

TlsContext::TlsContext(const std::string& certificate_file, const std::string& key_file)
    : context_(SSL_CTX_new(TLS_server_method()), SSL_CTX_free) {
  if (context_ == nullptr) throw std::bad_alloc();
  SSL_CTX* const context = context_.get();
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_options(
      context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE);
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_alpn_select_cb(context, choose_protocol, nullptr);
  check_readable("TLS certificate", certificate_file);
  check_readable("TLS key", key_file);
  ERR_clear_error();
  if (SSL_CTX_use_certificate_chain_file(context, certificate_file.c_str()) != 1) {
    throw_unusable(certificate_file, "a TLS certificate");
  }
  if (SSL_CTX_use_PrivateKey_file(context, key_file.c_str(), SSL_FILETYPE_PEM) != 1 ||
      SSL_CTX_check_private_key(context) != 1) {
    throw_unusable(key_file, "the TLS key of that certificate");
  }
}

TlsSession TlsContext::new_session(int socket) const {
  TlsSession session(SSL_new(context_.get()));
  BIO* const bio = BIO_new(socket_method());
  if (session == nullptr || bio == nullptr) {
    BIO_free(bio);
    throw std::bad_alloc();
  }
  BIO_set_data(bio, reinterpret_cast<void*>(static_cast<intptr_t>(socket)));
  BIO_set_init(bio, 1);
  SSL_set_bio(session.get(), bio, bio);
  SSL_set_accept_state(session.get());
  return session;
}

}  // namespace paceline
