// HttpRequestReader makes a request of bytes, however they are cut. It knows no socket.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "http/chunk_decoder.h"
#include "http/head.h"
#include "http/http.h"
#include "http/refusal.h"

namespace paceline {

// How long a request is and what becomes of its connection, as its header says.
struct HttpFraming {
  uint64_t content_length = 0;
  bool is_chunked = false;
  bool keep_alive = true;
  bool expects_continue = false;

  bool has_body() const { return is_chunked || content_length > 0; }
};

// For one request. It stops at the end of the head, until accept_body().
class HttpRequestReader {
 public:
  enum class State { head, gate, body, done, refused };

  // `limits` must outlive it.
  explicit HttpRequestReader(const HttpLimits& limits) : limits_(&limits), head_check_(limits) {}

  // How many of the bytes belong to the request: fewer than there are when it waits at the gate,
  // is done, or is refused.
  size_t take(std::string_view bytes);
  // state() goes from gate to body, or to done without one.
  void accept_body();

  State state() const { return state_; }
  bool has_begun() const { return has_begun_; }
  const HttpRefusal& refusal() const { return *refusal_; }

  // From the gate on; of a refused one, what was read. A HEAD is a GET here, and `is_head`.
  HttpRequest& request() { return request_; }
  const HttpFraming& framing() const { return framing_; }
  bool is_head() const { return is_head_; }
  int version_minor() const { return version_minor_; }

 private:
  size_t take_head(std::string_view bytes);
  size_t take_body(std::string_view bytes);
  void read_head();

  const HttpLimits* limits_;
  State state_ = State::head;
  bool has_begun_ = false;
  bool is_head_ = false;
  int version_minor_ = 1;
  std::string head_;
  HttpHeadCheck head_check_;
  HttpFraming framing_;
  std::optional<HttpChunkDecoder> chunks_;
  HttpRequest request_;
  std::optional<HttpRefusal> refusal_;
};

}  // namespace paceline
