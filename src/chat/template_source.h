// TemplateSource is the text of a template as Jinja reads it, with its line starts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "chat/template_error.h"

namespace paceline {

class TemplateSource {
 public:
  // \r\n and \r become \n; one newline at the end is dropped.
  explicit TemplateSource(std::string_view source);

  const std::string& text() const { return text_; }
  // The position of a byte. Ascending offsets are fastest: columns are counted from the last one.
  TemplatePosition position(size_t offset) const;

 private:
  std::string text_;
  std::vector<size_t> lines_ = {0};  // offsets of line starts
  mutable size_t known_offset_ = 0;
  mutable uint32_t known_column_ = 1;
};

}  // namespace paceline
