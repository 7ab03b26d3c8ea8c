// JsonNames reads JSON byte by byte and finds names that an object has already.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/name_set.h"
#include "grammar/token_set.h"
#include "grammar/token_trie.h"

namespace paceline {

// A value: how far a text has come, and the names of the objects that are open. Texts need not be
// JSON, and names are meant only within the values that begin().
class JsonNames {
 public:
  // Names in deeper objects, and longer names, aren't compared.
  static constexpr size_t kMaxDepth = 64;
  static constexpr size_t kMaxNameBytes = 1024;

  // Whether no value has begun, or the last one has ended.
  bool is_outside() const { return place_ == Place::outside; }
  // A value may begin here.
  void begin();
  // False when the byte ends a name that its object has.
  bool step(uint8_t byte);
  // Steps over all bytes. False when one of them ends such a name.
  bool step(std::string_view bytes);

  // Takes tokens that end such a name out of `mask`. Returns whether there were any.
  bool forbid_repeated(const TokenTrie& trie, std::shared_ptr<const TokenSet>& mask) const;

 private:
  enum class Place : uint8_t { outside, before, between, string, escaped, name };

  // A name within its quotes, escapes read.
  struct NameReader {
    std::string text;
    bool is_escaped = false;  // behind a backslash
    uint8_t digits_left = 0;  // of \u
    uint32_t code = 0;        // these digits so far
    uint32_t high = 0;        // the first half of a surrogate pair

    // True: it was the closing quote.
    bool step(uint8_t byte);
    // The bytes that may lead to one of the names, or to its end.
    ByteSet next_bytes(const NameSet& names) const;

    bool is_too_long() const { return text.size() > kMaxNameBytes; }

   private:
    void add_code();
  };
  class Search;

  void step_between(uint8_t byte);
  bool end_name();
  void close_value();
  bool has_names() const;

  Place place_ = Place::outside;
  bool expects_name_ = false;  // the next string is one
  bool adds_names_ = true;     // false: no name is compared with a later one
  // The names of open objects; null: of an array. How many deeper values are open.
  std::vector<std::shared_ptr<const NameSet>> open_;
  size_t num_deeper_ = 0;
  NameReader name_;  // in a name
};

}  // namespace paceline
