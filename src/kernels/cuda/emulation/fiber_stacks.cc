#include "kernels/cuda/emulation/fiber_stacks.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include "base/error.h"
#include "kernels/cuda/emulation/fiber.h"

#if defined(PACELINE_ASAN_FIBERS)
#include <sanitizer/asan_interface.h>
#endif

namespace paceline::cuda::emulation {

size_t FiberStacks::stride() {
#if defined(PACELINE_ASAN_FIBERS) || defined(PACELINE_TSAN_FIBERS)
  return size_t{256} << 10;  // instrumented frames are larger
#else
  return size_t{64} << 10;
#endif
}

FiberStacks::FiberStacks(size_t count) : count_(count) {
  const size_t bytes = count * stride();
  void* const mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (mapped == MAP_FAILED) {
    throw Error(
        ErrorCode::exhausted,
        fmt::format("no memory for the stacks of {} emulated threads ({} bytes)", count, bytes));
  }
  pages_ = static_cast<std::byte*>(mapped);
  for (size_t i = 0; i < count; ++i) ::mprotect(pages_ + i * stride(), kPage, PROT_NONE);
}

FiberStacks::~FiberStacks() {
#if defined(PACELINE_ASAN_FIBERS)
  // Frames that were never left; the addresses may be mapped again by others.
  __asan_unpoison_memory_region(pages_, count_ * stride());
#endif
  ::munmap(pages_, count_ * stride());
}

}  // namespace paceline::cuda::emulation
