#include "weights/gguf_cursor.h"

#include <fmt/format.h>

#include <bit>

namespace paceline {

static_assert(std::endian::native == std::endian::little, "GGUF's numbers are read as they are");

std::span<const std::byte> GgufCursor::string(uint64_t max_bytes, std::string_view what) {
  const auto length = number<uint64_t>();
  if (length > max_bytes) {
    corrupt(fmt::format("{} of {} bytes, at most {} are allowed", what, length, max_bytes));
  }
  return take(length);
}

void GgufCursor::fail(ErrorCode code, const std::string& what) const {
  throw Error(code, fmt::format("{}: {}: {}", where_, subject_, what));
}

void GgufCursor::fail_at_end(uint64_t num_bytes) const {
  corrupt(fmt::format("{} bytes are expected at byte {}, but the file has only {}; it is truncated",
                      num_bytes, position_, file_.size()));
}

void GgufCursor::fail_at_limit() const {
  corrupt(fmt::format("metadata and tensor list pass the {} bytes that are allowed", limit_));
}

}  // namespace paceline
