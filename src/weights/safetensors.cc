#include "weights/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>

#include "base/checked.h"
#include "base/error.h"
#include "weights/dom_object.h"
#include "weights/quoted_name.h"

namespace paceline {
namespace {

namespace dom = simdjson::dom;

constexpr size_t kLengthBytes = 8;  // the header's length, little-endian, before the header
constexpr std::string_view kMetadataKey = "__metadata__";
constexpr std::string_view kUnsupportedDTypes[] = {
    "BOOL",    "F4",      "F6_E2M3", "F6_E3M2",     "U8",          "I8",
    "F8_E5M2", "F8_E4M3", "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ", "I16",
    "U16",     "I32",     "C64",     "F64",         "I64",         "U64"};

// One tensor's entry in the header; begin and end count from the start of the data.
struct TensorClaim {
  std::string_view name;  // lives in the parser
  DType dtype = DType::f32;
  Extents shape;
  uint64_t begin = 0;
  uint64_t end = 0;
};

// The file and the tensor or field that a message is about.
struct TensorPlace {
  std::string_view file;
  std::string subject;

  [[noreturn]] void fail(ErrorCode code, const std::string& what) const {
    throw Error(code, fmt::format("{}: {}: {}", file, subject, what));
  }
  [[noreturn]] void corrupt(const std::string& what) const { fail(ErrorCode::corrupt, what); }
};

uint64_t read_length(std::span<const std::byte> file) {
  uint64_t length = 0;
  for (size_t i = 0; i < kLengthBytes; ++i) length |= std::to_integer<uint64_t>(file[i]) << (8 * i);
  return length;
}

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// The header's JSON, without its length.
std::span<const std::byte> header_bytes(std::span<const std::byte> file, std::string_view where) {
  const TensorPlace place{where, "header length"};
  if (as_text(file).starts_with("version https://git-lfs")) {
    throw Error(
        ErrorCode::corrupt,
        fmt::format("{}: a Git LFS pointer, not the file itself; `git lfs pull` brings it", where));
  }
  if (file.size() < kLengthBytes) {
    place.corrupt(fmt::format("the file ends after {} of {} bytes", file.size(), kLengthBytes));
  }
  const uint64_t length = read_length(file);
  if (length > kMaxSafetensorsHeaderBytes) {
    place.corrupt(fmt::format("{} bytes, at most {} are allowed; not a safetensors file?", length,
                              kMaxSafetensorsHeaderBytes));
  }
  const auto rest = file.subspan(kLengthBytes);
  if (length > rest.size()) {
    place.corrupt(
        fmt::format("{} bytes, but only {} follow; the file is truncated", length, rest.size()));
  }
  const auto header = rest.first(static_cast<size_t>(length));
  if (!as_text(header).starts_with('{')) {
    TensorPlace{where, "header"}.corrupt("doesn't begin with `{`; not a safetensors file?");
  }
  return header;
}

void check_metadata(const dom::element& element, std::string_view where) {
  const TensorPlace place{where, "header: " + std::string(kMetadataKey)};
  dom::object object;
  if (element.get(object) != simdjson::SUCCESS) {
    place.corrupt(fmt::format("expected an object, found {}", dom_kind(element)));
  }
  for (const DomMember& member :
       unique_members(object, fmt::format("{}: {}", place.file, place.subject))) {
    if (!member.value.is_string()) {
      place.corrupt(fmt::format("{}: expected a string, found {}", quoted_name(member.key),
                                dom_kind(member.value)));
    }
  }
}

DType read_dtype(const dom::element& element, const TensorPlace& place) {
  std::string_view name;
  if (element.get(name) != simdjson::SUCCESS) {
    place.corrupt(fmt::format("dtype: expected a string, found {}", dom_kind(element)));
  }
  if (name == "F32") return DType::f32;
  if (name == "F16") return DType::f16;
  if (name == "BF16") return DType::bf16;
  if (name == "U32") return DType::u32;
  if (std::ranges::find(kUnsupportedDTypes, name) != std::end(kUnsupportedDTypes)) {
    place.fail(ErrorCode::unsupported,
               fmt::format("dtype {} can't be read (F32, F16, BF16 and U32 can)", name));
  }
  place.corrupt(fmt::format("dtype: the format has no {}", quoted_name(name)));
}

// Fills `values` from an array of unsigned integers; nothing when it has more than fit. Returns how
// many there were.
std::optional<size_t> read_unsigned(const dom::element& element, std::span<uint64_t> values,
                                    std::string_view field, const TensorPlace& place) {
  dom::array array;
  if (element.get(array) != simdjson::SUCCESS) {
    place.corrupt(fmt::format("{}: expected an array, found {}", field, dom_kind(element)));
  }
  size_t count = 0;
  for (const dom::element item : array) {
    if (count == values.size()) return std::nullopt;
    if (item.get(values[count]) != simdjson::SUCCESS) {
      place.corrupt(fmt::format("{}[{}]: expected an unsigned integer, found {}", field, count,
                                dom_kind(item)));
    }
    ++count;
  }
  return count;
}

Extents read_shape(const dom::element& element, const TensorPlace& place) {
  std::array<uint64_t, kMaxRank> sizes{};
  const auto rank = read_unsigned(element, sizes, "shape", place);
  if (!rank) {
    place.fail(ErrorCode::unsupported, fmt::format("shape: more than {} dimensions", kMaxRank));
  }
  std::array<int64_t, kMaxRank> extents{};
  for (size_t i = 0; i < *rank; ++i) {
    if (sizes[i] > uint64_t{INT64_MAX}) {
      place.corrupt(fmt::format("shape[{}]: {} is beyond 63 bits", i, sizes[i]));
    }
    extents[i] = static_cast<int64_t>(sizes[i]);
  }
  return Extents(std::span<const int64_t>(extents.data(), *rank));
}

// The bytes of a tensor. Empty dimensions count as one in the check for overflow, so that the
// strides of an empty tensor can be computed too.
uint64_t needed_bytes(const TensorClaim& claim, const TensorPlace& place) {
  std::array<uint64_t, kMaxRank + 1> factors{};
  factors.fill(1);
  bool empty = false;
  for (int i = 0; i < claim.shape.rank(); ++i) {
    const auto extent = static_cast<uint64_t>(claim.shape[i]);
    if (extent == 0) empty = true;
    factors[static_cast<size_t>(i)] = std::max<uint64_t>(extent, 1);
  }
  factors.back() = dtype_bytes(claim.dtype);
  const auto bytes = checked_product(factors);
  if (!bytes || *bytes > uint64_t{INT64_MAX}) {
    place.corrupt(fmt::format("shape {} needs 2^63 bytes or more", to_string(claim.shape)));
  }
  return empty ? 0 : *bytes;
}

// The fields of one tensor, each once; fields that the format doesn't have are left alone, as the
// reference implementation does.
struct TensorFields {
  std::optional<dom::element> dtype, shape, data_offsets;
};

TensorFields read_fields(const dom::element& element, const TensorPlace& place) {
  dom::object object;
  if (element.get(object) != simdjson::SUCCESS) {
    place.corrupt(fmt::format("expected an object, found {}", dom_kind(element)));
  }
  TensorFields fields;
  auto take = [&](std::optional<dom::element>& field, const dom::key_value_pair& member) {
    if (field) place.corrupt(fmt::format("the field {} stands twice", quoted_name(member.key)));
    field = member.value;
  };
  for (const auto member : object) {
    if (member.key == "dtype") take(fields.dtype, member);
    if (member.key == "shape") take(fields.shape, member);
    if (member.key == "data_offsets") take(fields.data_offsets, member);
  }
  if (!fields.dtype) place.corrupt("the field \"dtype\" is missing");
  if (!fields.shape) place.corrupt("the field \"shape\" is missing");
  if (!fields.data_offsets) place.corrupt("the field \"data_offsets\" is missing");
  return fields;
}

TensorPlace tensor_place(std::string_view where, std::string_view name) {
  return {where, "tensor " + quoted_name(name)};
}

TensorClaim read_claim(const DomMember& member, std::string_view where) {
  const TensorPlace place = tensor_place(where, member.key);
  const TensorFields fields = read_fields(member.value, place);
  TensorClaim claim;
  claim.name = member.key;
  claim.dtype = read_dtype(*fields.dtype, place);
  claim.shape = read_shape(*fields.shape, place);
  std::array<uint64_t, 2> offsets{};
  if (read_unsigned(*fields.data_offsets, offsets, "data_offsets", place) != offsets.size()) {
    place.corrupt("data_offsets: expected two numbers");
  }
  claim.begin = offsets[0];
  claim.end = offsets[1];
  if (claim.begin > claim.end) {
    place.corrupt(
        fmt::format("data_offsets: the end {} is before the begin {}", claim.end, claim.begin));
  }
  const uint64_t needed = needed_bytes(claim, place);
  if (claim.end - claim.begin != needed) {
    place.corrupt(fmt::format("data_offsets: [{}, {}] hold {} bytes, but {} of shape {} need {}",
                              claim.begin, claim.end, claim.end - claim.begin,
                              dtype_name(claim.dtype), to_string(claim.shape), needed));
  }
  return claim;
}

// One after the other, from the first byte of the data to its last.
void check_layout(const std::vector<TensorClaim>& claims, uint64_t data_bytes,
                  std::string_view where) {
  std::vector<size_t> order(claims.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::pair(claims[a].begin, claims[a].end) < std::pair(claims[b].begin, claims[b].end);
  });
  uint64_t covered = 0;
  std::string before = "the start of the data";
  for (const size_t index : order) {
    const TensorClaim& claim = claims[index];
    const TensorPlace place = tensor_place(where, claim.name);
    if (claim.end > data_bytes) {
      place.corrupt(
          fmt::format("data_offsets: [{}, {}] pass the file's {} bytes of data; it is truncated",
                      claim.begin, claim.end, data_bytes));
    }
    if (claim.begin < covered) {
      place.corrupt(fmt::format("data_offsets: begin at {}, inside {}, which ends at {}",
                                claim.begin, before, covered));
    }
    if (claim.begin > covered) {
      place.corrupt(
          fmt::format("data_offsets: begin at {}, leaving a gap after {}, which ends at {}",
                      claim.begin, before, covered));
    }
    covered = claim.end;
    before = place.subject;
  }
  if (covered != data_bytes) {
    TensorPlace{where, "data"}.corrupt(
        fmt::format("{} bytes after {} belong to no tensor", data_bytes - covered, before));
  }
}

}  // namespace

std::vector<SafetensorsTensor> parse_safetensors_header(std::span<const std::byte> file,
                                                        std::string_view where) {
  const auto header = header_bytes(file, where);
  const auto data = file.subspan(kLengthBytes + header.size());
  const std::string header_where = fmt::format("{}: header", where);
  dom::parser parser;
  const dom::object root = parse_dom_object(parser, header, header_where);
  std::vector<TensorClaim> claims;
  for (const DomMember& member : unique_members(root, header_where)) {
    if (member.key == kMetadataKey) {
      check_metadata(member.value, where);
    } else {
      claims.push_back(read_claim(member, where));
    }
  }
  check_layout(claims, data.size(), where);
  std::vector<SafetensorsTensor> tensors;
  tensors.reserve(claims.size());
  for (const TensorClaim& claim : claims) {
    tensors.push_back({std::string(claim.name), claim.dtype, claim.shape,
                       data.subspan(static_cast<size_t>(claim.begin),
                                    static_cast<size_t>(claim.end - claim.begin))});
  }
  return tensors;
}

}  // namespace paceline
