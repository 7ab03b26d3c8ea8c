#include "tokenizer/bpe_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "base/utf8.h"
#include "tokenizer/bpe_merge.h"
#include "tokenizer/byte_level.h"
#include "tokenizer/span_trim.h"
#include "tokenizer/text_normalizers.h"
#include "tokenizer/text_store.h"

namespace paceline {
namespace {

constexpr size_t kMaxTextBytes = size_t{1} << 31;  // positions in a piece are 32 bits wide

void check_size(std::string_view text) {
  if (text.size() <= kMaxTextBytes) return;
  throw Error(ErrorCode::exhausted, fmt::format("a text of {} bytes, at most {} are encoded",
                                                text.size(), kMaxTextBytes));
}

// The offsets in `text` of every byte of its repaired form, and of its end.
std::vector<size_t> offsets_of_repaired(std::string_view text) {
  std::vector<size_t> offsets;
  std::string character;
  for (size_t at = 0; at < text.size();) {
    const DecodedCodePoint decoded = decode_utf8(text.substr(at));
    character.clear();
    append_utf8(character, decoded.code_point);
    offsets.insert(offsets.end(), character.size(), at);
    at += decoded.size;
  }
  offsets.push_back(text.size());
  return offsets;
}

// Spans of `text` become those of its repaired form.
void move_to_repaired(std::vector<TextSpan>& spans, std::string_view text) {
  if (spans.empty()) return;
  const std::vector<size_t> offsets = offsets_of_repaired(text);
  const auto moved = [&offsets](size_t offset) {
    return static_cast<size_t>(std::lower_bound(offsets.begin(), offsets.end(), offset) -
                               offsets.begin());
  };
  for (TextSpan& span : spans) span = {moved(span.begin), moved(span.end)};
}

}  // namespace

// Runs added tokens, normalizer, added tokens again, pre-tokenizer and merges, in the order of HF
// tokenizers.
class BpeTokenizer::Encoder {
 public:
  Encoder(const BpeTokenizer& tokenizer, std::string_view text, EncodeOptions options,
          TextStore::Spans spans)
      : tokenizer_(tokenizer),
        text_(text),
        options_(options),
        store_(text, spans),
        merger_(tokenizer.file_.merges),
        cache_(tokenizer.caches_) {}

  void add_text() {
    for (const auto& segment : split(text_, AddedTokens::Stage::raw)) {
      if (segment.token >= 0) {
        add_token(segment);
      } else {
        add_normalized(normalize(segment.text));
      }
    }
  }

  std::vector<TokenId> take_ids() { return std::move(ids_); }
  std::vector<TextSpan> take_spans() { return std::move(spans_); }

 private:
  std::vector<AddedTokens::Segment> split(std::string_view text, AddedTokens::Stage stage) const {
    return tokenizer_.added_tokens_.split(
        text, stage, [this](std::string_view special) { return recognises(special); });
  }

  bool recognises(std::string_view special) const {
    if (options_.specials_as_text) return false;
    if (options_.plain.empty()) return true;
    const TextSpan found = store_.span(special);
    const auto ends_before = [](const TextSpan& span, size_t begin) { return span.end <= begin; };
    const auto next =
        std::lower_bound(options_.plain.begin(), options_.plain.end(), found.begin, ends_before);
    return next == options_.plain.end() || next->begin >= found.end;
  }

  std::string_view normalize(std::string_view text) {
    const Normalizer* normalizer = tokenizer_.file_.normalizer.get();
    return normalizer == nullptr ? text : normalizer->normalize(text, store_);
  }

  void add_token(const AddedTokens::Segment& segment) {
    if (store_.tracked()) add_span(store_.span(segment.text), segment.text);
    ids_.push_back(segment.token);
  }

  void add_normalized(std::string_view text) {
    for (const auto& segment : split(text, AddedTokens::Stage::normalized)) {
      if (segment.token >= 0) {
        add_token(segment);
        continue;
      }
      pieces_.views.assign(1, segment.text);
      tokenizer_.file_.pieces.pre_tokenizer->split(pieces_);
      for (const std::string_view piece : pieces_.views) {
        store_.tracked() ? add_piece_with_spans(piece) : add_piece(piece);
      }
    }
  }

  void add_piece(std::string_view piece) {
    if (!tokenizer_.file_.borders) return add_word(piece);
    if (const auto id = whole_piece(piece)) return ids_.push_back(*id);
    tokenizer_.file_.borders->for_each_part(piece, [&](std::string_view word) { add_word(word); });
  }

  void add_word(std::string_view word) {
    if (word.size() > WordCache::kMaxWordBytes) return merge_word(word);
    const WordCache::Key key = WordCache::key_of(word);
    if (cache_->append(key, ids_)) return;
    const size_t first = ids_.size();
    merge_word(word);
    cache_->put(key, std::span(ids_).subspan(first));
  }

