// TLS with a certificate made here.
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "tests/expect_error.h"
#include "tests/http/http_fixture.h"

namespace paceline {
namespace {

template <auto Free>
struct Freed {
  template <class T>
  void operator()(T* object) const {
    Free(object);
  }
};
using Key = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY_free>>;

// A key and a certificate that it signed itself, as files.
class SelfSigned {
 public:
  SelfSigned() {
    const auto directory = std::filesystem::temp_directory_path();
    const std::string stem = "paceline_tls_" + std::to_string(::getpid());
    certificate_file_ = directory / (stem + ".crt");
    key_file_ = directory / (stem + ".key");
    const Key key(EVP_EC_gen("P-256"));
    const std::unique_ptr<X509, Freed<X509_free>> certificate(X509_new());
    X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -60);
    X509_gmtime_adj(X509_getm_notAfter(certificate.get()), 3600);
    X509_set_pubkey(certificate.get(), key.get());
    X509_NAME* const name = X509_get_subject_name(certificate.get());
    const auto* const here = reinterpret_cast<const unsigned char*>("localhost");
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, here, -1, -1, 0);
    X509_set_issuer_name(certificate.get(), name);
    X509_sign(certificate.get(), key.get(), EVP_sha256());
    FILE* file = std::fopen(certificate_file_.c_str(), "w");
    PEM_write_X509(file, certificate.get());
    std::fclose(file);
    file = std::fopen(key_file_.c_str(), "w");
    PEM_write_PrivateKey(file, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
    std::fclose(file);
  }
  SelfSigned(const SelfSigned&) = delete;
  SelfSigned& operator=(const SelfSigned&) = delete;
  ~SelfSigned() {
    std::filesystem::remove(certificate_file_);
    std::filesystem::remove(key_file_);
  }

  HttpAddress address() const {
    return {.port = 0, .tls_certificate = certificate_file_, .tls_key = key_file_};
  }
  std::string certificate_file_;
  std::string key_file_;
};

// Blocking TLS over a raw client's socket.
class TlsClient {
 public:
  explicit TlsClient(RawHttpClient& socket)
      : context_(SSL_CTX_new(TLS_client_method())), session_(SSL_new(context_.get())) {
    SSL_set_fd(session_.get(), socket.descriptor());
    static constexpr unsigned char kProtocols[] = "\x02h2\x08http/1.1";
    SSL_set_alpn_protos(session_.get(), kProtocols, sizeof kProtocols - 1);
    is_connected_ = SSL_connect(session_.get()) == 1;
  }

  bool is_connected() const { return is_connected_; }
  std::string protocol() const {
    const unsigned char* name = nullptr;
    unsigned int size = 0;
    SSL_get0_alpn_selected(session_.get(), &name, &size);
    return {reinterpret_cast<const char*>(name), size};
  }
  void send(std::string_view bytes) {
    SSL_write(session_.get(), bytes.data(), static_cast<int>(bytes.size()));
  }
  std::string read(size_t at_least) {
    std::string text;
    char buffer[16384];
    while (text.size() < at_least) {
      const int size = SSL_read(session_.get(), buffer, sizeof buffer);
      if (size <= 0) break;
      text.append(buffer, static_cast<size_t>(size));
    }
    return text;
  }
  // The other side has said that nothing more comes.
  bool is_finished() {
    char byte = 0;
    const int result = SSL_read(session_.get(), &byte, 1);
    return result <= 0 && SSL_get_error(session_.get(), result) == SSL_ERROR_ZERO_RETURN;
  }
  void say_goodbye() { SSL_shutdown(session_.get()); }

