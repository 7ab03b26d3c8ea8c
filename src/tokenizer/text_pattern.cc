#include "tokenizer/text_pattern.h"

#include <string>

#include "tokenizer/string_matcher.h"

namespace paceline {
namespace {

class StringPattern final : public TextPattern {
 public:
  explicit StringPattern(std::string_view string) : string_(string) {}

  void find_all(std::string_view text, std::vector<Match>& matches) const override {
    matches.clear();
    size_t begin = text.find(string_);
    while (begin != std::string_view::npos) {
      matches.push_back({begin, begin + string_.size()});
      begin = text.find(string_, begin + string_.size());
    }
  }

 private:
  std::string string_;
};

class StringsPattern final : public TextPattern {
 public:
  explicit StringsPattern(const std::vector<std::string_view>& strings) : matcher_(strings) {}

  void find_all(std::string_view text, std::vector<Match>& matches) const override {
    matches.clear();
    for (auto found = matcher_.find(text, 0); found; found = matcher_.find(text, found->end)) {
      matches.push_back({found->begin, found->end});
    }
  }

 private:
  StringMatcher matcher_;
};

}  // namespace

std::unique_ptr<TextPattern> make_strings_pattern(const std::vector<std::string_view>& strings) {
  return std::make_unique<StringsPattern>(strings);
}

std::unique_ptr<TextPattern> make_string_pattern(std::string_view string) {
  return std::make_unique<StringPattern>(string);
}

}  // namespace paceline
