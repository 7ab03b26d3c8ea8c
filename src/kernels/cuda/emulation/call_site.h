// CallSite is the source line of a call, which a function takes as its last, defaulted argument.
#pragma once

#include <cstring>
#include <string_view>

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

// The site on a line of a file whose path ends in `path`.
struct SkippedSite {
  std::string_view path;
  int line = -1;

  bool is(CallSite site) const {
    return site.line == line && std::string_view(site.file).ends_with(path);
  }
};

}  // namespace paceline::cuda::emulation
