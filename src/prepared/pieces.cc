#include "prepared/pieces.h"

#include <sys/mman.h>

#include <algorithm>

#include "base/block_sum.h"
#include "prepared/layout.h"

namespace paceline {
namespace {

// Maps the pages of a file at once rather than fault by fault. Has no effect on pages already
// mapped, nor on Linux before 5.14.
void populate(std::span<const std::byte> bytes) {
#ifdef MADV_POPULATE_READ
  constexpr uintptr_t kPage = 4096;
  const auto first = reinterpret_cast<uintptr_t>(bytes.data()) / kPage * kPage;
  const auto end = reinterpret_cast<uintptr_t>(bytes.data()) + bytes.size();
  ::madvise(reinterpret_cast<void*>(first), end - first, MADV_POPULATE_READ);
#else
  static_cast<void>(bytes);
#endif
}

}  // namespace

std::vector<Piece> pieces_of(const Part& part, uint64_t first_index) {
  std::vector<Piece> pieces;
  for (uint64_t at = 0; at < part.bytes.size(); at += kPieceBytes) {
    const size_t size = std::min<size_t>(kPieceBytes, part.bytes.size() - at);
    pieces.push_back({part.bytes.subspan(at, size), first_index + pieces.size()});
  }
  return pieces;
}

std::vector<uint64_t> sums_of(std::span<const Piece> pieces, ThreadPool& threads) {
  std::vector<uint64_t> sums(pieces.size());
  threads.parallel_for(std::ssize(pieces), 1, [&](int64_t begin, int64_t end, int) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
      populate(pieces[i].bytes);
      sums[i] = block_sum(pieces[i].bytes, pieces[i].index);
    }
  });
  return sums;
}

}  // namespace paceline
