#include "tests/llm/stored_formats.h"

#include <algorithm>
#include <cstdlib>

#include "tests/llm/random_blocks.h"
#include "tests/test_scale.h"

namespace paceline::testing {
namespace {

std::vector<StoredFormat> list_formats() {
  std::vector<StoredFormat> all;
  StoredFormat mixed_types{.name = "gguf_mixed", .types = {}, .groupings = {}};
  for (const GgufType type : types_with_random_blocks()) {
    all.push_back({"gguf_" + std::string(gguf_type_name(type)), {type}, {}});
    mixed_types.types.push_back(type);
  }
  StoredFormat mixed_groupings{.name = "mlx_mixed", .types = {}, .groupings = {}};
  for (const int bits : {2, 3, 4, 5, 6, 8}) {
    for (const int64_t size : {32, 64, 128}) {
      const AffineFormat grouping{.bits = bits, .group_size = size};
      all.push_back(
          {"mlx_" + std::to_string(bits) + "_bits_" + std::to_string(size), {}, {grouping}});
      mixed_groupings.groupings.push_back(grouping);
    }
  }
  all.push_back(std::move(mixed_types));
  all.push_back(std::move(mixed_groupings));
  return all;
}

size_t seed() {
  const char* const asked = std::getenv("PACELINE_SEED");
  return asked == nullptr ? 0 : static_cast<size_t>(std::strtoull(asked, nullptr, 10));
}

}  // namespace

bool StoredFormat::has_codes() const {
  return !groupings.empty() ||
         !std::ranges::all_of(types, [](GgufType type) { return plain_dtype(type).has_value(); });
}

void PrintTo(const StoredFormat& format, std::ostream* out) { *out << format.name; }

const std::vector<StoredFormat>& stored_formats() {
  static const std::vector<StoredFormat> all = list_formats();
  return all;
}

std::vector<StoredFormat> formats_to_run() { return cases_to_run(stored_formats(), seed(), 6); }

}  // namespace paceline::testing
