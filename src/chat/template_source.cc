#include "chat/template_source.h"

#include <algorithm>

namespace paceline {

TemplateSource::TemplateSource(std::string_view source) {
  text_.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    const bool is_return = source[i] == '\r';
    text_.push_back(is_return ? '\n' : source[i]);
    if (is_return && i + 1 < source.size() && source[i + 1] == '\n') ++i;
  }
  if (text_.ends_with('\n')) text_.pop_back();
  for (size_t i = 0; i < text_.size(); ++i) {
    if (text_[i] == '\n') lines_.push_back(i + 1);
  }
}

TemplatePosition TemplateSource::position(size_t offset) const {
  const auto line = std::upper_bound(lines_.begin(), lines_.end(), offset) - lines_.begin();
  const size_t begin = lines_[static_cast<size_t>(line) - 1];
  if (known_offset_ < begin || known_offset_ > offset) {
    known_offset_ = begin;
    known_column_ = 1;
  }
  for (; known_offset_ < std::min(offset, text_.size()); ++known_offset_) {
    known_column_ += (static_cast<uint8_t>(text_[known_offset_]) & 0xC0) != 0x80 ? 1 : 0;
  }
  return {static_cast<uint32_t>(line), known_column_};
}

}  // namespace paceline
