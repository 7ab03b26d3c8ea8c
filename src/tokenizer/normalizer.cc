#include "tokenizer/normalizer.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "base/error.h"
#include "base/utf8.h"
#include "tokenizer/unicode_class.h"

namespace paceline {
namespace {

constexpr auto kCanonical = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_DECOMPOSE);
constexpr auto kComposed = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE);
constexpr size_t kLongestDecomposition = 32;  // code points; Unicode's longest canonical one has 4

// Composes stretch after stretch; keeps its buffer.
class NfcComposer {
 public:
  // Appends the NFC form of well-formed UTF-8 that holds no barrier.
  void append(std::string& out, std::string_view text) {
    decompose(text);
    reorder();
    const utf8proc_ssize_t length = utf8proc_normalize_utf32(
        code_points_.data(), static_cast<utf8proc_ssize_t>(code_points_.size()), kComposed);
    PL_CHECK(length >= 0, utf8proc_errmsg(length));
    for (size_t i = 0; i < static_cast<size_t>(length); ++i) {
      append_utf8(out, static_cast<char32_t>(code_points_[i]));
    }
  }

 private:
  void decompose(std::string_view text) {
    code_points_.clear();
    std::array<utf8proc_int32_t, kLongestDecomposition> parts;
    while (!text.empty()) {
      const DecodedCodePoint decoded = decode_utf8(text);
      int boundary_state = 0;
      const utf8proc_ssize_t length =
          utf8proc_decompose_char(static_cast<utf8proc_int32_t>(decoded.code_point), parts.data(),
                                  parts.size(), kCanonical, &boundary_state);
      PL_CHECK(length >= 0 && length <= static_cast<utf8proc_ssize_t>(parts.size()),
               "a canonical decomposition longer than Unicode has");
      code_points_.insert(code_points_.end(), parts.begin(), parts.begin() + length);
      text.remove_prefix(decoded.size);
    }
  }

  // Canonical ordering. utf8proc's own is quadratic in a run of marks, which a text can make long.
  void reorder() {
    const auto combining_class = [](utf8proc_int32_t code_point) {
      return utf8proc_get_property(code_point)->combining_class;
    };
    const auto is_starter = [&](utf8proc_int32_t code_point) {
      return combining_class(code_point) == 0;
    };
    for (auto run = code_points_.begin(); run != code_points_.end();) {
      run = std::find_if_not(run, code_points_.end(), is_starter);
      const auto end = std::find_if(run, code_points_.end(), is_starter);
      const auto by_class = [&](utf8proc_int32_t a, utf8proc_int32_t b) {
        return combining_class(a) < combining_class(b);
      };
      if (!std::is_sorted(run, end, by_class)) std::stable_sort(run, end, by_class);
      run = end;
    }
  }

  std::vector<utf8proc_int32_t> code_points_;
};

// The first stretch at or after `from` that NFC may change: a character, whatever it is, and the
// active ones after it. Inert characters with nothing active behind them are skipped; a barrier
// stands before and behind.
struct Stretch {
  size_t begin = 0;
  size_t end = 0;
};

Stretch next_stretch(const ClassReader& reader, size_t from) {
  const size_t first = reader.end_of_run_without(from, kNfcActive);
  if (first == reader.size()) return {first, first};
  size_t begin = first;
  if (first > from) {
    const size_t previous = reader.before(first);
    if ((reader.at(previous).classes & kNfcBarrier) == 0) begin = previous;
  }
  return {begin, reader.end_of_run(first, kNfcActive)};
}

}  // namespace

std::string_view NfcNormalizer::normalize(std::string_view text, std::string& storage) const {
  const ClassReader reader(text, UnicodeClassTable::shared());
  Stretch stretch = next_stretch(reader, 0);
  if (stretch.begin == text.size()) return text;
  storage.clear();
  storage.reserve(text.size() + text.size() / 8);
  NfcComposer composer;
  size_t done = 0;
  while (stretch.begin < text.size()) {
    storage.append(text.substr(done, stretch.begin - done));
    composer.append(storage, text.substr(stretch.begin, stretch.end - stretch.begin));
    done = stretch.end;
    stretch = next_stretch(reader, done);
  }
  storage.append(text.substr(done));
  return storage;
}

NormalizerSequence::NormalizerSequence(std::vector<std::unique_ptr<Normalizer>> steps)
    : steps_(std::move(steps)) {}

std::string_view NormalizerSequence::normalize(std::string_view text, std::string& storage) const {
  std::string previous;
  for (const auto& step : steps_) {
    std::string current;
    const std::string_view result = step->normalize(text, current);
    if (result.data() != current.data()) {
      text = result;
      continue;
    }
    previous.swap(current);
    text = previous;
  }
  if (steps_.empty() || text.data() != previous.data()) return text;
  storage = std::move(previous);
  return storage;
}

}  // namespace paceline
