#include "weights/digested_checkpoint.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <span>

namespace paceline {
namespace {

constexpr SipKey kNoSecret{};  // a digest for comparison needs no secret
constexpr size_t kPieceBytes = 1 << 20;

void append(std::vector<uint64_t>& words, Hash128 hash) {
  words.push_back(hash.low);
  words.push_back(hash.high);
}

}  // namespace

std::vector<Hash128> DigestedCheckpoint::digests_of_pieces(std::span<const std::byte> bytes) {
  const size_t num_pieces = (bytes.size() + kPieceBytes - 1) / kPieceBytes;
  std::vector<Hash128> pieces(num_pieces);
  threads_.parallel_for(static_cast<int64_t>(num_pieces), 1, [&](int64_t begin, int64_t end, int) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
      const size_t first = i * kPieceBytes;
      pieces[i] = siphash128_bytes(
          kNoSecret, bytes.subspan(first, std::min(kPieceBytes, bytes.size() - first)));
    }
  });
  return pieces;
}

Hash128 DigestedCheckpoint::digest_of(const Tensor& tensor) {
  const std::span bytes(static_cast<const std::byte*>(tensor.raw()), tensor.size_bytes());
  std::vector<uint64_t> words{static_cast<uint64_t>(tensor.dtype())};
  for (const int64_t size : tensor.shape()) words.push_back(static_cast<uint64_t>(size));
  for (const Hash128 piece : digests_of_pieces(bytes)) append(words, piece);
  return siphash128(kNoSecret, words);
}

Hash128 DigestedCheckpoint::digest_of(const GroupedRows& rows) {
  const Grouping grouping = rows.grouping();
  std::vector<uint64_t> words{
      static_cast<uint64_t>(rows.num_rows()), static_cast<uint64_t>(rows.row_length()),
      static_cast<uint64_t>(grouping.bits), static_cast<uint64_t>(grouping.group_size),
      static_cast<uint64_t>(grouping.groups_per_factor)};
  for (const std::span<const std::byte> bytes : rows.stored_bytes()) {
    for (const Hash128 piece : digests_of_pieces(bytes)) append(words, piece);
  }
  return siphash128(kNoSecret, words);
}

Tensor DigestedCheckpoint::read_tensor(std::string_view name, const Extents& shape, ReadAs as) {
  const Tensor tensor = source_.read_tensor(name, shape, as);
  if (!digests_.contains(name)) digests_.emplace(name, digest_of(tensor));
  return tensor;
}

std::shared_ptr<const GroupedRows> DigestedCheckpoint::read_grouped(std::string_view name,
                                                                    const Extents& shape) {
  auto rows = source_.read_grouped(name, shape);
  if (rows != nullptr && !digests_.contains(name)) digests_.emplace(name, digest_of(*rows));
  return rows;
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
