#include "kernels/cuda/emulation/fiber.h"

#include <cstdint>
#include <cstring>

#if defined(PACELINE_ASAN_FIBERS)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(PACELINE_TSAN_FIBERS)
#include <sanitizer/tsan_interface.h>
#endif

#if defined(PACELINE_OWN_SWITCH)
// Saves the registers that a call keeps (System V ABI) on the stack that is left, the stack's
// address in *from, and takes them from the other stack.
extern "C" void paceline_switch_stacks(void** from, void* to);
asm(R"(
.text
.type paceline_switch_stacks,@function
.globl paceline_switch_stacks
.hidden paceline_switch_stacks
paceline_switch_stacks:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size paceline_switch_stacks,.-paceline_switch_stacks
)");
#endif

namespace paceline::cuda::emulation {

Fiber::~Fiber() {
#if defined(PACELINE_TSAN_FIBERS)
  if (stack_ != nullptr && sanitizer_state_ != nullptr) __tsan_destroy_fiber(sanitizer_state_);
#endif
}

void Fiber::set_stack(std::byte* bottom, size_t bytes) {
  stack_ = bottom;
  stack_bytes_ = bytes;
}

void Fiber::restart(Entry entry) {
#if defined(PACELINE_ASAN_FIBERS)
  sanitizer_state_ = nullptr;
  __asan_unpoison_memory_region(stack_, stack_bytes_);  // frames that were never left
#endif
#if defined(PACELINE_TSAN_FIBERS)
  if (sanitizer_state_ == nullptr) sanitizer_state_ = __tsan_create_fiber(0);
#endif
#if defined(PACELINE_OWN_SWITCH)
  // As paceline_switch_stacks() leaves a stack: six registers and the address to return to, which
  // lies at a multiple of 16, as at a call; a zero ends backtraces.
  constexpr size_t kSlots = 8;
  const auto top = (reinterpret_cast<uintptr_t>(stack_) + stack_bytes_) & ~uintptr_t{15};
  auto* const slots = reinterpret_cast<void**>(top) - kSlots;
  std::memset(slots, 0, kSlots * sizeof(void*));
  slots[6] = reinterpret_cast<void*>(entry);
  stack_pointer_ = slots;
#else
  getcontext(&context_);
  context_.uc_stack.ss_sp = stack_;
  context_.uc_stack.ss_size = stack_bytes_;
  context_.uc_link = nullptr;
  makecontext(&context_, entry, 0);
#endif
}

void Fiber::switch_stacks(Fiber& other) {
#if defined(PACELINE_OWN_SWITCH)
  paceline_switch_stacks(&stack_pointer_, other.stack_pointer_);
#else
  swapcontext(&context_, &other.context_);
#endif
}

void Fiber::switch_to(Fiber& other) {
#if defined(PACELINE_TSAN_FIBERS)
  if (stack_ == nullptr) sanitizer_state_ = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(other.sanitizer_state_, 0);
#endif
#if defined(PACELINE_ASAN_FIBERS)
  __sanitizer_start_switch_fiber(&sanitizer_state_, other.stack_, other.stack_bytes_);
#endif
  switch_stacks(other);
#if defined(PACELINE_ASAN_FIBERS)
  __sanitizer_finish_switch_fiber(sanitizer_state_, nullptr, nullptr);
#endif
}

void Fiber::finish_with(Fiber& other) {
#if defined(PACELINE_TSAN_FIBERS)
  __tsan_switch_to_fiber(other.sanitizer_state_, 0);
#endif
#if defined(PACELINE_ASAN_FIBERS)
  __sanitizer_start_switch_fiber(nullptr, other.stack_, other.stack_bytes_);
#endif
  switch_stacks(other);
}

void Fiber::begin([[maybe_unused]] Fiber& owner) {
#if defined(PACELINE_ASAN_FIBERS)
  // Which stack the thread had at first is known only where it is left first.
  const void* bottom = nullptr;
  size_t bytes = 0;
  __sanitizer_finish_switch_fiber(nullptr, &bottom, &bytes);
  if (owner.stack_ == nullptr) {
    owner.stack_ = static_cast<std::byte*>(const_cast<void*>(bottom));
    owner.stack_bytes_ = bytes;
  }
#endif
}

}  // namespace paceline::cuda::emulation
