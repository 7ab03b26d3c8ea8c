#include "grammar/json_names.h"

#include <algorithm>
#include <span>
#include <utility>

#include "base/utf8.h"

namespace paceline {
namespace {

bool is_blank(uint8_t byte) { return byte == ' ' || byte == '\n' || byte == '\r' || byte == '\t'; }

// What a letter behind a backslash stands for.
char unescaped(uint8_t letter) {
  switch (letter) {
    case 'b':
      return '\b';
    case 'f':
      return '\f';
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    default:
      return static_cast<char>(letter);
  }
}

uint32_t hex_value(uint8_t digit) {
  if (digit >= '0' && digit <= '9') return digit - uint32_t{'0'};
  return (digit | uint32_t{0x20}) - 'a' + 10;
}

}  // namespace

// In JSON pairs of surrogates are whole.
void JsonNames::NameReader::add_code() {
  constexpr uint32_t kFirstHigh = 0xD800, kFirstLow = 0xDC00, kEnd = 0xE000;
  const bool is_high = code >= kFirstHigh && code < kFirstLow;
  const bool is_low = code >= kFirstLow && code < kEnd;
  if (!is_high && !is_low) append_utf8(text, static_cast<char32_t>(code));
  if (is_low && high != 0) {
    const uint32_t first = 0x10000 + ((high - kFirstHigh) << 10);
    append_utf8(text, static_cast<char32_t>(first + code - kFirstLow));
  }
  high = is_high ? code : 0;
}

bool JsonNames::NameReader::step(uint8_t byte) {
  text.resize(std::min(text.size(), kMaxNameBytes + 1));
  if (digits_left > 0) {
    code = code << 4 | hex_value(byte);
    if (--digits_left == 0) add_code();
  } else if (is_escaped) {
    is_escaped = false;
    if (byte == 'u') {
      digits_left = 4;
      code = 0;
    } else {
      text += unescaped(byte);
    }
  } else if (byte == '"') {
    return true;
  } else if (byte == '\\') {
    is_escaped = true;
  } else {
    text += static_cast<char>(byte);
  }
  return false;
}

ByteSet JsonNames::NameReader::next_bytes(const NameSet& names) const {
  if (is_escaped || digits_left > 0 || high != 0) return ByteSet().set();
  ByteSet next = names.next_bytes(text);
  const bool goes_on = next.any();
  next['"'] = names.contains(text);
  next['\\'] = goes_on;
  return next;
}

// Finds the tokens that end a name which its object has.
class JsonNames::Search {
 public:
  Search(const JsonNames& names, const TokenTrie& trie, const TokenSet& mask)
      : names_(names), trie_(trie), mask_(mask) {}

  // The mask without them; null: there are none.
  std::shared_ptr<const TokenSet> run() {
    if (names_.place_ == Place::name) end_open_name();
    if (names_.place_ == Place::between && names_.expects_name_ && names_.has_names()) {
      try_tokens(trie_.tokens_with_quotes());
    } else {
      try_tokens(trie_.tokens_with_members(least_quotes()));
    }
    return left_;
  }

 private:
  // Of a token that ends a name which began in it behind a comma or a brace, and which another one
  // equals: one in it, or one before.
  size_t least_quotes() const {
    switch (names_.place_) {
      case Place::name:
        return 3;
      case Place::string:
      case Place::escaped:
        return names_.has_names() ? 3 : 4;
      default:
        return names_.has_names() ? 2 : 4;
    }
  }

  // A name goes on towards known ones, or ends as one, with few bytes.
  void end_open_name() {
    const NameSet& known = *names_.open_.back();
    if (known.empty()) return;
    const ByteSet next = names_.name_.next_bytes(known);
    for (size_t byte = 0; byte < next.size(); ++byte) {
      if (next[byte]) try_tokens(trie_.tokens_with_quote(static_cast<uint8_t>(byte)));
    }
  }

  void forbid(uint32_t token) {
    if (left_ == nullptr) left_ = std::make_shared<TokenSet>(mask_);
    left_->forbid(token);
  }

  void try_tokens(std::span<const uint32_t> tokens) {
    for (const uint32_t token : tokens) {
      if (!mask_.allows(token)) continue;
      const std::string_view bytes = trie_.bytes(token);
      behind_ = names_;
      behind_.adds_names_ = std::ranges::count(bytes, '"') > 2;
      if (!behind_.step(bytes)) forbid(token);
    }
  }

  const JsonNames& names_;
  const TokenTrie& trie_;
  const TokenSet& mask_;
  std::shared_ptr<TokenSet> left_;
  JsonNames behind_;  // a token that is tried
};

void JsonNames::begin() {
  *this = JsonNames();
  place_ = Place::before;
}

bool JsonNames::has_names() const {
  return std::any_of(open_.begin(), open_.end(),
                     [](const auto& names) { return names != nullptr && !names->empty(); });
}

void JsonNames::close_value() {
  expects_name_ = false;
  if (num_deeper_ > 0) {
    --num_deeper_;
    return;
  }
  if (!open_.empty()) open_.pop_back();
  if (open_.empty()) *this = JsonNames();
}

void JsonNames::step_between(uint8_t byte) {
  const bool is_object = byte == '{';
  switch (byte) {
    case '{':
    case '[':
      if (open_.size() == kMaxDepth) {
        ++num_deeper_;
      } else {
        open_.push_back(is_object ? std::make_shared<const NameSet>() : nullptr);
      }
      expects_name_ = is_object && num_deeper_ == 0;
      break;
    case '}':
    case ']':
      close_value();
      break;
    case ',':
      expects_name_ = num_deeper_ == 0 && open_.back() != nullptr;
      break;
    case ':':
      expects_name_ = false;
      break;
    case '"':
      place_ = expects_name_ ? Place::name : Place::string;
      name_ = {};
      break;
    default:
      break;
  }
}

bool JsonNames::end_name() {
  place_ = Place::between;
  expects_name_ = false;
  if (name_.is_too_long()) return true;
  if (open_.back()->contains(name_.text)) return false;
  if (!adds_names_) return true;
  NameSet names = *open_.back();
  names.add(std::move(name_.text));
  open_.back() = std::make_shared<const NameSet>(std::move(names));
  return true;
}

bool JsonNames::step(uint8_t byte) {
  switch (place_) {
    case Place::outside:
      return true;
    case Place::before:
      if (byte == '{' || byte == '[') {
        place_ = Place::between;
        step_between(byte);
      } else if (!is_blank(byte)) {
        *this = JsonNames();
      }
      return true;
    case Place::between:
      step_between(byte);
      return true;
    case Place::string:
      if (byte == '"') place_ = Place::between;
      if (byte == '\\') place_ = Place::escaped;
      return true;
    case Place::escaped:
      place_ = Place::string;
      return true;
    case Place::name:
      break;
  }
  return !name_.step(byte) || end_name();
}

bool JsonNames::step(std::string_view bytes) {
  bool all_differ = true;
  for (const char byte : bytes) all_differ &= step(static_cast<uint8_t>(byte));
  return all_differ;
}

bool JsonNames::forbid_repeated(const TokenTrie& trie,
                                std::shared_ptr<const TokenSet>& mask) const {
  if (place_ == Place::outside) return false;
  const auto left = Search(*this, trie, *mask).run();
  if (left != nullptr) mask = left;
  return left != nullptr;
}

}  // namespace paceline
