// Checkpoints that stand on another one.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/thread_pool.h"
#include "weights/checkpoint.h"

namespace paceline {

// Forwards everything; a subclass overrides what it changes. The source must outlive it.
class ForwardingCheckpoint : public Checkpoint {
 public:
  std::string origin() const override { return source_.origin(); }
  std::span<const MappedFile> files() const override { return source_.files(); }
  const std::vector<CheckpointEntry>& entries() const override { return source_.entries(); }
  bool contains(std::string_view name) const override { return source_.contains(name); }
  std::optional<Extents> shape_of(std::string_view name) const override {
    return source_.shape_of(name);
  }
  Tensor read_tensor(std::string_view name, const Extents& shape, ReadAs as) override {
    return source_.read_tensor(name, shape, as);
  }
  std::shared_ptr<const GroupedRows> read_grouped(std::string_view name,
                                                  const Extents& shape) override {
    return source_.read_grouped(name, shape);
  }
  void release(std::string_view name) override { source_.release(name); }

 protected:
  explicit ForwardingCheckpoint(Checkpoint& source) : source_(source) {}

  Checkpoint& source_;
};

// Shows some of the source's tensors in another form, under names of its own, and keeps copies of
// their numbers until they are released. Not thread-safe.
class UnpackingCheckpoint : public ForwardingCheckpoint {
 public:
  const std::vector<CheckpointEntry>& entries() const override { return entries_; }

 protected:
  UnpackingCheckpoint(Checkpoint& source, Memory& memory, ThreadPool& threads)
      : ForwardingCheckpoint(source), memory_(memory), threads_(threads) {}

  // The kept copy; null for a name without one.
  const Tensor* find_copy(std::string_view name) const;
  const Tensor& keep_copy(std::string_view name, OwnedTensor copy);
  // The numbers of a matrix, dequantised once.
  const Tensor& keep_numbers(std::string_view name, const ValueRows& rows);
  void drop_copy(std::string_view name);

  Memory& memory_;
  ThreadPool& threads_;
  std::vector<CheckpointEntry> entries_;  // a subclass fills them, sorted by name

 private:
  std::map<std::string, OwnedTensor, std::less<>> copies_;
};

}  // namespace paceline
