// HttpChunkDecoder takes a chunked body apart (RFC 9112, section 7.1), strictly.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace paceline {

// Extensions and trailer fields are checked and dropped. One byte of framing after the other, so
// that it never matters how they are cut.
class HttpChunkDecoder {
 public:
  HttpChunkDecoder(size_t max_body_bytes, size_t max_trailer_bytes)
      : max_body_bytes_(max_body_bytes), max_trailer_bytes_(max_trailer_bytes) {}

  // Appends the data among `bytes` to `body`, and says how many of them belong to the body. Throws
  // HttpRefusal 400, 413 as soon as a chunk announces too much, or 431 for too long a trailer.
  size_t take(std::string_view bytes, std::string& body);
  bool is_whole() const { return place_ == Place::end; }

 private:
  enum class Place {
    size,
    extension,
    size_end,  // the line feed of the size's line
    data,
    data_cr,
    data_lf,
    trailer_name,
    trailer_value,
    trailer_lf,
    last_lf,
    end,
  };

  void take_framing(char c, size_t body_bytes);
  void take_size(char c, size_t body_bytes);
  void take_trailer(char c);
  void end_size_line();

  size_t max_body_bytes_;
  size_t max_trailer_bytes_;
  Place place_ = Place::size;
  uint64_t chunk_bytes_ = 0;  // of the chunk, then those still to come
  size_t num_digits_ = 0;
  size_t extension_bytes_ = 0;
  size_t trailer_bytes_ = 0;
  bool at_line_start_ = true;
};

}  // namespace paceline
