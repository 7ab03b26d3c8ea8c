#include "http/chunk_decoder.h"

#include <algorithm>

#include "http/field.h"
#include "http/refusal.h"

namespace paceline {
namespace {

constexpr size_t kMaxSizeDigits = 16;
constexpr size_t kMaxExtensionBytes = 256;

[[noreturn]] void refuse_size() {
  throw HttpRefusal(400, "the body isn't well-formed chunks: hexadecimal size, CRLF, data, CRLF");
}

}  // namespace

size_t HttpChunkDecoder::take(std::string_view bytes, std::string& body) {
  size_t taken = 0;
  while (taken < bytes.size() && !is_whole()) {
    if (place_ == Place::data) {
      const size_t size =
          static_cast<size_t>(std::min<uint64_t>(chunk_bytes_, bytes.size() - taken));
      body.append(bytes.substr(taken, size));
      taken += size;
      chunk_bytes_ -= size;
      if (chunk_bytes_ == 0) place_ = Place::data_cr;
    } else {
      take_framing(bytes[taken++], body.size());
    }
  }
  return taken;
}

void HttpChunkDecoder::take_framing(char c, size_t body_bytes) {
  switch (place_) {
    case Place::size:
      return take_size(c, body_bytes);
    case Place::extension:
      if (c == '\r') {
        place_ = Place::size_end;
      } else if (is_control_character(c) || ++extension_bytes_ > kMaxExtensionBytes) {
        throw HttpRefusal(400, "a chunk extension that is too long or not text");
      }
      return;
    case Place::size_end:
      if (c != '\n') refuse_size();
      return end_size_line();
    case Place::data_cr:
      if (c != '\r') refuse_size();
      place_ = Place::data_lf;
      return;
    case Place::data_lf:
      if (c != '\n') refuse_size();
      place_ = Place::size;
      return;
    default:
      return take_trailer(c);
  }
}

void HttpChunkDecoder::take_size(char c, size_t body_bytes) {
  const int digit = hex_digit(c);
  if (digit >= 0) {
    if (++num_digits_ > kMaxSizeDigits) refuse_size();
    chunk_bytes_ = chunk_bytes_ * 16 + static_cast<uint64_t>(digit);
    if (chunk_bytes_ > max_body_bytes_ - std::min(max_body_bytes_, body_bytes)) {
      throw HttpRefusal(
          413, "the body is too long: the limit is " + std::to_string(max_body_bytes_) + " bytes");
    }
    return;
  }
  if (num_digits_ == 0 || (c != '\r' && c != ';')) refuse_size();
  place_ = c == ';' ? Place::extension : Place::size_end;
}

void HttpChunkDecoder::end_size_line() {
  place_ = chunk_bytes_ > 0 ? Place::data : Place::trailer_name;
  num_digits_ = 0;
  extension_bytes_ = 0;
  at_line_start_ = true;
}

// Field lines until an empty one. What they say is dropped: nothing here may change what the header
// said.
void HttpChunkDecoder::take_trailer(char c) {
  if (place_ == Place::trailer_lf || place_ == Place::last_lf) {
    if (c != '\n') throw HttpRefusal(400, "a carriage return without a line feed");
    place_ = place_ == Place::last_lf ? Place::end : Place::trailer_name;
    at_line_start_ = true;
    return;
  }
  if (++trailer_bytes_ > max_trailer_bytes_) throw HttpRefusal(431, "the trailer is too long");
  if (place_ == Place::trailer_name) {
    if (at_line_start_ && c == '\r') {
      place_ = Place::last_lf;
    } else if (c == ':' && !at_line_start_) {
      place_ = Place::trailer_value;
    } else if (is_control_character(c) || c == ' ' || c == '\t' || c == ':') {
      throw HttpRefusal(400, "a trailer line that isn't `name: value`");
    }
    at_line_start_ = false;
    return;
  }
  if (c == '\r') {
    place_ = Place::trailer_lf;
  } else if (is_control_character(c)) {
    throw HttpRefusal(400, "a control character in the trailer");
  }
}

}  // namespace paceline
