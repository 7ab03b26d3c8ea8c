// Fiber runs code on a stack of its own; switching to another is a few instructions.
#pragma once

#include <cstddef>

// Elsewhere, and for a test of it, ucontext switches, with two calls of the kernel.
#if defined(__x86_64__) && !defined(PACELINE_UCONTEXT_FIBERS)
#define PACELINE_OWN_SWITCH 1
#else
#include <ucontext.h>
#endif

#if defined(__SANITIZE_ADDRESS__)
#define PACELINE_ASAN_FIBERS 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define PACELINE_ASAN_FIBERS 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define PACELINE_TSAN_FIBERS 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define PACELINE_TSAN_FIBERS 1
#endif
#endif

namespace paceline::cuda::emulation {

// Fibers belong to the thread that makes them. One default-constructed Fiber stands for that
// thread's own stack.
class Fiber {
 public:
  using Entry = void (*)();  // never returns

  Fiber() = default;
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Gives it a stack, whose bytes the caller keeps.
  void set_stack(std::byte* bottom, size_t bytes);
  // The next switch to it calls `entry` on an empty stack, wherever it was before.
  void restart(Entry entry);

  // Leaves this fiber, which runs, for another one until something switches back.
  void switch_to(Fiber& other);
  // The same for good: it runs again only after restart().
  void finish_with(Fiber& other);
  // An entry's first call: `owner` is the fiber of the thread's own stack.
  static void begin(Fiber& owner);

 private:
  void switch_stacks(Fiber& other);

  std::byte* stack_ = nullptr;
  size_t stack_bytes_ = 0;
#if defined(PACELINE_OWN_SWITCH)
  void* stack_pointer_ = nullptr;
#else
  ucontext_t context_{};
#endif
  // ASan's fake stack or TSan's fiber. Every build has it, so that sanitized code can be linked
  // with code that isn't.
  [[maybe_unused]] void* sanitizer_state_ = nullptr;
};

}  // namespace paceline::cuda::emulation
