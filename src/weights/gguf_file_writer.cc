#include "weights/gguf_file_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <type_traits>
#include <utility>

#include "base/checked.h"
#include "base/error.h"
#include "weights/quoted_name.h"

namespace paceline {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are written as they are");

constexpr uint64_t kDataAlignment = 32;  // the default without general.alignment

template <class T>
std::string raw(T number) {
  static_assert(std::is_arithmetic_v<T> || std::is_enum_v<T>);
  return {reinterpret_cast<const char*>(&number), sizeof(number)};
}

std::string text(std::string_view content) { return raw(uint64_t{content.size()}).append(content); }

uint64_t aligned(uint64_t bytes) {
  return (bytes + kDataAlignment - 1) / kDataAlignment * kDataAlignment;
}

template <class T>
std::string_view raw_bytes_of(std::span<const T> numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size_bytes()};
}

}  // namespace

void GgufHeader::add_key(std::string_view key, GgufValueType type, std::string_view encoded) {
  PL_CHECK(names_.emplace(key).second, "a key is added once");
  keys_.push_back(text(key) + raw(type) + std::string(encoded));
}

void GgufHeader::add_array(std::string_view key, GgufValueType type, size_t count,
                           std::string_view encoded) {
  add_key(key, GgufValueType::array, raw(type) + raw(uint64_t{count}) + std::string(encoded));
}

void GgufHeader::add_string(std::string_view key, std::string_view value) {
  add_key(key, GgufValueType::string, text(value));
}

void GgufHeader::add_boolean(std::string_view key, bool value) {
  add_key(key, GgufValueType::boolean, raw(value));
}

void GgufHeader::add_size(std::string_view key, uint32_t value) {
  add_key(key, GgufValueType::uint32, raw(value));
}

void GgufHeader::add_integer(std::string_view key, int32_t value) {
  add_key(key, GgufValueType::int32, raw(value));
}

void GgufHeader::add_number(std::string_view key, float value) {
  add_key(key, GgufValueType::float32, raw(value));
}

void GgufHeader::add_strings(std::string_view key, std::span<const std::string> values) {
  std::string encoded;
  for (const std::string& value : values) encoded += text(value);
  add_array(key, GgufValueType::string, values.size(), encoded);
}

void GgufHeader::add_integers(std::string_view key, std::span<const int32_t> values) {
  add_array(key, GgufValueType::int32, values.size(), raw_bytes_of(values));
}

void GgufHeader::add_booleans(std::string_view key, const std::vector<bool>& values) {
  std::string encoded;
  for (const bool value : values) encoded += raw(value);
  add_array(key, GgufValueType::boolean, values.size(), encoded);
}

void GgufHeader::add_numbers(std::string_view key, std::span<const float> values) {
  add_array(key, GgufValueType::float32, values.size(), raw_bytes_of(values));
}

void GgufHeader::add_copy(const GgufValue& value) {
  const std::string_view bytes(reinterpret_cast<const char*>(value.bytes.data()),
                               value.bytes.size());
  if (value.type == GgufValueType::array) {
    return add_array(value.key, value.element_type, static_cast<size_t>(value.num_elements), bytes);
  }
  add_key(value.key, value.type,
          value.type == GgufValueType::string ? text(bytes) : std::string(bytes));
}

void GgufHeader::add_tensor(std::string_view name, GgufType type, const Extents& extents,
                            std::string_view where) {
  PL_CHECK(names_.emplace(fmt::format("tensor {}", name)).second, "a tensor is added once");
  const GgufTypeLayout& layout = layout_of(type);
  std::array<uint64_t, kMaxRank + 1> factors{};
  factors.fill(1);
  for (int i = 0; i < extents.rank(); ++i)
    factors[static_cast<size_t>(i)] = static_cast<uint64_t>(extents[i]);
  factors.back() = layout.block_bytes;
  const auto scaled = checked_product(factors);
  const auto bytes = scaled ? std::optional(*scaled / layout.block_elements) : std::nullopt;
  const auto end = bytes ? checked_add(data_bytes_, *bytes) : std::nullopt;
  if (!end || *end > uint64_t{INT64_MAX} - kDataAlignment) {
    throw Error(ErrorCode::invalid,
                fmt::format("{}: tensor {} of shape {}: the file would have 2^63 bytes or more",
                            where, quoted_name(name), to_string(extents)));
  }
  std::string entry = text(name) + raw(static_cast<uint32_t>(extents.rank()));
  for (int i = extents.rank() - 1; i >= 0; --i) entry += raw(static_cast<uint64_t>(extents[i]));
  entry += raw(type) + raw(data_bytes_);
  tensors_.push_back({std::move(entry), data_bytes_, *bytes});
  data_bytes_ = aligned(*end);
}

std::string GgufHeader::bytes() const {
  constexpr uint32_t kVersion = 3;
  std::string head =
      "GGUF" + raw(kVersion) + raw(uint64_t{tensors_.size()}) + raw(uint64_t{keys_.size()});
  for (const std::string& key : keys_) head += key;
  for (const Entry& tensor : tensors_) head += tensor.encoded;
  head.resize(aligned(head.size()));
  return head;
}

GgufFileWriter::GgufFileWriter(std::filesystem::path path, const GgufHeader& header)
    : file_(std::move(path)), header_(header) {
  const std::string head = header.bytes();
  file_.reserve(head.size() + header.data_bytes());
  file_.append(head);
}

void GgufFileWriter::skip_gap(uint64_t to) {
  file_.append(std::string(to - written_, '\0'));
  written_ = to;
}

void GgufFileWriter::write(std::span<const std::byte> bytes) {
  const auto end_of = [&](size_t index) {
    return header_.tensor_begin(index) + header_.tensor_bytes(index);
  };
  while (current_ < header_.num_tensors() && written_ == end_of(current_)) {
    if (++current_ < header_.num_tensors()) skip_gap(header_.tensor_begin(current_));
  }
  if (bytes.empty()) return;
  PL_CHECK(current_ < header_.num_tensors() && bytes.size() <= end_of(current_) - written_,
           "no more bytes than the tensors have");
  file_.append(bytes);
  written_ += bytes.size();
}

void GgufFileWriter::finish() {
  write({});
  PL_CHECK(current_ == header_.num_tensors(), "every tensor is written before the end");
  skip_gap(header_.data_bytes());
  file_.commit();
}

}  // namespace paceline
