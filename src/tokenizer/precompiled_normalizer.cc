#include "tokenizer/precompiled_normalizer.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/base64.h"
#include "base/utf8.h"
#include "tokenizer/encoder_class.h"

namespace paceline {
namespace {

constexpr size_t kShortCluster = 6;  // bytes: fewer are looked up as a whole
constexpr char32_t kZeroWidthJoiner = 0x200D;

enum class Jamo : uint8_t { none, leading, vowel, trailing, open_syllable, closed_syllable };

Jamo jamo_of(char32_t c) {
  const auto within = [c](char32_t first, char32_t last) { return c >= first && c <= last; };
  if (within(0x1100, 0x115F) || within(0xA960, 0xA97C)) return Jamo::leading;
  if (within(0x1160, 0x11A7) || within(0xD7B0, 0xD7C6)) return Jamo::vowel;
  if (within(0x11A8, 0x11FF) || within(0xD7CB, 0xD7FB)) return Jamo::trailing;
  if (!within(0xAC00, 0xD7A3)) return Jamo::none;
  return (c - 0xAC00) % 28 == 0 ? Jamo::open_syllable : Jamo::closed_syllable;
}

// Rules GB6 to GB8 of Unicode's annex 29.
bool joins_syllable(Jamo before, Jamo after) {
  if (before == Jamo::none || after == Jamo::none) return false;
  if (before == Jamo::leading) return after != Jamo::trailing;
  if (after == Jamo::trailing) return true;
  return after == Jamo::vowel && (before == Jamo::vowel || before == Jamo::open_syllable);
}

// Reads a grapheme cluster, a character at a time.
class ClusterReader {
 public:
  // Whether `next` belongs to the cluster; it is then the last character.
  bool take(char32_t next) {
    const uint8_t classes = EncoderClassTable::shared().of(next);
    if (!is_first_ && !joins(next, classes)) return false;
    const bool is_mark = (classes & kClusterExtend) != 0;
    if (!is_mark) pictograph_ = (classes & kClusterPictograph) != 0;
    is_first_ = false;
    last_ = next;
    last_classes_ = classes;
    return true;
  }

 private:
  bool joins(char32_t next, uint8_t classes) const {
    if (last_ == U'\r' && next == U'\n') return true;
    if (((last_classes_ | classes) & kClusterControl) != 0) return false;
    if ((classes & kClusterExtend) != 0 || (last_classes_ & kClusterPrepend) != 0) return true;
    if (last_ == kZeroWidthJoiner && pictograph_ && (classes & kClusterPictograph) != 0)
      return true;
    return joins_syllable(jamo_of(last_), jamo_of(next));
  }

  bool is_first_ = true;
  bool pictograph_ = false;  // the last character without marks and joiners
  char32_t last_ = 0;
  uint8_t last_classes_ = 0;
};

size_t cluster_size(std::string_view text) {
  ClusterReader reader;
  size_t size = 0;
  while (size < text.size()) {
    const DecodedCodePoint character = decode_utf8(text.substr(size));
    if (!reader.take(character.code_point)) break;
    size += character.size;
  }
  return size;
}

size_t num_characters(std::string_view text) {
  return static_cast<size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<uint8_t>(c) & 0xC0) != 0x80; }));
}

// The changes of NormalizedString::transform of HF tokenizers: each character of the new text, and
// what becomes of the old one.
class Changes {
 public:
  explicit Changes(size_t num_bytes) { changes_.reserve(num_bytes); }

  void keep(std::string_view text) {
    for_each_character(text, [&](std::string_view character) {
      changes_.push_back({character, 0});
    });
  }

  void replace(std::string_view from, std::string_view to) {
    for_each_character(to, [&](std::string_view character) { changes_.push_back({character, 0}); });
    const auto grown =
        static_cast<int64_t>(num_characters(to)) - static_cast<int64_t>(num_characters(from));
    if (grown < 0 && !changes_.empty()) changes_.back().change += grown;
    for (int64_t i = 0; i < grown; ++i)
      changes_[changes_.size() - 1 - static_cast<size_t>(i)].change = 1;
    changed_ = true;
  }

  bool any() const { return changed_; }

  std::string_view apply(TextStore& store, std::string_view text) const {
    TextEdit edit(store, text);
    const auto next_size = [&edit] {
      return edit.rest().empty() ? 0 : decode_utf8(edit.rest()).size;
    };
    for (const Change& one : changes_) {
      if (one.change > 0) {
        edit.put_for_previous(one.character);
        continue;
      }
      if (edit.rest().starts_with(one.character)) {
        edit.keep(one.character.size());
      } else {
        edit.put_for_next(one.character);
        edit.skip(next_size());
      }
      for (int64_t i = one.change; i < 0; ++i) edit.skip(next_size());
    }
    edit.skip(edit.rest().size());
    return edit.finish();
  }

 private:
  // 1: the character is new; 0: it replaces the next old one; -n: so, and n old ones are removed.
  struct Change {
    std::string_view character;
    int64_t change = 0;
  };

  template <class Use>
  static void for_each_character(std::string_view text, Use use) {
    while (!text.empty()) {
      const size_t size = decode_utf8(text).size;
      use(text.substr(0, size));
      text.remove_prefix(size);
    }
  }

  std::vector<Change> changes_;
  bool changed_ = false;
};

}  // namespace

std::string_view PrecompiledNormalizer::normalize(std::string_view text, TextStore& store) const {
  Changes changes(text.size());
  const auto replaced = [&](std::string_view part) {
    const auto found = map_->find_shortest(part);
    if (!found || !is_valid_utf8(*found)) return false;
    changes.replace(part, *found);
    return true;
  };
  for (size_t at = 0; at < text.size();) {
    const std::string_view cluster = text.substr(at, cluster_size(text.substr(at)));
    at += cluster.size();
    if (cluster.size() < kShortCluster && replaced(cluster)) continue;
    for (size_t i = 0; i < cluster.size();) {
      const std::string_view character = cluster.substr(i, decode_utf8(cluster.substr(i)).size);
      if (!replaced(character)) changes.keep(character);
      i += character.size();
    }
  }
  return changes.any() ? changes.apply(store, text) : text;
}

std::unique_ptr<Normalizer> read_precompiled_normalizer(const DocumentCursor& field) {
  const DocumentCursor map = field.at("precompiled_charsmap");
  auto bytes = bytes_of_base64(map.string());
  if (!bytes) map.mismatch("base64");
  return std::make_unique<PrecompiledNormalizer>(
      std::make_unique<CharsMap>(std::move(*bytes), map.where()));
}

}  // namespace paceline
