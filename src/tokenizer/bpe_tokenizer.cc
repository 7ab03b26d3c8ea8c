#include "tokenizer/bpe_tokenizer.h"

#include <fmt/format.h>

#include <utility>

#include "base/error.h"
#include "base/utf8.h"
#include "tokenizer/bpe_merge.h"
#include "tokenizer/byte_level.h"
#include "tokenizer/word_cache.h"

namespace paceline {
namespace {

constexpr size_t kMaxTextBytes = size_t{1} << 31;  // positions in a piece are 32 bits wide

}  // namespace

// Added tokens, normalizer, added tokens again, pre-tokenizer, merges: in the order of HF
// tokenizers.
class BpeTokenizer::Encoding {
 public:
  Encoding(const BpeTokenizer& tokenizer, EncodeOptions options, size_t text_bytes)
      : tokenizer_(tokenizer),
        options_(options),
        merger_(tokenizer.file_.merges),
        cache_(text_bytes) {}

  void add_text(std::string_view text) {
    for (const auto& segment : split(text, AddedTokens::Stage::raw)) {
      if (segment.token >= 0) {
        ids_.push_back(segment.token);
      } else {
        add_normalized(normalize(segment.text));
      }
    }
  }

  void add_tokens(std::span<const TokenId> ids) { ids_.insert(ids_.end(), ids.begin(), ids.end()); }

  std::vector<TokenId> take() { return std::move(ids_); }

 private:
  std::vector<AddedTokens::Segment> split(std::string_view text, AddedTokens::Stage stage) const {
    return tokenizer_.added_tokens_.split(text, stage, options_);
  }

  std::string_view normalize(std::string_view text) {
    const Normalizer* normalizer = tokenizer_.file_.normalizer.get();
    if (normalizer == nullptr) return text;
    // A string that was used stays, for the cache refers to it.
    if (normalized_.empty() || !normalized_.back().empty()) normalized_.emplace_back();
    return normalizer->normalize(text, normalized_.back());
  }

  void add_normalized(std::string_view text) {
    for (const auto& segment : split(text, AddedTokens::Stage::normalized)) {
      if (segment.token >= 0) {
        ids_.push_back(segment.token);
        continue;
      }
      pieces_.views.assign(1, segment.text);
      tokenizer_.file_.pre_tokenizer->split(pieces_);
      for (const std::string_view piece : pieces_.views) add_piece(piece);
    }
  }

  void add_piece(std::string_view piece) {
    WordCache::Entry* entry = cache_.entry_of(piece);
    if (entry != nullptr && WordCache::holds(*entry, piece)) {
      const size_t begin = entry->first_token;
      for (size_t i = begin; i < begin + entry->num_tokens; ++i) ids_.push_back(ids_[i]);
      return;
    }
    const size_t first = ids_.size();
    merge_piece(piece);
    if (entry == nullptr) return;
    *entry = {piece.data(), static_cast<uint32_t>(piece.size()),
              static_cast<uint32_t>(ids_.size() - first), first};
  }

  void merge_piece(std::string_view piece) {
    if (tokenizer_.file_.ignore_merges) {
      if (const auto id = tokenizer_.file_.vocabulary.find(to_byte_level(piece))) {
        ids_.push_back(*id);
        return;
      }
    }
    symbols_.clear();
    for (const char byte : piece) {
      const TokenId symbol = tokenizer_.byte_tokens_[static_cast<uint8_t>(byte)];
      if (symbol >= 0) symbols_.push_back(symbol);
    }
    merger_.merge(symbols_, ids_);
  }

  const BpeTokenizer& tokenizer_;
  const EncodeOptions options_;
  BpeMerger merger_;
  WordCache cache_;
  Pieces pieces_;
  std::deque<std::string> normalized_;
  std::vector<TokenId> symbols_;
  std::vector<TokenId> ids_;
};

BpeTokenizer::BpeTokenizer(TokenizerFile file, const TokenizerConfig& config)
    : file_(std::move(file)),
      added_tokens_(std::move(file_.added_tokens), file_.normalizer.get()),
      table_(file_.vocabulary, added_tokens_) {
  for (size_t byte = 0; byte < byte_tokens_.size(); ++byte) {
    byte_tokens_[byte] =
        file_.vocabulary.find(byte_level_character(static_cast<uint8_t>(byte))).value_or(-1);
  }
  if (config.bos_token) bos_ = token_id(*config.bos_token);
  if (config.eos_token) eos_ = token_id(*config.eos_token);
}

std::vector<TokenId> BpeTokenizer::encode(std::string_view text, EncodeOptions options) const {
  if (text.size() > kMaxTextBytes) {
    throw Error(ErrorCode::exhausted, fmt::format("a text of {} bytes, at most {} are encoded",
                                                  text.size(), kMaxTextBytes));
  }
  std::string repaired;
  if (!is_valid_utf8(text)) {
    repaired = replace_invalid_utf8(text);
    text = repaired;
  }
  Encoding encoding(*this, options, text.size());
  if (options.add_special) encoding.add_tokens(file_.frame.before);
  encoding.add_text(text);
  if (options.add_special) encoding.add_tokens(file_.frame.behind);
  return encoding.take();
}

std::string BpeTokenizer::decode(std::span<const TokenId> ids, DecodeOptions options) const {
  std::string bytes;
  for (const TokenId id : ids) {
    check_id(id);
    if (options.skip_special && is_special(id)) continue;
    bytes += token_bytes(id);
  }
  return is_valid_utf8(bytes) ? bytes : replace_invalid_utf8(bytes);
}

std::string_view BpeTokenizer::token_text(TokenId id) const {
  const AddedToken* added = added_tokens_.find(id);
  return added != nullptr ? std::string_view(added->content) : file_.vocabulary.text(id);
}

std::optional<TokenId> BpeTokenizer::token_id(std::string_view token_text) const {
  if (const AddedToken* added = added_tokens_.find(token_text)) return added->id;
  return file_.vocabulary.find(token_text);
}

}  // namespace paceline
