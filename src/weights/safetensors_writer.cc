#include "weights/safetensors_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "base/checked.h"
#include "base/error.h"
#include "base/json_writer.h"
#include "weights/quoted_name.h"

namespace paceline {
namespace {

struct NamedSize {
  std::string_view dtype;
  uint64_t bytes;
};

constexpr NamedSize kDTypes[] = {{"F32", 4}, {"F16", 2}, {"BF16", 2}, {"F64", 8}, {"BOOL", 1},
                                 {"U8", 1},  {"I8", 1},  {"U16", 2},  {"I16", 2}, {"U32", 4},
                                 {"I32", 4}, {"U64", 8}, {"I64", 8}};

// The data begins on such a boundary.
constexpr size_t kAlignment = 8;

const NamedSize& find_dtype(std::string_view name) {
  const auto* const at = std::ranges::find(kDTypes, name, &NamedSize::dtype);
  PL_CHECK(at != std::end(kDTypes), "a dtype that safetensors files have");
  return *at;
}

std::optional<uint64_t> bytes_of(const Extents& shape, uint64_t element_bytes) {
  std::array<uint64_t, kMaxRank + 1> factors{};
  factors.fill(1);
  for (int i = 0; i < shape.rank(); ++i) {
    PL_CHECK(shape[i] >= 0, "a shape has no negative sizes");
    factors[static_cast<size_t>(i)] = static_cast<uint64_t>(shape[i]);
  }
  factors.back() = element_bytes;
  return checked_product(factors);
}

}  // namespace

SafetensorsWriter::SafetensorsWriter(std::filesystem::path path, std::string_view format,
                                     NewFile::Existing existing)
    : file_(std::move(path), existing), format_(format) {}

uint64_t SafetensorsWriter::data_bytes() const {
  return entries_.empty() ? 0 : entries_.back().end;
}

void SafetensorsWriter::add(std::string_view name, std::string_view dtype, const Extents& shape) {
  PL_CHECK(!header_written_, "every tensor is added before the first is written");
  const NamedSize& known = find_dtype(dtype);
  if (names_.contains(std::string(name))) {
    throw Error(ErrorCode::invalid, fmt::format("{}: tensor {} would occur twice",
                                                file_.path().string(), quoted_name(name)));
  }
  const auto bytes = bytes_of(shape, known.bytes);
  const auto end = bytes ? checked_add(data_bytes(), *bytes) : std::nullopt;
  if (!end || *end > uint64_t{INT64_MAX}) {
    throw Error(ErrorCode::invalid,
                fmt::format("{}: tensor {} of shape {}: the file would have 2^63 bytes or more",
                            file_.path().string(), quoted_name(name), to_string(shape)));
  }
  names_.emplace(name);
  entries_.push_back({std::string(name), known.dtype, shape, data_bytes(), *end});
}

std::string SafetensorsWriter::header() const {
  std::string text;
  JsonWriter json(text);
  json.begin_object().key("__metadata__").begin_object().member("format", format_).end_object();
  for (const Entry& entry : entries_) {
    json.key(entry.name).begin_object().member("dtype", entry.dtype).key("shape").begin_array();
    for (const int64_t size : entry.shape) json.integer(size);
    json.end_array().key("data_offsets").begin_array();
    json.unsigned_integer(entry.begin).unsigned_integer(entry.end).end_array().end_object();
  }
  json.end_object();
  text.append((kAlignment - text.size() % kAlignment) % kAlignment, ' ');
  std::string length;
  for (int i = 0; i < 8; ++i) {
    length.push_back(static_cast<char>((uint64_t{text.size()} >> (8 * i)) & 0xFF));
  }
  return length + text;
}

void SafetensorsWriter::write(std::string_view name, std::span<const std::byte> bytes) {
  if (!header_written_) file_.append(header());
  header_written_ = true;
  while (current_ < entries_.size() && written_ == entries_[current_].end) ++current_;
  if (bytes.empty()) return;
  PL_CHECK(current_ < entries_.size() && entries_[current_].name == name,
           "tensors are written in the order in which they were added");
  PL_CHECK(bytes.size() <= entries_[current_].end - written_, "no more bytes than the shape has");
  file_.append(bytes);
  written_ += bytes.size();
}

void SafetensorsWriter::finish() {
  if (!header_written_) file_.append(header());
  header_written_ = true;
  PL_CHECK(written_ == data_bytes(), "every tensor is written before the end");
  file_.commit();
}

std::string_view safetensors_dtype_name(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return "F32";
    case DType::f16:
      return "F16";
    case DType::bf16:
      return "BF16";
    case DType::i8:
      return "I8";
    case DType::i32:
      return "I32";
    case DType::u32:
      return "U32";
    case DType::u8:
      return "U8";
    case DType::i64:
      return "I64";
    case DType::f8_e4m3:
      return "F8_E4M3";
    case DType::f8_e5m2:
      return "F8_E5M2";
    case DType::f8_e8m0:
      return "F8_E8M0";
  }
  return "";
}

}  // namespace paceline
