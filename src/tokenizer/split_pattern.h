// SplitPattern cuts a text at the matches of a regular expression.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

namespace paceline {

// Pattern of the pre-tokenizer ByteLevel with use_regex: `pattern` of GPT-2's encoder.py.
inline constexpr std::string_view kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

// Immutable; any number of threads may use it at once.
class SplitPattern {
 public:
  virtual ~SplitPattern() = default;
  // Appends the matches in `text` (well-formed UTF-8) and the texts between them, in order; none is
  // empty. Throws Error exhausted when a pattern exceeds its limits of steps or memory.
  virtual void split(std::string_view text, std::vector<std::string_view>& pieces) const = 0;
};

// The hand-written scanner of a known pattern; null for any other.
std::unique_ptr<SplitPattern> make_scanner(std::string_view pattern);

// Any pattern, on PCRE2. Throws Error unsupported naming a construct that PCRE2 lacks, or that
// Oniguruma (the engine of HF tokenizers) reads differently; `where` names the pattern in errors.
std::unique_ptr<SplitPattern> make_pcre_pattern(std::string_view pattern, std::string_view where);

// The scanner if there is one, else PCRE2.
std::unique_ptr<SplitPattern> make_split_pattern(std::string_view pattern, std::string_view where);

}  // namespace paceline
