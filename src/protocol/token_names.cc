#include "protocol/token_names.h"

#include <algorithm>

namespace paceline {

NamedToken TokenNames::named(int32_t id) const {
  if (!has_token(id)) return {.id = id};
  return {.id = id, .bytes = std::string(tokenizer_->token_bytes(id))};
}

size_t TokenNames::bytes_in_response(int32_t id, SpecialTokens specials) const {
  if (!has_token(id)) return 0;
  const bool is_hidden = specials == SpecialTokens::hidden && tokenizer_->is_special(id);
  return is_hidden ? 0 : tokenizer_->token_bytes(id).size();
}

std::string TokenNames::decode(std::span<const int32_t> ids) const {
  return tokenizer_ == nullptr ? std::string() : tokenizer_->decode(ids);
}

std::string TokenNames::decode_known(std::vector<int32_t> ids) const {
  std::erase_if(ids, [this](int32_t id) { return !has_token(id); });
  return decode(ids);
}

std::vector<size_t> TokenNames::bytes_in_prompt(std::string_view text,
                                                bool add_special_tokens) const {
  std::vector<size_t> sizes;
  if (tokenizer_ == nullptr) return sizes;
  size_t covered = 0;  // tokens that share a character all have its whole span
  for (const TextSpan& span :
       tokenizer_->encode_with_spans(text, {.add_special = add_special_tokens}).spans) {
    const size_t end = std::max(span.end, covered);
    sizes.push_back(end - covered);
    covered = end;
  }
  return sizes;
}

}  // namespace paceline
