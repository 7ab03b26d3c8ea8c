#include "tokenizer/unicode_normalizer.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "base/error.h"
#include "base/utf8.h"
#include "tokenizer/unicode_class.h"

namespace paceline {
namespace {

constexpr auto kDecompose = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_DECOMPOSE);
constexpr auto kDecomposeCompatible =
    static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT);
constexpr auto kCompose = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE);
constexpr size_t kLongestDecomposition = 32;  // code points; Unicode's longest has 18

struct Character {
  char32_t code_point = 0;
  uint16_t classes = 0;
  uint8_t combining_class = 0;
  // The characters of the old text that end with it: 0 for later characters of a decomposition.
  // Reordered together with it, as in HF tokenizers.
  uint32_t num_replaced = 0;
};

// The composition of two characters.
std::optional<char32_t> composed(const Character& left, const Character& right) {
  if ((right.classes & kNfcActive) == 0 || ((left.classes | right.classes) & kNfcBarrier) != 0) {
    return std::nullopt;
  }
  std::array<utf8proc_int32_t, 2> pair = {static_cast<utf8proc_int32_t>(left.code_point),
                                          static_cast<utf8proc_int32_t>(right.code_point)};
  if (utf8proc_normalize_utf32(pair.data(), 2, kCompose) != 1) return std::nullopt;
  return static_cast<char32_t>(pair[0]);
}

// Normalises one stretch at a time; keeps its buffers.
class Composer {
 public:
  explicit Composer(UnicodeForm form)
      : compose_(form == UnicodeForm::nfc || form == UnicodeForm::nfkc),
        compatible_(form == UnicodeForm::nfkc || form == UnicodeForm::nfkd) {}

  // Rewrites the next bytes of a text.
  void rewrite(TextEdit& edit, size_t bytes) {
    decompose(edit.rest().substr(0, bytes));
    reorder();
    if (compose_) compose();
    write(edit);
  }

 private:
  static Character character(char32_t code_point, uint32_t num_replaced) {
    const uint16_t classes = UnicodeClassTable::shared().of(code_point);
    const bool inert = (classes & kNfcBarrier) != 0;
    const auto* property = utf8proc_get_property(static_cast<utf8proc_int32_t>(code_point));
    const auto combining_class = static_cast<uint8_t>(inert ? 0 : property->combining_class);
    return {code_point, classes, combining_class, num_replaced};
  }

  void decompose(std::string_view text) {
    characters_.clear();
    std::array<utf8proc_int32_t, kLongestDecomposition> parts;
    while (!text.empty()) {
      const DecodedCodePoint decoded = decode_utf8(text);
      text.remove_prefix(decoded.size);
      const Character whole = character(decoded.code_point, 1);
      if ((whole.classes & (kNfcBarrier | kDecomposesLater)) != 0) {
        characters_.push_back(whole);
        continue;
      }
      int boundary_state = 0;
      const utf8proc_ssize_t length = utf8proc_decompose_char(
          static_cast<utf8proc_int32_t>(decoded.code_point), parts.data(), parts.size(),
          compatible_ ? kDecomposeCompatible : kDecompose, &boundary_state);
      PL_CHECK(length > 0 && length <= static_cast<utf8proc_ssize_t>(parts.size()),
               "a decomposition longer than Unicode has");
      for (size_t i = 0; i < static_cast<size_t>(length); ++i) {
        characters_.push_back(character(static_cast<char32_t>(parts[i]), i == 0 ? 1 : 0));
      }
    }
  }

  // Canonical ordering. utf8proc's is quadratic in a run of marks, which may be long.
  void reorder() {
    const auto is_starter = [](const Character& c) { return c.combining_class == 0; };
    const auto by_class = [](const Character& a, const Character& b) {
      return a.combining_class < b.combining_class;
    };
    for (auto run = characters_.begin(); run != characters_.end();) {
      run = std::find_if_not(run, characters_.end(), is_starter);
      const auto end = std::find_if(run, characters_.end(), is_starter);
      if (!std::is_sorted(run, end, by_class)) std::stable_sort(run, end, by_class);
      run = end;
    }
  }

  // The canonical composition algorithm (Unicode 3.11, D117).
  void compose() {
    constexpr size_t kNone = SIZE_MAX;
    size_t starter = kNone;  // the last one written
    uint8_t last_class = 0;  // of the last character written after it; 0: none
    size_t end = 0;
    for (const Character& next : characters_) {
      const bool blocked = last_class != 0 && last_class >= next.combining_class;
      if (starter != kNone && !blocked) {
        Character& base = characters_[starter];
        if (const auto whole = composed(base, next)) {
          base = {*whole, UnicodeClassTable::shared().of(*whole), 0,
                  base.num_replaced + next.num_replaced};
          continue;
        }
      }
      if (next.combining_class == 0) starter = end;
      last_class = next.combining_class;
      characters_[end++] = next;
    }
    characters_.resize(end);
  }

  void write(TextEdit& edit) {
    for (const Character& c : characters_) {
      utf8_.clear();
      append_utf8(utf8_, c.code_point);
      if (c.num_replaced == 0) {
        edit.put_for_previous(utf8_);
        continue;
      }
      edit.put_for_next(utf8_);
      for (uint32_t i = 0; i < c.num_replaced; ++i) edit.skip(decode_utf8(edit.rest()).size);
    }
  }

  bool compose_;
  bool compatible_;
  std::vector<Character> characters_;
  std::string utf8_;
};

struct Stretch {
  size_t begin = 0;
  size_t end = 0;
};

// The first stretch at or after `from` that NFC may change: a character and the active ones after
// it. Inert characters without active ones behind them are skipped; a barrier ends a stretch on
// both sides.
Stretch next_nfc_stretch(const ClassReader& reader, size_t from) {
  const size_t first = reader.end_of_run_without(from, kNfcActive);
  if (first == reader.size()) return {first, first};
  size_t begin = first;
  if (first > from) {
    const size_t previous = reader.before(first);
    if ((reader.at(previous).classes & kNfcBarrier) == 0) begin = previous;
  }
  return {begin, reader.end_of_run(first, kNfcActive)};
}

// For the other forms: a stretch beyond ASCII, with the character before it.
Stretch next_stretch(std::string_view text, size_t from) {
  const auto is_ascii = [](char c) { return static_cast<uint8_t>(c) < 0x80; };
  const auto first =
      std::find_if_not(text.begin() + static_cast<std::ptrdiff_t>(from), text.end(), is_ascii);
  const auto end = std::find_if(first, text.end(), is_ascii);
  const auto begin = static_cast<size_t>(first - text.begin());
  return {begin > from && first != text.end() ? begin - 1 : begin,
          static_cast<size_t>(end - text.begin())};
}

}  // namespace

std::string_view UnicodeNormalizer::normalize(std::string_view text, TextStore& store) const {
  const ClassReader reader(text, UnicodeClassTable::shared());
  const auto next = [&](size_t from) {
    return form_ == UnicodeForm::nfc ? next_nfc_stretch(reader, from) : next_stretch(text, from);
  };
  Stretch stretch = next(0);
  if (stretch.begin == text.size()) return text;
  TextEdit edit(store, text);
  Composer composer(form_);
  size_t done = 0;
  for (; stretch.begin < text.size(); stretch = next(done)) {
    edit.keep(stretch.begin - done);
    composer.rewrite(edit, stretch.end - stretch.begin);
    done = stretch.end;
  }
  edit.keep(text.size() - done);
  return edit.finish();
}

}  // namespace paceline
