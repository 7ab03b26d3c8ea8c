#include "runner/runner.h"

#include "base/error.h"

namespace paceline {

void Runner::draw_rows(std::span<const int64_t> /*outputs*/, std::span<const RowDraw> /*draws*/,
                       std::span<Sample> /*samples*/) {
  PL_CHECK(false, "this runner draws no rows");
}

void Runner::pool(const PooledOutputs& /*outputs*/, std::span<double> /*pooled*/) {
  PL_CHECK(false, "this runner pools no states");
}

std::span<const float> Runner::finish_pooled(std::span<const float> /*pooled*/, int64_t /*count*/) {
  PL_CHECK(false, "this runner pools no states");
  return {};
}

}  // namespace paceline
