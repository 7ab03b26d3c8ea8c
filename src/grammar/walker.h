// Walker follows a grammar byte by byte and finds the tokens that may come next.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "grammar/earley_parser.h"
#include "grammar/grammar.h"
#include "grammar/json_names.h"
#include "grammar/lexer.h"
#include "grammar/token_set.h"
#include "grammar/token_trie.h"

namespace paceline {

// A place in a text, for one Walker: equal places have equal continuations.
enum class PlaceId : uint32_t {};

// Beyond one of these the call throws Error exhausted, which names the limit; the walker stays
// whole.
struct WalkerLimits {
  size_t max_lexer_states = 250'000;
  size_t max_items = 50'000;              // of an item set
  size_t max_mask_steps = 20'000'000;     // nodes of the trie that one mask visits
  size_t kept_masks_bytes = 24ULL << 20;  // of each kind of masks that is remembered
};

// What it finds it remembers, so it grows with the texts that it follows. Not thread-safe.
class Walker {
 public:
  // `grammar` is copied: its expressions grow.
  Walker(const Grammar& grammar, std::shared_ptr<const TokenTrie> trie,
         const WalkerLimits& limits = {});
  Walker(const Walker&) = delete;
  Walker& operator=(const Walker&) = delete;

  // Before the text.
  static constexpr PlaceId kStart{0};
  // Where no text leads.
  static constexpr PlaceId kDead{1};

  PlaceId step(PlaceId place, uint8_t byte);
  // kDead when the bytes can't come here.
  PlaceId step(PlaceId place, std::string_view bytes);
  // Whether the text may end here.
  bool is_complete(PlaceId place) const { return places_[static_cast<size_t>(place)].is_complete; }
  // The same, and `names` reads along.
  struct Read {
    PlaceId place{};
    bool names_differ = true;  // no byte ended a name that its object has
  };
  Read read(PlaceId place, std::string_view bytes, JsonNames& names);
  // Whether a JSON value may begin here.
  bool begins_json(PlaceId place) const { return begins_json_[static_cast<size_t>(place)]; }
  // Whether it may end here, and nothing may follow.
  bool only_ends(PlaceId place);
  // The tokens that lead to a place that isn't dead.
  std::shared_ptr<const TokenSet> mask(PlaceId place);
  // The byte that must follow: the text can't end here, and no other byte may come.
  std::optional<uint8_t> forced_byte(PlaceId place);

  const TokenTrie& trie() const { return *trie_; }
  size_t memory_bytes() const;

 private:
  // One way to read the text: the item set when the last terminal ended, and the terminals since.
  struct Thread {
    ItemSetId set{};
    LexerStateId lexer{};
    auto operator<=>(const Thread&) const = default;
  };
  struct Place {
    std::vector<Thread> threads;  // sorted
    bool is_complete = false;
    auto operator<=>(const Place&) const = default;
  };
  // A node of a part's trie below which terminals that begin there continue the token.
  struct Exit {
    TerminalSetId matched{};
    uint32_t node = 0;
  };
  // The tokens that stay within the terminals of a lexer state, whatever the parser expects behind
  // them, and where these terminals end within a token.
  struct Inside {
    std::vector<uint32_t> tokens;  // when they are few, else in `mask`
    std::optional<TokenSet> mask;
    std::vector<Exit> exits;  // by terminal set
  };
  // Tokens and exits, found once: from a lexer state over a whole part, or behind the exits of one
  // with the same terminals, from the lexer state where the next terminals begin.
  enum class InsideId : uint32_t {};
  struct Branch {
    InsideId from{};
    uint32_t first_exit = 0;
    LexerStateId start{};
    auto operator<=>(const Branch&) const = default;
  };
  struct Pending {
    InsideId inside{};
    size_t part = 0;
    ItemSetId set{};
  };

  PlaceId intern(Place place);
  Thread after_terminal(ItemSetId set, TerminalSetId matched);
  // A walk beside a known state first needs that one, from a whole walk: two states may lead to
  // each other.
  enum class WalkKind : uint8_t { whole, beside };
  InsideId inside(size_t part, LexerStateId state, WalkKind kind);
  InsideId behind(const Pending& at, size_t first_exit, size_t end_exit, LexerStateId start);
  InsideId keep(Inside found);
  void pack(Inside& found) const;
  std::optional<LexerStateId> common_successor(const TokenTrie::Part& part, LexerStateId state);
  Inside walk_part(size_t part, LexerStateId state, WalkKind kind);
  Inside walk_beside(size_t part, LexerStateId state, LexerStateId known);
  Inside inside_terminal(size_t part, LexerStateId state, TerminalId terminal, RegexId regex,
                         WalkKind kind);
  void walk(const TokenTrie::Part& part, size_t begin, size_t end, Inside& found);
  void add_thread(const Thread& thread, TokenSet& mask);
  void count_step();

  Grammar grammar_;
  std::shared_ptr<const TokenTrie> trie_;
  WalkerLimits limits_;
  Lexer lexer_;
  EarleyParser parser_;
  std::vector<Place> places_;
  std::vector<bool> begins_json_;  // by place
  std::map<Place, PlaceId> index_;
  std::unordered_map<ItemSetId, LexerStateId> starts_;
  std::deque<Inside> insides_;
  std::unordered_map<uint64_t, InsideId> inside_of_state_;  // by part and lexer state
  std::map<Branch, InsideId> behind_;
  size_t insides_bytes_ = 0;
  std::unordered_map<PlaceId, std::shared_ptr<const TokenSet>> masks_;
  std::vector<Pending> pending_;
  std::vector<LexerStateId> path_;  // by depth, while a tree is walked
  std::vector<LexerStateId> known_path_;
  size_t mask_steps_ = 0;
};

}  // namespace paceline
