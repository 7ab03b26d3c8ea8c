// Rows of an embedding table, read from the packed panels that the output head multiplies with.
#include "kernels/cpu/isa_kernels.h"
#include "kernels/cpu/products.h"
#include "kernels/packed_layout.h"

namespace paceline::PACELINE_ISA_NAMESPACE {
namespace {

PL_INLINE float widen_one(float value) { return value; }
PL_INLINE float widen_one(Bf16 value) {
  const uint32_t bits = uint32_t{value.bits} << 16;
  float widened = 0.0f;
  __builtin_memcpy(&widened, &bits, sizeof(widened));
  return widened;
}
PL_INLINE float widen_one(F16 value) {
  const F16 values[kLanes] = {value};
  return load(values)[0];
}

template <class Product>
void embedding(const void* panel, int64_t column, int64_t k, float scale, float* out) {
  using Weight = typename Product::Weight;
  constexpr int64_t kDepth = Product::kDepth;
  const auto* const from = static_cast<const Weight*>(panel) + column * kDepth;
  for (int64_t i = 0; i < k; ++i) {
    out[i] = widen_one(from[i / kDepth * kPanelWidth * kDepth + i % kDepth]) * scale;
  }
}

}  // namespace

void add_embedding_kernels(KernelTable& table) {
  table.embedding[0] = embedding<F32Product>;
  table.embedding[1] = embedding<F16Product>;
  table.embedding[2] = embedding<Bf16Product>;
}

}  // namespace paceline::PACELINE_ISA_NAMESPACE
