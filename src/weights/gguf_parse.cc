// The layout of the file is that of the GGUF specification (ggml/docs/gguf.md); version 2 differs
// from 3 only in that 3 may be big-endian.
#include "weights/gguf_parse.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>
#include <optional>

#include "base/checked.h"
#include "base/error.h"
#include "weights/gguf_cursor.h"
#include "weights/quoted_name.h"

namespace paceline {
namespace {

constexpr std::string_view kMagic = "GGUF";
constexpr std::string_view kAlignmentKey = "general.alignment";
constexpr uint64_t kDefaultAlignment = 32;

struct Counts {
  uint64_t num_tensors = 0;
  uint64_t num_keys = 0;
};

void check_magic(GgufCursor& cursor, std::span<const std::byte> file, std::string_view where) {
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  if (text.starts_with("version https://git-lfs")) {
    throw Error(
        ErrorCode::corrupt,
        fmt::format("{}: a Git LFS pointer, not the file itself; `git lfs pull` brings it", where));
  }
  if (!text.starts_with(kMagic)) {
    cursor.corrupt(fmt::format("expected \"GGUF\" as the first bytes, found {}; not a GGUF file?",
                               quoted_name(text.substr(0, kMagic.size()))));
  }
  cursor.take(kMagic.size());
}

void check_version(GgufCursor& cursor) {
  const auto version = cursor.number<uint32_t>();
  if (version == 2 || version == 3) return;
  if ((version & 0xFFFF) == 0 && version != 0) {
    cursor.fail(ErrorCode::unsupported, "a big-endian file, only little-endian ones can be read");
  }
  cursor.fail(ErrorCode::unsupported,
              fmt::format("GGUF version {}, only 2 and 3 can be read", version));
}

Counts read_counts(GgufCursor& cursor) {
  Counts counts;
  counts.num_tensors = cursor.number<uint64_t>();
  counts.num_keys = cursor.number<uint64_t>();
  if (counts.num_tensors > kMaxGgufTensors) {
    cursor.corrupt(
        fmt::format("{} tensors, at most {} are allowed", counts.num_tensors, kMaxGgufTensors));
  }
  if (counts.num_keys > kMaxGgufKeys) {
    cursor.corrupt(
        fmt::format("{} metadata keys, at most {} are allowed", counts.num_keys, kMaxGgufKeys));
  }
  return counts;
}

GgufValueType read_value_type(GgufCursor& cursor) {
  const auto number = cursor.number<uint32_t>();
  if (number > static_cast<uint32_t>(GgufValueType::float64)) {
    cursor.corrupt(fmt::format("value type {}, expected 0 to 12", number));
  }
  return static_cast<GgufValueType>(number);
}

// For all types except strings and arrays.
uint64_t bytes_of(GgufValueType type) {
  switch (type) {
    case GgufValueType::uint8:
    case GgufValueType::int8:
    case GgufValueType::boolean:
      return 1;
    case GgufValueType::uint16:
    case GgufValueType::int16:
      return 2;
    case GgufValueType::uint64:
    case GgufValueType::int64:
    case GgufValueType::float64:
      return 8;
    default:
      return 4;
  }
}

void check_booleans(const GgufCursor& cursor, std::span<const std::byte> bytes) {
  for (const std::byte byte : bytes) {
    if (byte > std::byte{1}) {
      cursor.corrupt(fmt::format("a bool is {}, expected 0 or 1", std::to_integer<unsigned>(byte)));
    }
  }
}

// The bytes of `count` values of this type; strings include their lengths.
std::span<const std::byte> read_elements(GgufCursor& cursor, std::span<const std::byte> file,
                                         GgufValueType type, uint64_t count) {
  if (type != GgufValueType::string) {
    const auto bytes = cursor.take(count * bytes_of(type));
    if (type == GgufValueType::boolean) check_booleans(cursor, bytes);
    return bytes;
  }
  const uint64_t begin = cursor.position();
  for (uint64_t i = 0; i < count; ++i) cursor.string(kMaxGgufStringBytes, "a string");
  return file.subspan(begin, cursor.position() - begin);
}

void read_array(GgufCursor& cursor, std::span<const std::byte> file, GgufValue& value) {
  value.element_type = read_value_type(cursor);
  if (value.element_type == GgufValueType::array) {
    cursor.fail(ErrorCode::unsupported, "an array of arrays can't be read");
  }
  value.num_elements = cursor.number<uint64_t>();
  if (value.num_elements > kMaxGgufArrayElements) {
    cursor.corrupt(fmt::format("an array of {} elements, at most {} are allowed",
                               value.num_elements, kMaxGgufArrayElements));
  }
  value.bytes = read_elements(cursor, file, value.element_type, value.num_elements);
}

GgufValue read_value(GgufCursor& cursor, std::span<const std::byte> file) {
  GgufValue value;
  value.key = cursor.text(kMaxGgufNameBytes, "a key");
  cursor.set_subject("metadata " + quoted_name(value.key));
  value.type = read_value_type(cursor);
  if (value.type == GgufValueType::string) {
    value.bytes = cursor.string(kMaxGgufStringBytes, "a string");
  } else if (value.type == GgufValueType::array) {
    read_array(cursor, file, value);
  } else {
    value.bytes = read_elements(cursor, file, value.type, 1);
  }
  return value;
}

GgufMetadata read_metadata(GgufCursor& cursor, std::span<const std::byte> file, uint64_t num_keys,
                           std::string_view where) {
  std::vector<GgufValue> values;
  for (uint64_t i = 0; i < num_keys; ++i) {
    cursor.set_subject(fmt::format("metadata key {} of {}", i + 1, num_keys));
    values.push_back(read_value(cursor, file));
  }
  GgufMetadata metadata(std::string(where), std::move(values));
  const auto& sorted = metadata.values();
  const auto twice = std::ranges::adjacent_find(sorted, {}, &GgufValue::key);
  if (twice != sorted.end()) {
    cursor.set_subject("metadata " + quoted_name(twice->key));
    cursor.corrupt("the key occurs twice");
  }
  return metadata;
}

uint64_t read_alignment(GgufCursor& cursor, const GgufMetadata& metadata) {
  const auto alignment = metadata.integer(kAlignmentKey);
  if (!alignment) return kDefaultAlignment;
  const auto value = static_cast<uint64_t>(*alignment);
  if (value < kMinGgufAlignment || value > kMaxGgufAlignment || !std::has_single_bit(value)) {
    cursor.set_subject(fmt::format("metadata \"{}\"", kAlignmentKey));
    cursor.corrupt(fmt::format("{}, expected a power of two from {} to {}", *alignment,
                               kMinGgufAlignment, kMaxGgufAlignment));
  }
  return value;
}

// A tensor as the file lists it; its bytes are located after the list is read.
struct GgufTensorClaim {
  GgufTensorInfo tensor;
  uint64_t offset = 0;  // from the start of the data
  uint64_t num_bytes = 0;
};

Extents read_extents(GgufCursor& cursor) {
  const auto rank = cursor.number<uint32_t>();
  if (rank > kMaxGgufDimensions) {
    cursor.corrupt(fmt::format("{} dimensions, at most {} are allowed", rank, kMaxGgufDimensions));
  }
  std::array<int64_t, kMaxGgufDimensions> extents{};
  for (uint32_t i = 0; i < rank; ++i) {
    const auto extent = cursor.number<uint64_t>();
    if (extent == 0 || extent > uint64_t{INT64_MAX}) {
      cursor.corrupt(fmt::format("dimension {} is {}, expected 1 to 2^63 - 1", i, extent));
    }
    extents[rank - 1 - i] = static_cast<int64_t>(extent);
  }
  return Extents(std::span<const int64_t>(extents.data(), rank));
}

GgufTypeLayout read_type(GgufCursor& cursor) {
  const auto number = cursor.number<uint32_t>();
  if (const auto layout = find_gguf_type(number)) return *layout;
  const std::string_view name = gguf_type_name(number);
  if (name.empty()) cursor.corrupt(fmt::format("the format has no tensor type {}", number));
  cursor.fail(ErrorCode::unsupported, fmt::format("type {} can't be read", name));
}

uint64_t needed_bytes(const GgufCursor& cursor, const Extents& extents,
                      const GgufTypeLayout& layout) {
  const uint64_t row = extents.rank() == 0 ? 1 : static_cast<uint64_t>(extents[extents.rank() - 1]);
  if (row % layout.block_elements != 0) {
    cursor.corrupt(fmt::format("rows of {} elements, but {} has blocks of {}", row, layout.name,
                               layout.block_elements));
  }
  std::array<uint64_t, kMaxGgufDimensions> factors{1, 1, 1, 1};
  std::ranges::transform(extents, factors.begin(),
                         [](int64_t extent) { return static_cast<uint64_t>(extent); });
  const auto elements = checked_product(factors);
  // The number of elements must fit as well.
  const auto bytes = elements && *elements <= uint64_t{INT64_MAX}
                         ? checked_mul(*elements / layout.block_elements, layout.block_bytes)
                         : std::nullopt;
  if (!bytes || *bytes > uint64_t{INT64_MAX}) {
    cursor.corrupt(fmt::format("shape {} needs 2^63 bytes or more", to_string(extents)));
  }
  return *bytes;
}

GgufTensorClaim read_gguf_claim(GgufCursor& cursor, uint64_t alignment) {
  GgufTensorClaim claim;
  GgufTensorInfo& tensor = claim.tensor;
  tensor.name = cursor.text(kMaxGgufNameBytes, "a name");
  cursor.set_subject("tensor " + quoted_name(tensor.name));
  tensor.extents = read_extents(cursor);
  const GgufTypeLayout layout = read_type(cursor);
  tensor.type = layout.type;
  claim.num_bytes = needed_bytes(cursor, tensor.extents, layout);
  claim.offset = cursor.number<uint64_t>();
  if (claim.offset % alignment != 0) {
    cursor.corrupt(
        fmt::format("offset {} isn't a multiple of the alignment {}", claim.offset, alignment));
  }
  return claim;
}

// Checks that each tensor is inside the data, and that none overlap.
void place_tensors(GgufCursor& cursor, std::span<const std::byte> data,
                   std::vector<GgufTensorClaim>& claims) {
  std::ranges::sort(claims, {}, &GgufTensorClaim::offset);
  uint64_t used = 0;
  const std::string* before = nullptr;
  for (auto& [tensor, offset, num_bytes] : claims) {
    cursor.set_subject("tensor " + quoted_name(tensor.name));
    if (offset > data.size() || num_bytes > data.size() - offset) {
      cursor.corrupt(fmt::format("{} bytes at {} pass the file's {} bytes of data; it is truncated",
                                 num_bytes, offset, data.size()));
    }
    if (offset < used) {
      cursor.corrupt(fmt::format("begins at {} of the data, inside {}, which ends at {}", offset,
                                 quoted_name(*before), used));
    }
    tensor.bytes = data.subspan(offset, num_bytes);
    used = offset + num_bytes;
    before = &tensor.name;
  }
}

std::vector<GgufTensorInfo> sorted_by_name(GgufCursor& cursor,
                                           std::vector<GgufTensorClaim> claims) {
  std::vector<GgufTensorInfo> tensors;
  tensors.reserve(claims.size());
  for (GgufTensorClaim& claim : claims) tensors.push_back(std::move(claim.tensor));
  std::ranges::sort(tensors, {}, &GgufTensorInfo::name);
  const auto twice = std::ranges::adjacent_find(tensors, {}, &GgufTensorInfo::name);
  if (twice != tensors.end()) {
    cursor.set_subject("tensor " + quoted_name(twice->name));
    cursor.corrupt("the name occurs twice");
  }
  return tensors;
}

}  // namespace

GgufContents parse_gguf(std::span<const std::byte> file, std::string_view where) {
  GgufCursor cursor(file, kMaxGgufMetadataBytes, where);
  check_magic(cursor, file, where);
  check_version(cursor);
  const Counts counts = read_counts(cursor);
  GgufContents contents;
  contents.metadata = read_metadata(cursor, file, counts.num_keys, where);
  const uint64_t alignment = read_alignment(cursor, contents.metadata);
  std::vector<GgufTensorClaim> claims;
  for (uint64_t i = 0; i < counts.num_tensors; ++i) {
    cursor.set_subject(fmt::format("tensor {} of {}", i + 1, counts.num_tensors));
    claims.push_back(read_gguf_claim(cursor, alignment));
  }
  // No overflow: the position is within kMaxGgufMetadataBytes.
  const uint64_t data_begin = (cursor.position() + alignment - 1) / alignment * alignment;
  place_tensors(cursor, file.subspan(std::min<uint64_t>(data_begin, file.size())), claims);
  contents.tensors = sorted_by_name(cursor, std::move(claims));
  return contents;
}

}  // namespace paceline
