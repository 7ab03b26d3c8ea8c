// Any bytes are either a grammar, under which a text can be written byte by byte, or an Error.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/utf8.h"
#include "fuzz/constrained_text.h"
#include "grammar/text_grammar.h"
#include "paceline/error.h"

using namespace paceline;
using namespace paceline::fuzz;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kMaxWritten = 24;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    write_bytes(compile_grammar_text(text, kSmallGrammarLimits), text, kMaxWritten);
  } catch (const Error& error) {
    require_refusal(error);
    require(is_valid_utf8(error.what()));
  }
  return 0;
}
