// CallSite is the source line of a call, which a function takes as its last, defaulted argument.
#pragma once

#include <cstring>

namespace paceline::cuda::emulation {

struct CallSite {
  const char* file = "";
  int line = 0;

  static constexpr CallSite here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return {file, line};
  }
};

inline bool operator==(const CallSite& a, const CallSite& b) {
  return a.line == b.line && (a.file == b.file || std::strcmp(a.file, b.file) == 0);
}

}  // namespace paceline::cuda::emulation