 private:
  std::unique_ptr<SSL_CTX, Freed<SSL_CTX_free>> context_;
  std::unique_ptr<SSL, Freed<SSL_free>> session_;
  bool is_connected_ = false;
};

class HttpTlsTest : public HttpFixture {
 protected:
  SelfSigned files_;
};

TEST_F(HttpTlsTest, AnswersAgainAndAgain) {
  start(files_.address());
  RawHttpClient socket = connect();
  TlsClient client(socket);
  ASSERT_TRUE(client.is_connected());
  EXPECT_EQ(client.protocol(), "http/1.1");
  for (int i = 0; i < 3; ++i) {
    client.send(post("/echo", "secret"));
    EXPECT_THAT(client.read(120), testing::HasSubstr("POST /echo? secret"));
  }
  client.send("GET /echo HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
  client.read(120);
  EXPECT_TRUE(client.is_finished());
}

TEST_F(HttpTlsTest, StreamsMoreThanTheSocketHolds) {
  start(files_.address());
  RawHttpClient socket = connect();
  TlsClient client(socket);
  client.send(get("/hold"));
  const auto held = next_held();
  const std::string body(12 << 20, 'x');
  on_io([&] {
    held->exchange->begin({});
    for (size_t at = 0; at < body.size(); at += 1 << 20) {
      held->exchange->write(body.substr(at, 1 << 20));
    }
    held->exchange->end();
  });
  std::string answer;
  while (!answer.ends_with("0\r\n\r\n")) {
    const std::string piece = client.read(1);
    ASSERT_FALSE(piece.empty());
    answer += piece;
  }
  EXPECT_EQ(static_cast<size_t>(std::count(answer.begin(), answer.end(), 'x')), body.size());
}

TEST_F(HttpTlsTest, NoticesADisconnectWhileItIsSilent) {
  start(files_.address());
  for (const bool says_goodbye : {true, false}) {
    RawHttpClient socket = connect();
    TlsClient client(socket);
    client.send(get("/hold"));
    const auto held = next_held();
    std::this_thread::sleep_for(10ms);
    EXPECT_FALSE(is_closed(*held));
    const auto since = std::chrono::steady_clock::now();
    if (says_goodbye) {
      client.say_goodbye();
    } else {
      socket.reset();
    }
    expect_noticed(*held, since);
  }
}

TEST_F(HttpTlsTest, WaitsSoLongForAHandshake) {
  limits_.header_time = 50ms;
  start(files_.address());
  RawHttpClient silent = connect();
  EXPECT_TRUE(silent.is_closed());
  RawHttpClient plain = connect();
  plain.send(get("/echo"));
  EXPECT_TRUE(plain.is_closed());
  for (const bool resets : {true, false}) {
    RawHttpClient gone = connect();
    gone.send("\x16\x03\x01\x02");
    resets ? gone.reset() : gone.close();
  }
  EXPECT_TRUE(eventually([&] { return server_->counters().connections == 0; }));
}

TEST_F(HttpTlsTest, CutsOffWhoTakesNothing) {
  limits_.write_stall = 80ms;
  start(files_.address());
  RawHttpClient socket = connect();
  TlsClient client(socket);
  client.send(get("/hold"));
  const auto held = next_held();
  on_io([&] {
    held->exchange->begin({});
    held->exchange->write(std::string(16 << 20, 'x'));
  });
  ASSERT_TRUE(eventually([&] { return is_closed(*held); }));
  EXPECT_EQ(server_->counters().stalled, 1);
}

TEST_F(HttpTlsTest, SaysWhichFileItCannotUse) {
  HttpAddress address = files_.address();
  address.tls_key = "/no/such.key";
  expect_error(ErrorCode::not_found, {"TLS key /no/such.key: No such file or directory"},
               [&] { make_http_server(address, limits_, {}); });
  address = files_.address();
  address.tls_certificate = files_.key_file_;
  expect_error(ErrorCode::invalid, {files_.key_file_, "certificate"},
               [&] { make_http_server(address, limits_, {}); });
  address = files_.address();
  address.tls_key = "";
  expect_error(ErrorCode::not_found, {"TLS key"}, [&] { make_http_server(address, limits_, {}); });
}

}  // namespace
}  // namespace paceline
