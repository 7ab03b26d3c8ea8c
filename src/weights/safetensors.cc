#include "weights/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <optional>

#include "base/checked.h"
#include "base/json_document.h"
#include "weights/quoted_name.h"

namespace paceline {
namespace {

constexpr size_t kLengthBytes = 8;  // the header's length, little-endian, before the header
constexpr std::string_view kMetadataKey = "__metadata__";
constexpr std::string_view kUnsupportedDTypes[] = {"BOOL", "F4",  "F6_E2M3",     "F6_E3M2",
                                                   "F64",  "U64", "F8_E4M3FNUZ", "F8_E5M2FNUZ",
                                                   "I16",  "U16", "C64"};

// One tensor's entry in the header; begin and end count from the start of the data.
struct TensorClaim {
  std::string_view name;  // lives in the document
  DType dtype = DType::f32;
  Extents shape;
  uint64_t begin = 0;
  uint64_t end = 0;
};

// The file and the tensor or field of a message.
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

using Metadata = std::map<std::string, std::string_view, std::less<>>;

// mlx.core.save_safetensors writes null without metadata, which the reference implementation reads.
Metadata read_metadata(const DocumentCursor& metadata) {
  Metadata read;
  if (metadata.is_null()) return read;
  for (const auto& [key, value] : metadata.members()) {
    if (!value.is_string()) metadata.entry(key, value).mismatch("a string");
    read.emplace(key, value.string());
  }
  return read;
}

// The metadata of the tensor that torchao calls NAME's parts after: "M._weight_qdata" is one of
// "M.weight" (flatten_tensor_state_dict of torchao/prototype/safetensors). Empty: there is none.
std::string_view note_of(const Metadata& metadata, std::string_view name) {
  if (!metadata.contains("tensor_names")) return {};
  const size_t dot = name.rfind('.');
  if (dot == name.npos || name.substr(dot + 1, 1) != "_") return {};
  const std::string_view module = name.substr(0, dot + 1), part = name.substr(dot + 2);
  for (size_t end = part.rfind('_'); end != part.npos && end > 0; end = part.rfind('_', end - 1)) {
    const auto at = metadata.find(std::string(module).append(part.substr(0, end)));
    if (at != metadata.end()) return at->second;
  }
  return {};
}

DType read_dtype(const DocumentCursor& field) {
  const std::string_view name = field.string();
  if (name == "F32") return DType::f32;
  if (name == "F16") return DType::f16;
  if (name == "BF16") return DType::bf16;
  if (name == "U32") return DType::u32;
  if (name == "U8") return DType::u8;
  if (name == "I8") return DType::i8;
  if (name == "I32") return DType::i32;
  if (name == "I64") return DType::i64;
  if (name == "F8_E4M3") return DType::f8_e4m3;
  if (name == "F8_E5M2") return DType::f8_e5m2;
  if (name == "F8_E8M0") return DType::f8_e8m0;
  if (std::ranges::find(kUnsupportedDTypes, name) != std::end(kUnsupportedDTypes)) {
    field.fail(ErrorCode::unsupported,
               fmt::format("{} can't be read (F32, F16, BF16, F8_E4M3, F8_E5M2, F8_E8M0, I8, I32, "
                           "I64, U8 and U32 can)",
                           name));
  }
  field.mismatch("a dtype of the format");
}

// Fills `values` from an array of unsigned integers and returns their number; nothing when there
// are too many.
std::optional<size_t> read_unsigned(const DocumentCursor& field, std::span<uint64_t> values) {
  size_t count = 0;
  for (const DocumentNode item : field.array()) {
    if (count == values.size()) return std::nullopt;
    values[count] = field.below(count, item).unsigned_integer();
    ++count;
  }
  return count;
}

Extents read_shape(const DocumentCursor& field) {
  std::array<uint64_t, kMaxRank> sizes{};
  const auto rank = read_unsigned(field, sizes);
  if (!rank) {
    field.fail(ErrorCode::unsupported, fmt::format("more than {} dimensions", kMaxRank));
  }
  std::array<int64_t, kMaxRank> extents{};
  for (size_t i = 0; i < *rank; ++i) {
    if (sizes[i] > uint64_t{INT64_MAX}) field.item(i).mismatch("an integer below 2^63");
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

TensorPlace tensor_place(std::string_view where, std::string_view name) {
  return {where, "tensor " + quoted_name(name)};
}

// Unknown fields are ignored, as in the reference implementation.
TensorClaim read_claim(std::string_view name, const DocumentNode& entry, std::string_view where) {
  const TensorPlace place = tensor_place(where, name);
  const DocumentCursor fields(entry, fmt::format("{}: {}", place.file, place.subject),
                              ErrorCode::corrupt);
  TensorClaim claim;
  claim.name = name;
  claim.dtype = read_dtype(fields.at("dtype"));
  claim.shape = read_shape(fields.at("shape"));
  std::array<uint64_t, 2> offsets{};
  const DocumentCursor offsets_field = fields.at("data_offsets");
  if (read_unsigned(offsets_field, offsets) != offsets.size()) {
    offsets_field.fail("expected two numbers");
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

// Checks that the tensors cover the data without gaps or overlap.
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
  const JsonDocument document(std::string(as_text(header)), fmt::format("{}: header", where),
                              ErrorCode::corrupt, HugeIntegers::refused);
  const DocumentCursor root = document.root();
  std::vector<TensorClaim> claims;
  Metadata metadata;
  for (const auto& [name, entry] : root.members()) {
    if (name == kMetadataKey) {
      metadata = read_metadata(root.below(name, entry));
    } else {
      claims.push_back(read_claim(name, entry, where));
    }
  }
  std::ranges::sort(claims, {}, &TensorClaim::name);
  check_layout(claims, data.size(), where);
  std::vector<SafetensorsTensor> tensors;
  tensors.reserve(claims.size());
  for (const TensorClaim& claim : claims) {
    tensors.push_back({std::string(claim.name), claim.dtype, claim.shape,
                       data.subspan(static_cast<size_t>(claim.begin),
                                    static_cast<size_t>(claim.end - claim.begin)),
                       std::string(note_of(metadata, claim.name))});
  }
  return tensors;
}

}  // namespace paceline
