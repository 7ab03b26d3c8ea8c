#include "tokenizer/text_store.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace paceline {
namespace {

bool continues_character(char byte) { return (static_cast<uint8_t>(byte) & 0xC0) == 0x80; }

}  // namespace

TextStore::TextStore(std::string_view input, Spans spans)
    : input_(input), tracked_(spans == Spans::tracked) {
  size_t size = std::min<size_t>(1, input.size());
  while (size < input.size() && continues_character(input[size])) ++size;
  starts_.push_back(input.substr(0, size));
}

bool TextStore::at_start(std::string_view text) const {
  if (text.empty()) return false;
  return std::any_of(starts_.begin(), starts_.end(), [&](std::string_view start) {
    return text.data() >= start.data() && text.data() < start.data() + start.size();
  });
}

TextSpan TextStore::span(std::string_view text) const {
  auto after = made_.upper_bound(text.data());
  if (after != made_.begin()) {
    const auto& [begin, made] = *std::prev(after);
    if (text.data() < begin + made.size) {
      const auto offset = static_cast<size_t>(text.data() - begin);
      return {made.spans[offset].begin, made.spans[offset + text.size() - 1].end};
    }
  }
  auto begin = static_cast<size_t>(text.data() - input_.data());
  size_t end = begin + text.size();
  while (begin > 0 && continues_character(input_[begin])) --begin;
  while (end < input_.size() && continues_character(input_[end])) ++end;
  return {begin, end};
}

TextEdit::TextEdit(TextStore& store, std::string_view text)
    : store_(store), text_(text), made_(store.texts_.emplace_back()) {
  made_.reserve(text.size() + text.size() / 8);
}

TextSpan TextEdit::span_at(size_t source) const {
  if (text_.empty()) return {};
  if (source < text_.size()) return store_.span(text_.substr(source, 1));
  const TextSpan last = store_.span(text_.substr(text_.size() - 1));
  return {last.end, last.end};
}

void TextEdit::put(std::string_view characters, size_t source) {
  if (characters.empty()) return;
  note_start(characters.size(), source);
  made_.append(characters);
  if (store_.tracked()) spans_.insert(spans_.end(), characters.size(), span_at(source));
}

// The next `bytes` of the new text come from the old text's byte at `source`.
void TextEdit::note_start(size_t bytes, size_t source) {
  start_goes_on_ = start_goes_on_ && source < text_.size() && store_.at_start(text_.substr(source));
  if (start_goes_on_) start_bytes_ += bytes;
}

void TextEdit::keep(size_t bytes) {
  if (bytes == 0) return;
  for (size_t i = offset_; i < offset_ + bytes && start_goes_on_; ++i) note_start(1, i);
  made_.append(text_.substr(offset_, bytes));
  if (store_.tracked()) {
    for (size_t i = offset_; i < offset_ + bytes; ++i) spans_.push_back(span_at(i));
  }
  offset_ += bytes;
}

void TextEdit::skip(size_t bytes) { offset_ += bytes; }

void TextEdit::put_for_next(std::string_view characters) { put(characters, offset_); }

void TextEdit::put_for_previous(std::string_view characters) {
  if (offset_ > 0) return put(characters, offset_ - 1);
  put(characters, 0);
  if (!store_.tracked() || text_.empty()) return;
  // The old text has no previous character.
  for (size_t i = spans_.size() - characters.size(); i < spans_.size(); ++i) {
    spans_[i].end = spans_[i].begin;
  }
}

std::string_view TextEdit::finish() {
  if (start_bytes_ > 0) store_.starts_.push_back(std::string_view(made_).substr(0, start_bytes_));
  if (store_.tracked()) store_.made_[made_.data()] = {made_.size(), std::move(spans_)};
  return made_;
}

}  // namespace paceline
