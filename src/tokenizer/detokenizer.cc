#include "tokenizer/detokenizer.h"

#include <span>

#include "base/utf8.h"

namespace paceline {

IncrementalDetokenizer::IncrementalDetokenizer(const Tokenizer& tokenizer, DecodeOptions options)
    : tokenizer_(tokenizer), options_(options) {}

std::string IncrementalDetokenizer::push(TokenId id) {
  tokenizer_.check_id(id);
  if (options_.skip_special && tokenizer_.is_special(id)) return {};
  pending_ += tokenizer_.token_bytes(id);
  const size_t complete = pending_.size() - incomplete_utf8_suffix(pending_);
  std::string text = replace_invalid_utf8(std::string_view(pending_).substr(0, complete));
  pending_.erase(0, complete);
  return text;
}

std::string IncrementalDetokenizer::finish() {
  std::string text = replace_invalid_utf8(pending_);
  pending_.clear();
  return text;
}

}  // namespace paceline
