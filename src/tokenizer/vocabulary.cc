#include "tokenizer/vocabulary.h"

#include <bit>

#include "base/error.h"
#include "tokenizer/hashing.h"

namespace paceline {

Vocabulary::Vocabulary(size_t num_tokens)
    : slots_(std::bit_ceil(num_tokens + num_tokens / 2 + 2)), key_(random_hash_key()) {
  places_.reserve(num_tokens);
  texts_.reserve(8 * num_tokens);
}

uint64_t Vocabulary::prepare(std::string_view text) const {
  const uint64_t hash = hash_bytes(text, key_);
  __builtin_prefetch(&slots_[hash & (slots_.size() - 1)]);
  return hash;
}

size_t Vocabulary::slot_of(std::string_view text, uint64_t hash) const {
  const auto tag = static_cast<uint32_t>(hash >> 32);
  size_t at = hash & (slots_.size() - 1);
  for (;; at = (at + 1) & (slots_.size() - 1)) {
    const Slot& slot = slots_[at];
    if (slot.id < 0 || (slot.tag == tag && this->text(slot.id) == text)) return at;
  }
}

Vocabulary::Inserted Vocabulary::insert(std::string_view text, TokenId id) {
  PL_CHECK(num_tokens_ + 1 < slots_.size(), "more tokens than announced");
  if (contains(id)) return Inserted::id_is_taken;
  const uint64_t hash = hash_bytes(text, key_);
  Slot& slot = slots_[slot_of(text, hash)];
  if (slot.id >= 0) return Inserted::text_is_taken;
  const auto index = static_cast<size_t>(id);
  if (index >= places_.size()) places_.resize(index + 1);
  places_[index] = {static_cast<uint32_t>(texts_.size()), static_cast<uint32_t>(text.size())};
  texts_.append(text);
  slot = {static_cast<uint32_t>(hash >> 32), id};
  ++num_tokens_;
  return Inserted::yes;
}

std::optional<TokenId> Vocabulary::find(std::string_view text, uint64_t hash) const {
  const Slot& slot = slots_[slot_of(text, hash)];
  if (slot.id < 0) return std::nullopt;
  return slot.id;
}

bool Vocabulary::contains(TokenId id) const {
  return id >= 0 && static_cast<size_t>(id) < places_.size() &&
         places_[static_cast<size_t>(id)].size != kNoToken;
}

std::string_view Vocabulary::text(TokenId id) const {
  if (!contains(id)) return {};
  const Place place = places_[static_cast<size_t>(id)];
  return std::string_view(texts_).substr(place.begin, place.size);
}

void Vocabulary::shrink_to_fit() {
  texts_.shrink_to_fit();
  places_.shrink_to_fit();
}

}  // namespace paceline
