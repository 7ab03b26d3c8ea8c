// Seeded random text for the property tests.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "base/utf8.h"

namespace paceline {

class RandomText {
 public:
  explicit RandomText(uint64_t seed) : random_(seed) {}

  size_t below(size_t limit) { return static_cast<size_t>(random_() % limit); }

  // A code point of any plane, low ones more often; never a surrogate.
  char32_t code_point() {
    static constexpr uint32_t kLimits[] = {0x80, 0x80, 0x250, 0x3100, 0x20000, 0x110000};
    for (;;) {
      const auto c = static_cast<char32_t>(below(kLimits[below(std::size(kLimits))]));
      if (c < 0xD800 || c > 0xDFFF) return c;
    }
  }

  // Words, white space, marks, and other code points.
  std::string text(size_t max_parts) {
    static constexpr std::string_view kParts[] = {" ",
                                                  "  ",
                                                  "\n",
                                                  "\r\n",
                                                  "\t",
                                                  "it's",
                                                  "I'LL",
                                                  "don't",
                                                  "'\u017F",
                                                  "the",
                                                  "THE",
                                                  "123",
                                                  "4",
                                                  "!?",
                                                  "...",
                                                  "é",
                                                  "e\u0301",
                                                  "\u0323",
                                                  "\u0307",
                                                  "\u3000",
                                                  "\u00A0",
                                                  "한",
                                                  "\u1112\u1161\u11AB",
                                                  "你好",
                                                  "👨‍👩‍👧",
                                                  "नमस्ते",
                                                  "<|im_end|>",
                                                  "<s>",
                                                  "word",
                                                  "\u0898"};
    std::string result;
    for (size_t parts = below(max_parts + 1); parts > 0; --parts) {
      if (below(3) == 0) {
        append_utf8(result, code_point());
      } else {
        result += kParts[below(std::size(kParts))];
      }
    }
    return result;
  }

  // Any bytes, mostly ill-formed.
  std::string bytes(size_t max_size) {
    std::string result(below(max_size + 1), '\0');
    for (char& byte : result)
      byte = static_cast<char>(below(4) == 0 ? below(128) : 128 + below(128));
    return result;
  }

 private:
  std::mt19937_64 random_;
};

}  // namespace paceline
