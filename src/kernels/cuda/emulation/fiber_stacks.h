// FiberStacks is a row of stacks with an inaccessible page below each.
#pragma once

#include <cstddef>

namespace paceline::cuda::emulation {

class FiberStacks {
 public:
  // Throws Error exhausted where there is no memory.
  explicit FiberStacks(size_t count);
  ~FiberStacks();
  FiberStacks(const FiberStacks&) = delete;
  FiberStacks& operator=(const FiberStacks&) = delete;

  std::byte* bottom(size_t index) const { return pages_ + index * stride() + kPage; }
  // Ends of stacks lie at different places in their pages: they would share a few sets of the
  // caches.
  static size_t bytes(size_t index) { return stride() - kPage - index % kColours * kColourBytes; }

 private:
  static constexpr size_t kPage = 4096;
  static constexpr size_t kColours = 64;
  static constexpr size_t kColourBytes = 320;
  static size_t stride();

  std::byte* pages_ = nullptr;
  size_t count_ = 0;
};

}  // namespace paceline::cuda::emulation
