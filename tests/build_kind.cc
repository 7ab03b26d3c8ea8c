#include "tests/build_kind.h"

namespace paceline {

bool is_address_sanitized() {
#if defined(__SANITIZE_ADDRESS__)
  return true;
#else
  return false;
#endif
}

bool is_sanitized() {
#if defined(__SANITIZE_THREAD__)
  return true;
#else
  return is_address_sanitized();
#endif
}

bool is_optimised() { return PACELINE_OPTIMISED; }

bool are_all_kernels_sanitized() { return PACELINE_ALL_KERNELS_SANITIZED; }

}  // namespace paceline
