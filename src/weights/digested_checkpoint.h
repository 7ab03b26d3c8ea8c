// DigestedCheckpoint forwards another checkpoint and computes a digest of the tensors read.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/siphash.h"
#include "base/thread_pool.h"
#include "weights/forwarding_checkpoint.h"

namespace paceline {

class DigestedCheckpoint : public ForwardingCheckpoint {
 public:
  // Both must outlive it.
  DigestedCheckpoint(Checkpoint& source, ThreadPool& threads)
      : ForwardingCheckpoint(source), threads_(threads) {}

  // The digest of names, dtypes, shapes and bytes of all tensors read so far, in any order.
  Hash128 digest() const;

  Tensor read_tensor(std::string_view name, const Extents& shape, ReadAs as) override;
  std::shared_ptr<const GroupedRows> read_grouped(std::string_view name,
                                                  const Extents& shape) override;

 private:
  std::vector<Hash128> digests_of_pieces(std::span<const std::byte> bytes);
  Hash128 digest_of(const Tensor& tensor);
  Hash128 digest_of(const GroupedRows& rows);

  ThreadPool& threads_;
  std::map<std::string, Hash128, std::less<>> digests_;  // by name
};

}  // namespace paceline
