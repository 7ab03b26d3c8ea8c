#include "weights/digested_checkpoint.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <span>

namespace paceline {
namespace {

constexpr SipKey kNoSecret{};  // a digest to compare, not to keep anybody out
constexpr size_t kPieceBytes = 1 << 20;

void append(std::vector<uint64_t>& words, Hash128 hash) {
  words.push_back(hash.low);
  words.push_back(hash.high);
}

}  // namespace

Hash128 DigestedCheckpoint::digest_of(const Tensor& tensor) {
  const std::span bytes(static_cast<const std::byte*>(tensor.raw()), tensor.size_bytes());
  const size_t num_pieces = (bytes.size() + kPieceBytes - 1) / kPieceBytes;
  std::vector<Hash128> pieces(num_pieces);
  threads_.parallel_for(static_cast<int64_t>(num_pieces), 1, [&](int64_t begin, int64_t end, int) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
      const size_t first = i * kPieceBytes;
      pieces[i] = siphash128_bytes(
          kNoSecret, bytes.subspan(first, std::min(kPieceBytes, bytes.size() - first)));
    }
  });
  std::vector<uint64_t> words{static_cast<uint64_t>(tensor.dtype())};
  for (const int64_t size : tensor.shape()) words.push_back(static_cast<uint64_t>(size));
  for (const Hash128 piece : pieces) append(words, piece);
  return siphash128(kNoSecret, words);
}

Tensor DigestedCheckpoint::read(std::string_view name, const Extents& shape) {
  const Tensor tensor = source_.read(name, shape);
  if (!digests_.contains(name)) digests_.emplace(name, digest_of(tensor));
  return tensor;
}

Hash128 DigestedCheckpoint::digest() const {
  std::vector<uint64_t> words;
  for (const auto& [name, digest] : digests_) {
    append(words, siphash128_bytes(kNoSecret, std::as_bytes(std::span(name))));
    append(words, digest);
  }
  return siphash128(kNoSecret, words);
}

}  // namespace paceline
