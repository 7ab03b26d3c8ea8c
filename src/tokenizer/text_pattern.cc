#include "tokenizer/text_pattern.h"

#include <string>

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

}  // namespace

std::unique_ptr<TextPattern> make_string_pattern(std::string_view string) {
  return std::make_unique<StringPattern>(string);
}

}  // namespace paceline