  void merge_word(std::string_view word) {
    if (!tokenizer_.file_.borders) {  // else it may be a part of a piece
      if (const auto id = whole_piece(word)) return ids_.push_back(*id);
    }
    if (tokenizer_.file_.unigram) return tokenizer_.file_.unigram->append(word, ids_);
    if (tokenizer_.file_.word_piece) return tokenizer_.file_.word_piece->append(word, ids_);
    symbols_.clear();
    tokenizer_.symbols_.append(word, symbols_);
    merger_.merge(symbols_, ids_);
  }

  // The token of the whole piece, if there is one that needs no merges.
  std::optional<TokenId> whole_piece(std::string_view piece) const {
    const TokenizerFile& file = tokenizer_.file_;
    if (!file.options.ignore_merges && file.whole_tokens.empty()) return std::nullopt;
    const auto id =
        file.vocabulary.find(file.pieces.byte_level ? to_byte_level(piece) : std::string(piece));
    if (!id || file.options.ignore_merges) return id;
    const auto& whole = file.whole_tokens;
    return std::binary_search(whole.begin(), whole.end(), *id) ? id : std::nullopt;
  }

  void add_piece_with_spans(std::string_view piece) {
    if (const auto id = whole_piece(piece)) {
      add_span(store_.span(piece), tokenizer_.file_.vocabulary.text(*id));
      ids_.push_back(*id);
      return;
    }
    symbols_.clear();
    sizes_.clear();
    starts_.clear();
    std::vector<TokenId> tokens;
    const TokenizerFile& file = tokenizer_.file_;
    if (file.unigram || file.word_piece) {
      file.unigram ? file.unigram->append(piece, tokens, &sizes_)
                   : file.word_piece->append(piece, tokens, &sizes_);
      symbols_.resize(tokens.size());
      for (uint32_t i = 0; i < tokens.size(); ++i) starts_.push_back(i);
    } else {
      tokenizer_.symbols_.append(piece, symbols_, &sizes_);
      merger_.merge_with_starts(symbols_, tokens, starts_);
    }
    // Sizes count bytes of the piece in the byte-level alphabet.
    if (tokenizer_.file_.pieces.byte_level) piece = ByteLevelNormalizer().normalize(piece, store_);
    starts_.push_back(static_cast<uint32_t>(symbols_.size()));
    size_t offset = 0;
    for (size_t i = 0; i < tokens.size(); ++i) {
      const size_t size =
          std::accumulate(sizes_.begin() + starts_[i], sizes_.begin() + starts_[i + 1], size_t{0});
      add_span(store_.span(piece.substr(offset, size)),
               tokenizer_.file_.vocabulary.text(tokens[i]));
      ids_.push_back(tokens[i]);
      offset += size;
    }
  }

  // Appends the span of the next token.
  void add_span(TextSpan span, std::string_view token) {
    for (const SpecialFrame::Trim& trim : tokenizer_.file_.frame.trims) {
      span = trim_span(span, text_, {.text = token, .first = ids_.empty()}, trim.add_prefix_space);
    }
    spans_.push_back(span);
  }

