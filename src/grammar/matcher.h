// Constraint is a compiled constraint over a vocabulary, shared by the sequences that are under it;
// Matcher is how far the text of one of them has come.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/grammar.h"
#include "grammar/json_names.h"
#include "grammar/token_set.h"
#include "grammar/token_trie.h"
#include "grammar/walker.h"

namespace paceline {

// The tokens that a tokenizer writes for bytes within a text; none: it can't write them. On any
// thread.
using Tokenise = std::function<std::vector<uint32_t>(std::string_view)>;

// Thread-safe. What texts under it have in common is found once; that memory is bounded.
class Constraint {
 public:
  // Without `tokenise` no token is forced.
  Constraint(Grammar grammar, std::shared_ptr<const TokenTrie> trie,
             const WalkerLimits& limits = {}, Tokenise tokenise = {});

  const TokenTrie& trie() const { return *trie_; }
  // What isn't enforced, in sentences.
  const std::vector<std::string>& warnings() const { return grammar_.warnings; }
  // As of one of the last calls.
  size_t memory_bytes() const { return memory_bytes_.load(std::memory_order_relaxed); }

 private:
  friend class Matcher;
  struct Shared {
    explicit Shared(const Constraint& constraint)
        : walker(constraint.grammar_, constraint.trie_, constraint.limits_) {}
    std::mutex mutex;  // of the walker
    Walker walker;
    size_t num_calls = 0;
  };

  // The walker for the next call of a matcher that last used `used`: the same one, unless that has
  // grown far too large. Matchers that begin share the current one.
  std::shared_ptr<Shared> walker_after(const std::shared_ptr<Shared>& used);
  void measure(const Walker& walker);

  Grammar grammar_;
  JsonNames first_names_;  // before the text
  std::shared_ptr<const TokenTrie> trie_;
  WalkerLimits limits_;
  Tokenise tokenise_;
  std::mutex mutex_;
  std::shared_ptr<Shared> current_;
  std::atomic<size_t> memory_bytes_ = 0;
};

// A value: copies go on independently. What it says depends on the constraint and the tokens alone.
// An object of JSON has no name twice, except where the constraint leaves nothing else to write.
// Calls may throw Error exhausted when the text needs more than WalkerLimits; then nothing has
// changed.
class Matcher {
 public:
  explicit Matcher(std::shared_ptr<Constraint> constraint);

  // The tokens that may come next. None: the text can only end.
  std::shared_ptr<const TokenSet> mask();
  // Goes on behind the token. False, and nothing changes, when it may not come.
  bool accept(uint32_t token);
  // Takes the last tokens back, at most num_tokens().
  void rollback(size_t num_tokens);
  // Whether the text may end here.
  bool is_complete();
  // Whether the text may end here, and nothing may follow.
  bool only_ends();
  // The bytes that must follow, whatever is drawn; at most `max_bytes`.
  std::string forced_bytes(size_t max_bytes);
  // The tokens that write them, but for final ones that a longer token could extend.
  std::vector<uint32_t> forced_tokens(size_t max_bytes);

  size_t num_tokens() const { return tokens_.size(); }
  const Constraint& constraint() const { return *constraint_; }

 private:
  template <class Call>
  auto with_walker(Call call);
  std::shared_ptr<const TokenSet> mask_in(Walker& walker) const;
  void keep_names(JsonNames names);
  // Reads the whole text again.
  void find_names();

  std::shared_ptr<Constraint> constraint_;
  std::shared_ptr<Constraint::Shared> shared_;
  std::vector<uint32_t> tokens_;
  std::vector<PlaceId> places_{Walker::kStart};  // before the first token, and behind each
  std::vector<JsonNames> names_;                 // behind the last tokens
};

}  // namespace paceline
