// ConstraintCache compiles constraints for one vocabulary and keeps the most recently used ones.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "grammar/constraint.h"
#include "grammar/matcher.h"
#include "paceline/error.h"

namespace paceline {

struct ConstraintVocabulary {
  std::shared_ptr<const TokenTrie> trie;
  Tokenise tokenise;
};

struct ConstraintCounters {
  int64_t compiled = 0;
  int64_t hits = 0;     // found compiled, or being compiled
  int64_t widened = 0;  // requests for one that leaves a part of a schema out
  // Refused ones by reason.
  int64_t invalid = 0;      // malformed
  int64_t unsupported = 0;  // can't be enforced
  int64_t exhausted = 0;    // over a limit
  int64_t failed = 0;       // anything else
  size_t kept = 0;
  size_t kept_bytes = 0;
  double compile_seconds = 0;
};

// Thread-safe.
class ConstraintCache {
 public:
  struct Limits {
    size_t max_bytes = 256ULL << 20;  // of those kept, as they were when last looked at
    size_t max_entries = 256;
  };

  // `vocabulary` is called once, before the first constraint is compiled.
  explicit ConstraintCache(std::function<ConstraintVocabulary()> vocabulary);
  ConstraintCache(std::function<ConstraintVocabulary()> vocabulary, const Limits& limits);

  // Compiles it, unless that was done; waits while another thread does. Throws as
  // compile_constraint, also for the next request of the same constraint.
  std::shared_ptr<Constraint> get(const ConstraintSpec& spec);
  // The same for a caller that gets it later, which then isn't counted.
  void check(const ConstraintSpec& spec);
  // The same for a grammar that `compile` makes; equal keys have equal grammars.
  std::shared_ptr<Constraint> get(std::string key, const std::function<Grammar()>& compile);
  // Of get(spec).
  static std::string key_of(const ConstraintSpec& spec);

  ConstraintCounters counters() const;

 private:
  struct Entry {
    std::string key;
    std::shared_future<std::shared_ptr<Constraint>> constraint;
    int64_t num_checked = 0;  // by callers that will get it
  };
  using Entries = std::list<Entry>;  // the last used first

  std::shared_ptr<Constraint> find(std::string key, const std::function<Grammar()>& make,
                                   bool is_check);
  std::shared_ptr<Constraint> compile(const std::function<Grammar()>& make);
  std::shared_ptr<Constraint> counted(std::shared_ptr<Constraint> constraint, bool is_check);
  void count(ErrorCode code);
  void drop_oldest();
  static size_t bytes_of(const Entry& entry);

  const std::function<ConstraintVocabulary()> make_vocabulary_;
  const Limits limits_;
  std::once_flag vocabulary_made_;
  ConstraintVocabulary vocabulary_;
  mutable std::mutex mutex_;
  Entries entries_;
  std::unordered_map<std::string_view, Entries::iterator> by_key_;  // of the entries' keys
  ConstraintCounters counters_;
};

}  // namespace paceline
