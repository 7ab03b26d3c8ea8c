// Whether a test runs under a sanitizer, which makes everything 5 to 20 times as slow.
#pragma once

namespace paceline {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kIsSanitized = true;
#else
inline constexpr bool kIsSanitized = false;
#endif

}  // namespace paceline
