// Any bytes are either a valid GGUF file, whose values and tensors can all be read, or an Error.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "fuzz/gguf_mutator.h"
#include "weights/gguf_blocks.h"
#include "weights/gguf_parse.h"
#include "weights/gguf_rows.h"

namespace {

using paceline::Error;
using paceline::ErrorCode;

void require(bool condition) {
  if (!condition) std::abort();
}

// Runs code that may throw: an Error must be of an expected kind and name the input.
template <class Body>
void may_refuse(Body&& body) {
  try {
    body();
  } catch (const Error& error) {
    require(error.code() == ErrorCode::corrupt || error.code() == ErrorCode::unsupported);
    require(std::string_view(error.what()).starts_with("input: "));
  }
}

void read_metadata(const paceline::GgufMetadata& metadata) {
  std::string_view before;
  for (const paceline::GgufValue& value : metadata.values()) {
    require(before.empty() || before < value.key);
    before = value.key;
    require(metadata.contains(value.key));
    may_refuse([&] { metadata.integer(value.key); });
    may_refuse([&] { metadata.number(value.key); });
    may_refuse([&] { metadata.boolean(value.key); });
    may_refuse([&] { metadata.string(value.key); });
    may_refuse([&] {
      size_t sum = 0;
      const auto strings = metadata.strings(value.key);
      require(strings->size() == value.num_elements);
      for (const std::string_view text : *strings) sum += text.empty() ? 0 : text.size() + text[0];
      volatile size_t keep = sum;
      (void)keep;
    });
    may_refuse([&] { require(metadata.integers(value.key)->size() == value.num_elements); });
    may_refuse([&] { require(metadata.numbers(value.key)->size() == value.num_elements); });
  }
}

void read_rows(const paceline::GgufTensorInfo& tensor) {
  const auto* format = paceline::find_block_format(tensor.type);
  if (format == nullptr || tensor.extents.rank() == 0) return;
  const paceline::GgufRows rows(tensor, *format, {});
  const auto length = static_cast<size_t>(rows.row_length());
  const size_t num_groups = length / static_cast<size_t>(format->grouping.group_size);
  std::vector<float> values(length), scales(num_groups), offsets(num_groups);
  std::vector<uint8_t> codes(length);
  const int64_t last = rows.num_rows() - 1;
  for (const int64_t row : {int64_t{0}, last / 2, last}) {
    rows.read_values(row, values);
    rows.read_codes(row, codes, scales, offsets);
    for (const uint8_t code : codes) require(code < (1 << format->grouping.bits));
  }
}

// Checks that every view is inside the file, with the right size and order, and that none overlap.
void check_tensors(std::span<const std::byte> file, std::vector<paceline::GgufTensorInfo> tensors) {
  size_t num_bytes = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const auto& tensor = tensors[i];
    require(i == 0 || tensors[i - 1].name < tensor.name);
    require(tensor.bytes.data() >= file.data() + 24);
    require(tensor.bytes.data() + tensor.bytes.size() <= file.data() + file.size());
    uint64_t num_elements = 1;
    for (const int64_t extent : tensor.extents) num_elements *= static_cast<uint64_t>(extent);
    const auto& layout = paceline::layout_of(tensor.type);
    require(num_elements / layout.block_elements * layout.block_bytes == tensor.bytes.size());
    read_rows(tensor);
    num_bytes += tensor.bytes.size();
  }
  require(num_bytes <= file.size());
  std::ranges::sort(tensors, {}, [](const auto& tensor) { return tensor.bytes.data(); });
  for (size_t i = 1; i < tensors.size(); ++i) {
    require(tensors[i - 1].bytes.data() + tensors[i - 1].bytes.size() <= tensors[i].bytes.data());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  // A copy of exactly this size, aligned as a mapping is.
  const std::unique_ptr<std::byte[]> copy(new std::byte[size]);
  if (size > 0) std::memcpy(copy.get(), bytes, size);
  const std::span<const std::byte> file(copy.get(), size);
  may_refuse([&] {
    paceline::GgufContents contents = paceline::parse_gguf(file, "input");
    read_metadata(contents.metadata);
    check_tensors(file, std::move(contents.tensors));
  });
  return 0;
}

extern "C" size_t LLVMFuzzerMutate(uint8_t* bytes, size_t size, size_t max_size);

// Nine in ten mutations know the fields, the others are libFuzzer's own.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* bytes, size_t size, size_t max_size,
                                          unsigned seed) {
  if (seed % 10 != 0) {
    const std::string input(reinterpret_cast<const char*>(bytes), size);
    const std::string mutated = paceline::fuzz::GgufMutator(input, seed).mutated();
    if (!mutated.empty() && mutated.size() <= max_size) {
      std::copy(mutated.begin(), mutated.end(), bytes);
      return mutated.size();
    }
  }
  return LLVMFuzzerMutate(bytes, size, max_size);
}