  const BpeTokenizer& tokenizer_;
  const std::string_view text_;
  const EncodeOptions options_;
  TextStore store_;
  BpeMerger merger_;
  WordCachePool::Lease cache_;
  Pieces pieces_{{}, store_};
  std::vector<TokenId> symbols_;
  std::vector<uint32_t> sizes_;
  std::vector<uint32_t> starts_;
  std::vector<TokenId> ids_;
  std::vector<TextSpan> spans_;
};

BpeTokenizer::BpeTokenizer(TokenizerFile file, std::string_view where)
    : file_(std::move(file)),
      added_tokens_(std::move(file_.added_tokens), file_.normalizer.get()),
      table_(file_.vocabulary, added_tokens_, file_.decoder),
      symbols_(file_.vocabulary, file_.options,
               file_.pieces.byte_level ? BpeSymbols::Characters::bytes
                                       : BpeSymbols::Characters::code_points,
               where) {
  if (!symbols_.code_points_stand_alone()) file_.borders.reset();
}

std::vector<TokenId> BpeTokenizer::encode(std::string_view text, EncodeOptions options) const {
  check_size(text);
  const std::string_view original = text;
  std::string repaired;
  if (!is_valid_utf8(text)) {
    repaired = replace_invalid_utf8(text);
    text = repaired;
  }
  std::vector<TextSpan> plain(options.plain.begin(), options.plain.end());
  if (!repaired.empty()) move_to_repaired(plain, original);
  options.plain = plain;
  Encoder encoder(*this, text, options,
                  plain.empty() ? TextStore::Spans::untracked : TextStore::Spans::tracked);
  encoder.add_text();
  std::vector<TokenId> ids = encoder.take_ids();
  if (!options.add_special) return ids;
  ids.insert(ids.begin(), file_.frame.before.begin(), file_.frame.before.end());
  ids.insert(ids.end(), file_.frame.behind.begin(), file_.frame.behind.end());
  return ids;
}

Encoding BpeTokenizer::encode_with_spans(std::string_view text, EncodeOptions options) const {
  check_size(text);
  const bool repair = !is_valid_utf8(text);
  const std::string repaired = repair ? replace_invalid_utf8(text) : std::string();
  std::vector<TextSpan> plain(options.plain.begin(), options.plain.end());
  if (repair) move_to_repaired(plain, text);
  options.plain = plain;
  Encoder encoder(*this, repair ? repaired : text, options, TextStore::Spans::tracked);
  encoder.add_text();
  Encoding encoding{.ids = encoder.take_ids(), .spans = encoder.take_spans()};
  if (repair) {
    const std::vector<size_t> offsets = offsets_of_repaired(text);
    for (TextSpan& span : encoding.spans) span = {offsets[span.begin], offsets[span.end]};
  }
  if (!options.add_special) return encoding;
  const auto& before = file_.frame.before;
  const auto& behind = file_.frame.behind;
  encoding.ids.insert(encoding.ids.begin(), before.begin(), before.end());
  encoding.spans.insert(encoding.spans.begin(), before.size(), {});
  encoding.ids.insert(encoding.ids.end(), behind.begin(), behind.end());
  encoding.spans.resize(encoding.ids.size());
  return encoding;
}

namespace {

void cut_to(std::vector<TokenId>& ids, size_t count, bool drops_begin) {
  if (ids.size() <= count) return;
  if (drops_begin) {
    ids.erase(ids.begin(), ids.end() - static_cast<std::ptrdiff_t>(count));
  } else {
    ids.resize(count);
  }
}

// Together at most `count` tokens: the shorter text keeps up to half of them.
void cut_longest_first(std::vector<TokenId>& first, std::vector<TokenId>& second, size_t count,
                       bool drops_begin) {
  if (first.size() + second.size() <= count) return;
  const bool is_first_shorter = first.size() <= second.size();
  std::vector<TokenId>& shorter = is_first_shorter ? first : second;
  std::vector<TokenId>& longer = is_first_shorter ? second : first;
  const size_t kept = std::min(shorter.size(), count / 2);
  cut_to(shorter, kept, drops_begin);
  cut_to(longer, count - kept, drops_begin);
}

}  // namespace

PairEncoding BpeTokenizer::encode_pair(std::string_view first, std::string_view second,
                                       EncodeOptions options,
                                       std::optional<PairLimit> limit) const {
  const SpecialFrame& frame = file_.frame;
  if (!frame.pairs) {
    throw Error(ErrorCode::unsupported,
                fmt::format("pairs of texts aren't supported by this tokenizer: its post-processor "
                            "has no template with one first and one second text"));
  }
  PairEncoding encoding;
  using Kind = SpecialFrame::Part::Kind;
  const EncodeOptions bare{.specials_as_text = options.specials_as_text};
  std::vector<TokenId> of_first = encode(first, bare), of_second = encode(second, bare);
  if (limit) {
    size_t num_special = 0;
    for (const SpecialFrame::Part& part : frame.pair) {
      if (options.add_special && part.kind == Kind::tokens) num_special += part.ids.size();
    }
    const auto most = static_cast<size_t>(std::max<int64_t>(limit->max_tokens, 0));
    cut_longest_first(of_first, of_second, most - std::min(most, num_special), limit->drops_begin);
  }
  for (const SpecialFrame::Part& part : frame.pair) {
    std::vector<TokenId> ids;
    if (part.kind == Kind::tokens) {
      if (options.add_special) ids = part.ids;
    } else {
      ids = std::move(part.kind == Kind::first ? of_first : of_second);
    }
    encoding.ids.insert(encoding.ids.end(), ids.begin(), ids.end());
    encoding.type_ids.resize(encoding.ids.size(),
                             options.add_special ? part.type_id : part.bare_type_id);
  }
  return encoding;
}

std::string BpeTokenizer::decode(std::span<const TokenId> ids, DecodeOptions options) const {
  TokenJoiner joiner(file_.decoder, table_);
  std::string text;
  text.reserve(4 * ids.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    if (joiner.is_plain()) {
      i += table_.append_texts(ids.subspan(i), options, text);
      if (i == ids.size()) break;
    }
    const TokenId id = ids[i];
    check_id(id);
    if (!table_.exists(id) || (options.skip_special && is_special(id))) continue;
    joiner.needs_text() ? joiner.push_text(decoded_text(id), text) : joiner.push_id(id, text);
  }
  joiner.finish(text);
  if (file_.decoder.joined_is_bytes && !is_valid_utf8(text)) text = replace_invalid_utf8(text);
  for (const auto& step : file_.decoder.text) {
    const auto stream = step->begin_text();
    std::string changed;
    stream->push(text, changed);
    stream->finish(changed);
    text = std::move(changed);
  }
  return text;
}

void BpeTokenizer::check_id(TokenId id) const {
  if (id >= 0 && id < vocab_size()) return;
  throw Error(ErrorCode::invalid, fmt::format("the token id {} is outside the vocabulary (0..{})",
                                              id, vocab_size() - 1));
}

std::string_view BpeTokenizer::decoded_text(TokenId id) const {
  const AddedToken* added = added_tokens_.find(id);
  return added != nullptr ? std::string_view(added->pattern) : file_.vocabulary.text(id);
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
