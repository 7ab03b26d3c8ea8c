// Any bytes are either a valid safetensors file, whose views cover its data, or an Error.
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
#include "weights/safetensors.h"

namespace {

using paceline::Error;
using paceline::ErrorCode;

void require(bool condition) {
  if (!condition) std::abort();
}

// Checks that every view is inside the file, of the right size and readable, and that views cover
// the data.
void check_tensors(std::span<const std::byte> file,
                   const std::vector<paceline::SafetensorsTensor>& tensors) {
  size_t covered = 0;
  unsigned sum = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const auto& tensor = tensors[i];
    require(i == 0 || tensors[i - 1].name < tensor.name);
    require(tensor.bytes.data() >= file.data() + 8);
    require(tensor.bytes.data() + tensor.bytes.size() <= file.data() + file.size());
    const paceline::Tensor view(const_cast<std::byte*>(tensor.bytes.data()), tensor.dtype,
                                tensor.shape);
    require(view.size_bytes() == tensor.bytes.size());
    for (const std::byte b : tensor.bytes) sum += std::to_integer<unsigned>(b);
    covered += tensor.bytes.size();
  }
  uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, file.data(), sizeof(header_bytes));
  require(8 + header_bytes + covered == file.size());
  volatile unsigned keep = sum;
  (void)keep;
}

// Parses a copy of exactly this size, so that AddressSanitizer sees a read beyond its end.
void parse(std::string_view content) {
  const std::unique_ptr<std::byte[]> copy(new std::byte[content.size()]);
  if (!content.empty()) std::memcpy(copy.get(), content.data(), content.size());
  const std::span<const std::byte> file(copy.get(), content.size());
  try {
    check_tensors(file, paceline::parse_safetensors_header(file, "input"));
  } catch (const Error& error) {
    require(error.code() == ErrorCode::corrupt || error.code() == ErrorCode::unsupported);
    require(std::string_view(error.what()).starts_with("input: "));
  }
}

}  // namespace

// The input as it is; then as a header without its length, the data after its first zero byte, so
// that a mutation of the header's size isn't always an error of its length.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(bytes), size);
  parse(input);
  const size_t header_bytes = std::min(input.find('\0'), size);
  std::string file(8, '\0');
  const uint64_t length = header_bytes;
  std::memcpy(file.data(), &length, sizeof(length));
  file += input.substr(0, header_bytes);
  if (header_bytes < size) file += input.substr(header_bytes + 1);
  parse(file);
  return 0;
}
