// Hand-written scanners for the split patterns of most models, selected by the exact pattern.
#include <string_view>

#include "tokenizer/split_pattern.h"
#include "tokenizer/unicode_class.h"

namespace paceline {
namespace {

constexpr uint16_t kSpaceLetterNumber = kSpace | kLetter | kNumber;
constexpr uint16_t kSign = kPunctuation | kSymbol;
constexpr char32_t kLongS =
    0x17F;  // the only other character that folds to a letter of a contraction

bool is_newline(char32_t c) { return c == '\r' || c == '\n'; }
bool is_ascii_letter(char32_t c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'); }

size_t end_of_newlines(const ClassReader& text, size_t from) {
  while (is_newline(text.at(from).code_point)) ++from;
  return from;
}

enum class Case { exact, folded };

// 's|'t|'re|'ve|'m|'ll|'d, with folded as (?i:...): the end of the match, or `from` if there is
// none.
size_t end_of_contraction(const ClassReader& text, size_t from, Case letter_case) {
  if (text.at(from).code_point != '\'') return from;
  const auto letter_at = [&](size_t offset) -> char32_t {
    const char32_t c = text.at(offset).code_point;
    if (letter_case == Case::exact) return c;
    return c == kLongS ? U's' : is_ascii_letter(c) ? c | 0x20 : c;
  };
  const char32_t first = letter_at(from + 1);
  if (first == 's' || first == 't' || first == 'm' || first == 'd') {
    return from + 1 + text.at(from + 1).size;
  }
  const char32_t second = first == 'r' || first == 'v' ? U'e' : first == 'l' ? U'l' : U'\0';
  return second != 0 && letter_at(from + 2) == second ? from + 3 : from;
}

// \s+(?!\S)|\s+ on a run of white space that ends at `end`: the last character goes to the next
// match.
size_t end_of_space(const ClassReader& text, size_t from, size_t end) {
  if (end == text.size()) return end;
  const size_t last = text.before(end);
  return last > from ? last : end;
}

// \s*[\r\n]+|\s+(?!\S)|\s+
size_t end_of_space_or_lines(const ClassReader& text, size_t from) {
  size_t end = from;
  size_t lines_end = from;
  for (;;) {
    const ClassifiedCodePoint here = text.at(end);
    if ((here.classes & kSpace) == 0) break;
    end += here.size;
    if (is_newline(here.code_point)) lines_end = end;
  }
  if (end == from) return from;
  return lines_end > from ? lines_end : end_of_space(text, from, end);
}

// kGpt2Pattern
struct Gpt2Scanner {
  static size_t match_end(const ClassReader& text, size_t from) {
    const size_t contraction = end_of_contraction(text, from, Case::exact);
    if (contraction > from) return contraction;
    const size_t word = text.at(from).code_point == ' ' ? from + 1 : from;
    const ClassifiedCodePoint first = text.at(word);
    if ((first.classes & kLetter) != 0) return text.end_of_run(word, kLetter);
    if ((first.classes & kNumber) != 0) return text.end_of_run(word, kNumber);
    const size_t others = text.end_of_run_without(word, kSpaceLetterNumber);
    if (others > word) return others;
    return end_of_space(text, from, text.end_of_run(from, kSpace));
  }
};

// cl100k's successors: Qwen 2 and 3 (numbers alone) and Llama 3 (numbers by up to three).
template <int max_numbers>
struct WordScanner {
  static size_t match_end(const ClassReader& text, size_t from) {
    const size_t contraction = end_of_contraction(text, from, Case::folded);
    if (contraction > from) return contraction;
    const ClassifiedCodePoint first = text.at(from);
    if ((first.classes & kLetter) != 0) return text.end_of_run(from, kLetter);
    if ((first.classes & kNumber) != 0) return end_of_numbers(text, from);
    if (!is_newline(first.code_point)) {
      const size_t word = text.end_of_run(from + first.size, kLetter);
      if (word > from + first.size) return word;
    }
    const size_t signs = first.code_point == ' ' ? from + 1 : from;
    const size_t signs_end = text.end_of_run_without(signs, kSpaceLetterNumber);
    if (signs_end > signs) return end_of_newlines(text, signs_end);
    return end_of_space_or_lines(text, from);
  }

  static size_t end_of_numbers(const ClassReader& text, size_t from) {
    for (int i = 0; i < max_numbers; ++i) {
      const ClassifiedCodePoint here = text.at(from);
      if ((here.classes & kNumber) == 0) break;
      from += here.size;
    }
    return from;
  }
};

// The three patterns of DeepSeek V3, one after the other.
struct DeepSeekNumbers {
  static size_t match_end(const ClassReader& text, size_t from) {
    return WordScanner<3>::end_of_numbers(text, from);
  }
};

struct DeepSeekCjk {
  static size_t match_end(const ClassReader& text, size_t from) {
    for (;;) {
      const ClassifiedCodePoint here = text.at(from);
      const char32_t c = here.code_point;
      const bool inside = (c >= 0x4E00 && c <= 0x9FA5) || (c >= 0x3040 && c <= 0x30FF);
      if (!inside) return from;
      from += here.size;
    }
  }
};

struct DeepSeekWords {
  static size_t match_end(const ClassReader& text, size_t from) {
    const ClassifiedCodePoint first = text.at(from);
    const size_t second = from + first.size;
    const bool is_sign = (first.classes & kSign) != 0;
    if (is_sign && first.size == 1 && is_ascii_letter(text.at(second).code_point)) {
      size_t end = second;
      while (is_ascii_letter(text.at(end).code_point)) ++end;
      return end;
    }
    if ((first.classes & (kLetter | kMark)) != 0) return text.end_of_run(from, kLetter | kMark);
    if (!is_sign && !is_newline(first.code_point)) {
      const size_t word = text.end_of_run(second, kLetter | kMark);
      if (word > second) return word;
    }
    const size_t signs = first.code_point == ' ' ? second : from;
    const size_t signs_end = text.end_of_run(signs, kSign);
    if (signs_end > signs) return end_of_newlines(text, signs_end);
    return end_of_space_or_lines(text, from);
  }
};

// Runs a scanner on a text. Scanner::match_end returns the end of the match that begins at `from`,
// or `from` without one.
template <class Scanner>
class ScannerPattern final : public SplitPattern {
 public:
  void split(std::string_view text, std::vector<std::string_view>& pieces) const override {
    const ClassReader reader(text, table_);
    size_t unmatched = 0;  // the begin of the text not yet matched
    for (size_t from = 0; from < text.size();) {
      const size_t end = Scanner::match_end(reader, from);
      if (end == from) {
        from += reader.at(from).size;
        continue;
      }
      if (unmatched < from) pieces.push_back(text.substr(unmatched, from - unmatched));
      pieces.push_back(text.substr(from, end - from));
      from = unmatched = end;
    }
    if (unmatched < text.size()) pieces.push_back(text.substr(unmatched));
  }

 private:
  const UnicodeClassTable& table_ = UnicodeClassTable::shared();
};

constexpr std::string_view kQwen2Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kLlama3Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kDeepSeekNumbersPattern = R"(\p{N}{1,3})";
constexpr std::string_view kDeepSeekCjkPattern = "[一-龥\u3040-ゟ゠-ヿ]+";
constexpr std::string_view kDeepSeekWordsPattern =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^)"
    "\r\n"
    R"(\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[)"
    "\r\n"
    R"(]*|\s*[)"
    "\r\n"
    R"(]+|\s+(?!\S)|\s+)";

}  // namespace

std::unique_ptr<SplitPattern> make_scanner(std::string_view pattern) {
  if (pattern == kGpt2Pattern) return std::make_unique<ScannerPattern<Gpt2Scanner>>();
  if (pattern == kQwen2Pattern) return std::make_unique<ScannerPattern<WordScanner<1>>>();
  if (pattern == kLlama3Pattern) return std::make_unique<ScannerPattern<WordScanner<3>>>();
  if (pattern == kDeepSeekNumbersPattern)
    return std::make_unique<ScannerPattern<DeepSeekNumbers>>();
  if (pattern == kDeepSeekCjkPattern) return std::make_unique<ScannerPattern<DeepSeekCjk>>();
  if (pattern == kDeepSeekWordsPattern) return std::make_unique<ScannerPattern<DeepSeekWords>>();
  return nullptr;
}

std::unique_ptr<SplitPattern> make_split_pattern(std::string_view pattern, std::string_view where) {
  if (auto scanner = make_scanner(pattern)) return scanner;
  return make_pcre_pattern(pattern, where);
}

}  // namespace paceline
