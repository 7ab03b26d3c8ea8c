// Any bytes are requests: complete, incomplete, or refused as a client's fault. The outcome doesn't
// depend on how they are cut.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/utf8.h"
#include "http/http.h"
#include "http/request_reader.h"

namespace {

using namespace paceline;
using State = HttpRequestReader::State;

void require(bool condition) {
  if (!condition) std::abort();
}

HttpLimits limits() {
  return {.max_uri_bytes = 64,
          .max_header_line_bytes = 96,
          .max_header_bytes = 256,
          .max_header_fields = 8,
          .max_body_bytes = 128};
}

bool has_control(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte < 0x20 && c != '\t') || byte == 0x7f;
  });
}

void require_sound(HttpRequestReader& reader) {
  const HttpRequest& request = reader.request();
  require(!request.method.empty() && !request.path.empty());
  require(is_valid_utf8(request.path) && !has_control(request.path));
  require(request.path.find('\t') == std::string::npos && !has_control(request.query));
  require(request.headers.size() <= limits().max_header_fields);
  for (const HttpHeader& header : request.headers) {
    require(!header.name.empty() && !has_control(header.name) && !has_control(header.value));
    require(request.header(header.name) != nullptr);
  }
  require(request.body.size() <= limits().max_body_bytes);
  require(reader.framing().is_chunked || request.body.size() <= reader.framing().content_length);
}

// The outcome of the first request as text; `taken` is the begin of the next one.
std::string outcome(std::string_view bytes, std::size_t cut, std::size_t& taken) {
  const HttpLimits used = limits();
  HttpRequestReader reader(used);
  taken = 0;
  while (taken < bytes.size() && (reader.state() == State::head || reader.state() == State::body)) {
    taken += reader.take(bytes.substr(taken, cut));
    if (reader.state() == State::gate) reader.accept_body();
  }
  std::string text = std::to_string(static_cast<int>(reader.state()));
  if (reader.state() == State::head) return text;
  if (reader.state() == State::refused) {
    const int status = reader.refusal().status();
    require(status == 400 || status == 413 || status == 414 || status == 431);
    require(is_valid_utf8(reader.refusal().what()));
    return text + std::to_string(status) + reader.refusal().what();
  }
  require_sound(reader);
  text += reader.request().method + reader.request().path + reader.request().query;
  for (const HttpHeader& header : reader.request().headers) text += header.name + header.value;
  return text + reader.request().body;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  // Pipelined requests, one after the other.
  for (int i = 0; i < 4 && !bytes.empty(); ++i) {
    std::size_t taken = 0;
    const std::string whole = outcome(bytes, bytes.size(), taken);
    for (const std::size_t cut : {std::size_t{1}, std::size_t{7}, 1 + size % 61}) {
      std::size_t taken_in_pieces = 0;
      require(outcome(bytes, cut, taken_in_pieces) == whole);
      if (whole.front() == '3') require(taken_in_pieces == taken);  // done
    }
    if (whole.front() != '3') return 0;
    bytes.remove_prefix(taken);
  }
  return 0;
}
