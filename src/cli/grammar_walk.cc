#include "cli/grammar_walk.h"

#include <chrono>
#include <utility>

#include "paceline/error.h"

namespace paceline {
namespace {

class WalkClock {
 public:
  double microseconds() const {
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin_)
        .count();
  }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

Grammar compile_accepting(const ConstraintSpec& spec) {
  return compile_constraint(spec, {}, JsonTexts::accepted);
}

}  // namespace

std::shared_ptr<const TokenTrie> GrammarWalk::trie_of(const TextTokens& tokens) {
  return std::make_shared<const TokenTrie>(tokens.bytes());
}

GrammarWalk::GrammarWalk(const ConstraintSpec& spec, const TextTokens& tokens,
                         std::shared_ptr<const TokenTrie> trie)
    : spec_(spec), tokens_(tokens) {
  const WalkClock watch;
  constraint_ = std::make_shared<Constraint>(compile_accepting(spec), std::move(trie));
  times_.compile_us = watch.microseconds();
  Matcher(constraint_).mask();
  times_.first_mask_us = watch.microseconds();
}

bool GrammarWalk::accepts(std::string_view text) {
  Matcher matcher(constraint_);
  for (const TokenId id : tokens_.tokens_of(text)) {
    const auto token = static_cast<uint32_t>(id);
    const WalkClock watch;
    const bool is_allowed = matcher.mask()->allows(token) && matcher.accept(token);
    times_.token_us.push_back(watch.microseconds());
    if (!is_allowed) return false;
  }
  const WalkClock watch;
  matcher.mask();
  times_.token_us.push_back(watch.microseconds());
  return matcher.is_complete();
}

size_t GrammarWalk::accepted_bytes(std::string_view text) const {
  std::vector<std::string> bytes;
  for (int byte = 0; byte < 256; ++byte) bytes.emplace_back(1, static_cast<char>(byte));
  Matcher matcher(std::make_shared<Constraint>(compile_accepting(spec_),
                                               std::make_shared<const TokenTrie>(bytes)));
  size_t count = 0;
  while (count < text.size() && matcher.accept(static_cast<uint8_t>(text[count]))) ++count;
  return count;
}

}  // namespace paceline
