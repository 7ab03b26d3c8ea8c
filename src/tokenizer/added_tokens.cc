#include "tokenizer/added_tokens.h"

#include <algorithm>
#include <utility>

#include "tokenizer/unicode_class.h"

namespace paceline {
namespace {

bool stands_alone(const ClassReader& text, size_t begin, size_t end) {
  const bool word_before = begin > 0 && (text.at(text.before(begin)).classes & kWord) != 0;
  const bool word_behind = (text.at(end).classes & kWord) != 0;
  return !word_before && !word_behind;
}

// Finds the end of the white space at an offset. Remembers the last run, so that a query at each of
// its characters stays linear.
class SpaceBehind {
 public:
  explicit SpaceBehind(const ClassReader& text) : text_(text) {}

  size_t end(size_t offset) {
    if (offset < begin_ || offset >= end_) {
      begin_ = offset;
      end_ = text_.end_of_run(offset, kSpace);
    }
    return end_;
  }

 private:
  const ClassReader& text_;
  size_t begin_ = 0;
  size_t end_ = 0;
};

// The begin of the white space before `offset`, at least `limit`.
size_t begin_of_space(const ClassReader& text, size_t offset, size_t limit) {
  while (offset > limit) {
    const size_t previous = text.before(offset);
    if ((text.at(previous).classes & kSpace) == 0) break;
    offset = previous;
  }
  return offset;
}

}  // namespace

AddedTokens::AddedTokens(std::vector<AddedToken> tokens, const Normalizer* normalizer)
    : tokens_(with_patterns(std::move(tokens), normalizer)),
      raw_(make_patterns(tokens_, Stage::raw)),
      normalized_(make_patterns(tokens_, Stage::normalized)),
      specials_(match_specials(tokens_)) {
  for (size_t i = 0; i < tokens_.size(); ++i) {
    by_id_.emplace(tokens_[i].id, i);
    by_content_.emplace(tokens_[i].content, i);
  }
}

std::vector<AddedToken> AddedTokens::with_patterns(std::vector<AddedToken> tokens,
                                                   const Normalizer* normalizer) {
  for (AddedToken& token : tokens) {
    TextStore store(token.content);
    const bool changed = token.normalized && normalizer != nullptr;
    token.pattern = changed ? normalizer->normalize(token.content, store) : token.content;
  }
  return tokens;
}

AddedTokens::Patterns AddedTokens::make_patterns(const std::vector<AddedToken>& tokens,
                                                 Stage stage) {
  std::vector<size_t> chosen;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const bool here = tokens[i].normalized == (stage == Stage::normalized);
    if (here && !tokens[i].pattern.empty()) chosen.push_back(i);
  }
  // If normalisation makes two tokens equal, the special one is found.
  std::stable_partition(chosen.begin(), chosen.end(), [&](size_t i) { return tokens[i].special; });
  std::vector<std::string_view> strings;
  for (const size_t i : chosen) strings.push_back(tokens[i].pattern);
  return {StringMatcher(strings), std::move(chosen)};
}

StringMatcher AddedTokens::match_specials(const std::vector<AddedToken>& tokens) {
  std::vector<std::string_view> strings;
  for (const AddedToken& token : tokens) {
    if (token.special && !token.content.empty()) strings.push_back(token.content);
  }
  return StringMatcher(strings);
}

std::vector<size_t> AddedTokens::special_offsets(std::string_view text) const {
  std::vector<size_t> offsets;
  for (auto match = specials_.find(text, 0); match;
       match = specials_.find(text, match->begin + 1)) {
    offsets.push_back(match->begin);
  }
  return offsets;
}

std::vector<AddedTokens::Segment> AddedTokens::split(std::string_view text, Stage stage,
                                                     const Recognises& recognises) const {
  const Patterns& patterns = stage == Stage::raw ? raw_ : normalized_;
  const ClassReader reader(text, UnicodeClassTable::shared());
  SpaceBehind space_behind(reader);
  std::vector<Segment> segments;
  size_t done = 0;
  for (size_t from = 0; from < text.size();) {
    const auto match = patterns.matcher.find(text, from);
    if (!match) break;
    // A skipped token hides others that overlap it, as in HF tokenizers.
    from = match->end;
    const AddedToken& token = tokens_[patterns.tokens[match->index]];
    const std::string_view found = text.substr(match->begin, match->end - match->begin);
    if (token.special && !recognises(found)) continue;
    if (token.single_word && !stands_alone(reader, match->begin, match->end)) continue;
    const size_t begin =
        token.lstrip ? std::max(done, begin_of_space(reader, match->begin, done)) : match->begin;
    const size_t end = token.rstrip ? space_behind.end(match->end) : match->end;
    if (done < begin) segments.push_back({text.substr(done, begin - done)});
    // A token is dropped if the one before it included its whole text.
    if (begin < end) segments.push_back({text.substr(begin, end - begin), token.id});
    done = end;
  }
  if (done < text.size()) segments.push_back({text.substr(done)});
  return segments;
}

const AddedToken* AddedTokens::find(TokenId id) const {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : &tokens_[found->second];
}

const AddedToken* AddedTokens::find(std::string_view content) const {
  const auto found = by_content_.find(content);
  return found == by_content_.end() ? nullptr : &tokens_[found->second];
}

}  // namespace paceline
