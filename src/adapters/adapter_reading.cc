#include "adapters/adapter_reading.h"

#include <fmt/format.h>

#include <cmath>

#include "weights/quoted_name.h"
#include "weights/weight_reader.h"

namespace paceline {

void check_adapter_bytes(const std::filesystem::path& path, uint64_t size_bytes,
                         const AdapterLimits& limits) {
  if (size_bytes <= limits.max_bytes) return;
  throw Error(ErrorCode::exhausted,
              fmt::format("{}: {} bytes, at most {} are allowed for an adapter", path.string(),
                          size_bytes, limits.max_bytes));
}

bool is_unused_module(std::string_view file_module) { return is_outside_the_decoder(file_module); }

void check_config_rank(std::string_view where, const LoraParts& parts, int64_t config_rank,
                       std::string_view config_where) {
  if (parts.rank() == config_rank) return;
  throw Error(ErrorCode::corrupt,
              fmt::format("{}: tensor {} has shape {}: rank {}, but {} says {}", where,
                          quoted_name(parts.a->tensor), to_string(parts.a->shape), parts.rank(),
                          config_where, config_rank));
}

void set_scale(std::string_view where, LoraPair& pair, double alpha, double scale) {
  pair.alpha = alpha;
  pair.scale = static_cast<float>(scale);
  if (std::isfinite(pair.scale)) return;
  throw Error(ErrorCode::invalid, fmt::format("{}: the scale {} of {} is too large for float32",
                                              where, scale, pair.module));
}

StoredLoraMatrix stored_matrix(const SafetensorsTensor& tensor, bool is_transposed) {
  return {.tensor = tensor.name,
          .dtype = tensor.dtype,
          .shape = tensor.shape,
          .bytes = tensor.bytes,
          .is_transposed = is_transposed};
}

}  // namespace paceline
