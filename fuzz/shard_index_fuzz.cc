// Any bytes are either an index of shards in its directory, or an Error.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/utf8.h"
#include "weights/shard_index.h"

namespace {

using namespace paceline;

void require(bool condition) {
  if (!condition) std::abort();
}

// Checks that tensors are sorted and unique, and that file names stay inside the directory.
void check_tensors(const std::vector<ShardedTensor>& tensors) {
  require(!tensors.empty());
  for (size_t i = 0; i < tensors.size(); ++i) {
    require(i == 0 || tensors[i - 1].name < tensors[i].name);
    require(is_valid_utf8(tensors[i].name) && is_valid_utf8(tensors[i].file));
    const auto path = (std::filesystem::path("/models/m") / tensors[i].file).lexically_normal();
    require(path.parent_path() == "/models/m" && path.filename() == tensors[i].file);
    require(std::strlen(tensors[i].file.c_str()) == tensors[i].file.size());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // A copy of exactly this size, so that AddressSanitizer sees a read beyond its end.
  const std::unique_ptr<std::byte[]> copy(new std::byte[size]);
  if (size > 0) std::memcpy(copy.get(), data, size);
  try {
    check_tensors(parse_shard_index({copy.get(), size}, "input"));
  } catch (const Error& error) {
    require(error.code() == ErrorCode::corrupt);
    require(std::string_view(error.what()).starts_with("input: "));
    require(is_valid_utf8(error.what()));
  }
  return 0;
}
