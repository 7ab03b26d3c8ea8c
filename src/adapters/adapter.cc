#include "adapters/adapter.h"

#include <algorithm>
#include <bit>

namespace paceline {
namespace {

void append_hash(std::vector<uint64_t>& words, Hash128 hash) {
  words.push_back(hash.low);
  words.push_back(hash.high);
}

void append_matrix(std::vector<uint64_t>& words, const Tensor& matrix) {
  words.push_back(static_cast<uint64_t>(matrix.dtype()));
  for (const int64_t size : matrix.shape()) words.push_back(static_cast<uint64_t>(size));
  append_hash(words, siphash128_bytes(kPublicSipKey, matrix.bytes()));
}

Hash128 digest_of_pairs(std::span<const LoraPair> pairs) {
  std::vector<uint64_t> words;
  for (const LoraPair& pair : pairs) {
    append_hash(words, siphash128_bytes(kPublicSipKey, std::as_bytes(std::span(pair.module))));
    words.push_back(std::bit_cast<uint32_t>(pair.scale));
    append_matrix(words, pair.a.view);
    append_matrix(words, pair.b.view);
  }
  return siphash128(kPublicSipKey, words);
}

}  // namespace

Adapter::Adapter(std::string base_name, std::vector<LoraPair> pairs)
    : base_name_(std::move(base_name)), pairs_(std::move(pairs)) {
  std::ranges::sort(pairs_, {}, &LoraPair::module);
  PL_CHECK(std::ranges::adjacent_find(pairs_, {}, &LoraPair::module) == pairs_.end(),
           "an adapter has one pair a module");
  digest_ = digest_of_pairs(pairs_);
  for (const LoraPair& pair : pairs_) {
    size_bytes_ += pair.size_bytes();
    max_rank_ = std::max(max_rank_, pair.rank());
  }
}

const LoraPair* Adapter::find(std::string_view module) const {
  const auto at = std::ranges::lower_bound(pairs_, module, {}, &LoraPair::module);
  return at == pairs_.end() || at->module != module ? nullptr : &*at;
}

Adapter with_scale(Adapter adapter, float factor) {
  for (LoraPair& pair : adapter.pairs_) {
    pair.scale *= factor;
    pair.alpha *= double{factor};
  }
  return Adapter(std::move(adapter.base_name_), std::move(adapter.pairs_));
}

}  // namespace paceline
