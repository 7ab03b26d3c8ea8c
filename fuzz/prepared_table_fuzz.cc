// Any text is either a table of prepared weights with possible parts, or an Error.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include "base/error.h"
#include "prepared/layout.h"

namespace {

using namespace paceline;

void require(bool condition) {
  if (!condition) std::abort();
}

void check_table(const PreparedTable& table) {
  for (const Part& part : table.weights.parts) {
    const auto bytes = part_bytes(part.format);
    require(bytes && *bytes > 0 && *bytes < uint64_t{1} << 62);
    require(num_pieces(*bytes) > 0 && stored_bytes(*bytes) >= *bytes);
  }
  const PreparedTable again = read_table(write_table(table), "again");
  require(again.key == table.key && again.digest == table.digest);
  require(again.weights.num_parameters == table.weights.num_parameters);
  require(again.weights.is_quantised == table.weights.is_quantised);
  require(again.weights.parts.size() == table.weights.parts.size());
  for (size_t i = 0; i < again.weights.parts.size(); ++i) {
    require(again.weights.parts[i].name == table.weights.parts[i].name);
    require(again.weights.parts[i].format == table.weights.parts[i].format);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // A copy of exactly this size, so that AddressSanitizer sees a read beyond its end.
  const std::unique_ptr<char[]> copy(new char[size]);
  if (size > 0) std::memcpy(copy.get(), data, size);
  try {
    check_table(read_table({copy.get(), size}, "input"));
  } catch (const Error& error) {
    require(error.code() == ErrorCode::corrupt || error.code() == ErrorCode::invalid);
    require(std::string_view(error.what()).starts_with("input"));
  }
  return 0;
}
