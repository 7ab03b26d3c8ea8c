// HeldCheckpoint is a checkpoint with given names, dtypes and shapes, and random bytes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "weights/checkpoint.h"

namespace paceline::fuzz {

class HeldCheckpoint : public Checkpoint {
 public:
  // Names are all different.
  explicit HeldCheckpoint(std::vector<CheckpointEntry> entries) : entries_(std::move(entries)) {
    std::ranges::sort(entries_, {}, &CheckpointEntry::name);
    std::mt19937_64 random(entries_.size());
    for (const CheckpointEntry& entry : entries_) {
      size_t count = 1;
      for (const int64_t extent : entry.shape) count *= static_cast<size_t>(extent);
      auto& words = bytes_[entry.name];
      words.resize(count * dtype_bytes(entry.dtype) / sizeof(uint32_t) + 1);
      for (uint32_t& word : words) word = static_cast<uint32_t>(random());
    }
  }

  std::string origin() const override { return "input"; }
  std::span<const MappedFile> files() const override { return {}; }
  const std::vector<CheckpointEntry>& entries() const override { return entries_; }
  bool contains(std::string_view name) const override { return find(name) != nullptr; }
  std::optional<Extents> shape_of(std::string_view name) const override {
    const CheckpointEntry* const entry = find(name);
    return entry == nullptr ? std::nullopt : std::optional(entry->shape);
  }
  // Never called for a missing tensor or another shape.
  Tensor read_tensor(std::string_view name, const Extents& shape, ReadAs /*as*/) override {
    const CheckpointEntry* const entry = find(name);
    PL_CHECK(entry != nullptr && entry->shape == shape, "read what isn't there");
    return {bytes_.find(name)->second.data(), entry->dtype, shape};
  }
  std::shared_ptr<const GroupedRows> read_grouped(std::string_view /*name*/,
                                                  const Extents& /*shape*/) override {
    return nullptr;
  }
  void release(std::string_view name) override {
    PL_CHECK(contains(name), "released what isn't there");
  }

 private:
  const CheckpointEntry* find(std::string_view name) const {
    const auto at = std::ranges::lower_bound(entries_, name, {}, &CheckpointEntry::name);
    return at == entries_.end() || at->name != name ? nullptr : &*at;
  }

  std::vector<CheckpointEntry> entries_;  // sorted by name
  std::map<std::string, std::vector<uint32_t>, std::less<>> bytes_;
};

}  // namespace paceline::fuzz
