#include "text/label_tokens.h"

#include <fmt/format.h>

#include <algorithm>

namespace paceline {
namespace {

bool is_letter_or_digit(char c) {
  const bool is_ascii_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  return is_ascii_letter || (c >= '0' && c <= '9') || static_cast<unsigned char>(c) >= 0x80;
}

// The prompt's last word with the space before it, the context that affects the encoding of a
// label; nothing for a long word.
std::string_view last_word(std::string_view prompt) {
  constexpr size_t kMaxBytes = 64;
  constexpr std::string_view kBlanks = " \t\r\n";
  const size_t end = prompt.find_last_not_of(kBlanks);
  const size_t blank = end == std::string_view::npos ? end : prompt.find_last_of(kBlanks, end);
  const std::string_view word = blank == std::string_view::npos ? prompt : prompt.substr(blank);
  return word.size() <= kMaxBytes ? word : std::string_view();
}

}  // namespace

bool runs_into_prompt(std::string_view prompt, std::string_view label) {
  constexpr std::string_view kBeforeWords = ".,;:!?)]}=";
  if (prompt.empty() || label.empty() || !is_letter_or_digit(label.front())) return false;
  return is_letter_or_digit(prompt.back()) ||
         kBeforeWords.find(prompt.back()) != std::string_view::npos;
}

std::vector<TokenId> tokens_after(const Tokenizer& tokenizer, std::string_view context,
                                  std::string_view text, size_t num_plain) {
  const std::vector<TokenId> before = tokenizer.encode(context);
  const TextSpan plain{.begin = context.size(), .end = context.size() + num_plain};
  std::vector<TokenId> whole =
      tokenizer.encode(fmt::format("{}{}", context, text), {.plain = std::span(&plain, 1)});
  const bool continues =
      whole.size() > before.size() && std::equal(before.begin(), before.end(), whole.begin());
  if (!continues) {
    const TextSpan alone{.begin = 0, .end = num_plain};
    return tokenizer.encode(text, {.plain = std::span(&alone, 1)});
  }
  whole.erase(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(before.size()));
  return whole;
}

std::vector<TokenId> label_tokens(const Tokenizer& tokenizer, std::string_view prompt,
                                  std::string_view label) {
  const std::string word(last_word(prompt));
  std::vector<TokenId> as_written = tokens_after(tokenizer, word, label);
  if (!runs_into_prompt(prompt, label)) return as_written;
  std::vector<TokenId> as_next_word = tokens_after(tokenizer, word, fmt::format(" {}", label));
  return as_next_word.size() <= as_written.size() ? as_next_word : as_written;
}

}  // namespace paceline
