// Any bytes are either a grammar, under which a text can be written byte by byte, or an Error.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/utf8.h"
#include "grammar/matcher.h"
#include "grammar/text_grammar.h"
#include "paceline/error.h"

namespace {

using namespace paceline;

void require(bool condition) {
  if (!condition) std::abort();
}

std::shared_ptr<const TokenTrie> bytes_trie() {
  std::vector<std::string> bytes;
  for (int byte = 0; byte < 256; ++byte) bytes.emplace_back(1, static_cast<char>(byte));
  return std::make_shared<const TokenTrie>(bytes);
}

// Follows allowed bytes, which `choices` choose.
void write_under(Grammar grammar, std::string_view choices) {
  static const std::shared_ptr<const TokenTrie> trie = bytes_trie();
  Matcher matcher(std::make_shared<Constraint>(std::move(grammar), trie));
  for (size_t i = 0; i < choices.size() && i < 24; ++i) {
    const auto mask = matcher.mask();
    const size_t count = mask->num_allowed();
    require(count > 0 || matcher.is_complete());
    if (count == 0) return;
    size_t left = static_cast<uint8_t>(choices[i]) % count;
    uint32_t token = 0;
    while (!mask->allows(token) || left-- > 0) ++token;
    require(matcher.accept(token));
    require(!mask->allows(255) && !mask->allows(254));  // no byte of UTF-8
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  // Small limits find their ends soon.
  const GrammarLimits limits{
      .regexes = {.max_nodes = 20'000, .max_alternatives = 500, .max_search = 500},
      .max_states = 5'000,
      .max_terminals = 5'000};
  try {
    write_under(compile_grammar_text(text, limits), text);
  } catch (const Error& error) {
    require(error.code() == ErrorCode::invalid || error.code() == ErrorCode::unsupported ||
            error.code() == ErrorCode::exhausted);
    require(is_valid_utf8(error.what()));
  }
  return 0;
}
