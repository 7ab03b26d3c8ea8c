#include "grammar/walker.h"

#include <fmt/format.h>

#include <algorithm>

#include "paceline/error.h"

namespace paceline {

Walker::Walker(const Grammar& grammar, std::shared_ptr<const TokenTrie> trie,
               const WalkerLimits& limits)
    : grammar_(grammar),
      trie_(std::move(trie)),
      limits_(limits),
      lexer_(grammar_, limits.max_lexer_states),
      parser_(grammar_, lexer_, limits.max_items),
      path_(TokenTrie::kMaxTokenBytes + 1),
      known_path_(TokenTrie::kMaxTokenBytes + 1) {
  const ItemSetId first = EarleyParser::kStart;
  const LexerStateId lexer = lexer_.start(parser_.expected(first));
  starts_.emplace(first, lexer);
  Place start{.threads = {}, .is_complete = parser_.is_accepting(first)};
  if (lexer != Lexer::kDead) start.threads.push_back({first, lexer});
  intern(std::move(start));
  places_.emplace_back();  // kDead
  begins_json_.push_back(false);
  index_.try_emplace(Place{}, kDead);
}

PlaceId Walker::intern(Place place) {
  const auto [entry, is_new] = index_.try_emplace(place, static_cast<PlaceId>(places_.size()));
  if (!is_new) return entry->second;
  begins_json_.push_back(
      std::any_of(place.threads.begin(), place.threads.end(), [this](const Thread& thread) {
        return starts_.at(thread.set) == thread.lexer && parser_.begins_json(thread.set);
      }));
  places_.push_back(std::move(place));
  return entry->second;
}

// Before the next terminal. Its lexer state is dead when the text can only end.
Walker::Thread Walker::after_terminal(ItemSetId set, TerminalSetId matched) {
  const ItemSetId next = parser_.advance(set, matched);
  auto start = starts_.find(next);
  if (start == starts_.end()) {
    start = starts_.emplace(next, lexer_.start(parser_.expected(next))).first;
  }
  return {next, start->second};
}

PlaceId Walker::step(PlaceId place, uint8_t byte) {
  Place next;
  for (const Thread& thread : places_[static_cast<size_t>(place)].threads) {
    const LexerStateId lexer = lexer_.step(thread.lexer, byte);
    if (lexer == Lexer::kDead) continue;
    if (lexer_.can_go_on(lexer)) next.threads.push_back({thread.set, lexer});
    const TerminalSetId matched = lexer_.matched(lexer);
    if (matched == TerminalSetId{}) continue;
    const Thread behind = after_terminal(thread.set, matched);
    next.is_complete |= parser_.is_accepting(behind.set);
    if (behind.lexer != Lexer::kDead) next.threads.push_back(behind);
  }
  std::sort(next.threads.begin(), next.threads.end());
  next.threads.erase(std::unique(next.threads.begin(), next.threads.end()), next.threads.end());
  return intern(std::move(next));
}

PlaceId Walker::step(PlaceId place, std::string_view bytes) {
  grammar_.regexes.begin_searches();
  for (const char byte : bytes) {
    place = step(place, static_cast<uint8_t>(byte));
    if (place == kDead) break;
  }
  return place;
}

Walker::Read Walker::read(PlaceId place, std::string_view bytes, JsonNames& names) {
  grammar_.regexes.begin_searches();
  bool names_differ = true;
  for (const char byte : bytes) {
    place = step(place, static_cast<uint8_t>(byte));
    if (place == kDead) break;
    names_differ &= names.step(static_cast<uint8_t>(byte));
    if (names.is_outside() && begins_json(place)) names.begin();
  }
  return {place, names_differ};
}

void Walker::count_step() {
  if (++mask_steps_ > limits_.max_mask_steps) {
    throw Error(ErrorCode::exhausted,
                fmt::format("the constraint is too complex: more than {} steps to find the tokens "
                            "that may come next",
                            limits_.max_mask_steps));
  }
}

// Walks nodes of a part from the lexer state in path_. The terminals' ends are noted, not followed.
void Walker::walk(const TokenTrie::Part& part, size_t begin, size_t end, Inside& found) {
  const std::vector<TrieNode>& nodes = part.nodes;
  for (size_t i = begin; i < end;) {
    count_step();
    const TrieNode node = nodes[i];
    const LexerStateId next = lexer_.step(path_[node.depth - 1], static_cast<uint8_t>(node.byte));
    if (next == Lexer::kDead) {
      i += node.num_nodes;
      continue;
    }
    path_[node.depth] = next;
    if (node.token != TokenTrie::kNoToken) {
      found.tokens.push_back(static_cast<uint32_t>(node.token));
    }
    if (const TerminalSetId matched = lexer_.matched(next);
        matched != TerminalSetId{} && node.num_nodes > 1) {
      found.exits.push_back({matched, static_cast<uint32_t>(i)});
    }
    ++i;
  }
}

void Walker::pack(Inside& found) const {
  constexpr size_t kFewTokens = 256;
  if (found.tokens.size() <= kFewTokens) return;
  found.mask.emplace(trie_->num_tokens());
  for (const uint32_t token : found.tokens) found.mask->allow(token);
  found.tokens = {};
}

// The state that most tokens' first bytes lead to from `state`, if these bytes lead it to itself: a
// string's body is such a state, whatever names it may not spell.
std::optional<LexerStateId> Walker::common_successor(const TokenTrie::Part& part,
                                                     LexerStateId state) {
  std::map<LexerStateId, size_t> num_nodes;
  for (size_t i = 0; i < part.nodes.size(); i += part.nodes[i].num_nodes) {
    const auto byte = static_cast<uint8_t>(part.nodes[i].byte);
    const LexerStateId next = lexer_.step(state, byte);
    if (next == Lexer::kDead || next == state || lexer_.step(next, byte) != next) continue;
    num_nodes[next] += part.nodes[i].num_nodes;
  }
  const auto most = std::max_element(
      num_nodes.begin(), num_nodes.end(),
      [](const auto& one, const auto& other) { return one.second < other.second; });
  if (most == num_nodes.end() || most->second * 4 < part.nodes.size()) return std::nullopt;
  return most->first;
}

// Begins with what `known` allows and corrects it where a walk from `state` differs from one from
// `known`. Where both walks are in `known`, they are the same from there on.
Walker::Inside Walker::walk_beside(size_t part, LexerStateId state, LexerStateId known) {
  const Inside& all = insides_[static_cast<size_t>(inside(part, known, WalkKind::whole))];
  const std::vector<TrieNode>& nodes = trie_->parts()[part].nodes;
  Inside found;
  found.mask = all.mask ? *all.mask : TokenSet(trie_->num_tokens());
  for (const uint32_t token : all.tokens) found.mask->allow(token);
  const auto forbid = [&](const TrieNode& node) {
    if (node.token != TokenTrie::kNoToken) found.mask->forbid(static_cast<uint32_t>(node.token));
  };
  std::vector<std::pair<size_t, size_t>> same;  // subtrees: first node, end
  path_[0] = state;
  known_path_[0] = known;
  for (size_t i = 0; i < nodes.size();) {
    count_step();
    const TrieNode node = nodes[i];
    const auto byte = static_cast<uint8_t>(node.byte);
    const LexerStateId next = lexer_.step(path_[node.depth - 1], byte);
    const LexerStateId beside = lexer_.step(known_path_[node.depth - 1], byte);
    const size_t end = i + node.num_nodes;
    if (next == known && beside == known) {
      same.emplace_back(i, end);
      i = end;
      continue;
    }
    if (next == Lexer::kDead) {
      if (beside != Lexer::kDead) std::for_each(nodes.begin() + i, nodes.begin() + end, forbid);
      i = end;
      continue;
    }
    path_[node.depth] = next;
    known_path_[node.depth] = beside;
    if (node.token != TokenTrie::kNoToken) found.mask->allow(static_cast<uint32_t>(node.token));
    const TerminalSetId matched = lexer_.matched(next);
    if (matched != TerminalSetId{} && node.num_nodes > 1) {
      found.exits.push_back({matched, static_cast<uint32_t>(i)});
    }
    ++i;
  }
  for (const Exit& exit : all.exits) {
    const auto behind = std::upper_bound(
        same.begin(), same.end(), exit.node,
        [](uint32_t node, const std::pair<size_t, size_t>& range) { return node < range.first; });
    if (behind != same.begin() && exit.node < std::prev(behind)->second)
      found.exits.push_back(exit);
  }
  return found;
}

Walker::Inside Walker::walk_part(size_t part, LexerStateId state, WalkKind kind) {
  if (kind == WalkKind::beside) {
    const auto known = common_successor(trie_->parts()[part], state);
    if (known) return walk_beside(part, state, *known);
  }
  Inside found;
  path_[0] = state;
  walk(trie_->parts()[part], 0, trie_->parts()[part].nodes.size(), found);
  return found;
}

// As walk_part, of a state in which only one terminal may have begun: other constraints have such
// states, too.
Walker::Inside Walker::inside_terminal(size_t part, LexerStateId state, TerminalId terminal,
                                       RegexId regex, WalkKind kind) {
  constexpr size_t kFewSteps = 2'000;  // are taken sooner than looked up
  InsideCache& cache = trie_->inside_cache();
  const Hash128 fingerprint = grammar_.regexes.fingerprint(regex, cache.key());
  const TerminalSetId matched = lexer_.set_of(terminal);
  if (const auto known = cache.find(fingerprint, part)) {
    Inside found{.tokens = known->tokens, .mask = known->mask, .exits = {}};
    for (const uint32_t node : known->exits) found.exits.push_back({matched, node});
    return found;
  }
  const size_t steps_before = mask_steps_;
  Inside found = walk_part(part, state, kind);
  if (mask_steps_ - steps_before > kFewSteps) {
    pack(found);
    TerminalInside kept{.tokens = found.tokens, .mask = found.mask, .exits = {}};
    for (const Exit& exit : found.exits) kept.exits.push_back(exit.node);
    cache.keep(fingerprint, part, std::move(kept));
  }
  return found;
}

Walker::InsideId Walker::keep(Inside found) {
  pack(found);
  std::stable_sort(found.exits.begin(), found.exits.end(),
                   [](const Exit& a, const Exit& b) { return a.matched < b.matched; });
  insides_bytes_ += sizeof(Inside) + found.tokens.capacity() * sizeof(uint32_t) +
                    found.exits.capacity() * sizeof(Exit) +
                    (found.mask ? found.mask->memory_bytes() : 0);
  insides_.push_back(std::move(found));
  return static_cast<InsideId>(insides_.size() - 1);
}

Walker::InsideId Walker::inside(size_t part, LexerStateId state, WalkKind kind) {
  const uint64_t key = static_cast<uint64_t>(state) << 8 | part;
  if (const auto found = inside_of_state_.find(key); found != inside_of_state_.end()) {
    return found->second;
  }
  const auto only = lexer_.only_terminal(state);
  Inside found = only ? inside_terminal(part, state, only->first, only->second, kind)
                      : walk_part(part, state, kind);
  return inside_of_state_.emplace(key, keep(std::move(found))).first->second;
}

// What follows these exits when the next terminals begin in the lexer state `start`.
Walker::InsideId Walker::behind(const Pending& at, size_t first_exit, size_t end_exit,
                                LexerStateId start) {
  const Branch branch{at.inside, static_cast<uint32_t>(first_exit), start};
  if (const auto found = behind_.find(branch); found != behind_.end()) return found->second;
  const TokenTrie::Part& part = trie_->parts()[at.part];
  Inside found;
  for (size_t i = first_exit; i < end_exit; ++i) {
    const uint32_t node = insides_[static_cast<size_t>(at.inside)].exits[i].node;
    path_[part.nodes[node].depth] = start;
    walk(part, node + 1, node + part.nodes[node].num_nodes, found);
  }
  return behind_.emplace(branch, keep(std::move(found))).first->second;
}

void Walker::add_thread(const Thread& thread, TokenSet& mask) {
  for (size_t p = 0; p < trie_->parts().size(); ++p) {
    const uint32_t reach = trie_->parts()[p].max_bytes;
    pending_.push_back(
        {inside(p, lexer_.cut_counts(thread.lexer, reach), WalkKind::beside), p, thread.set});
  }
  while (!pending_.empty()) {
    const Pending at = pending_.back();
    pending_.pop_back();
    const Inside& found = insides_[static_cast<size_t>(at.inside)];
    for (const uint32_t token : found.tokens) mask.allow(token);
    if (found.mask) mask.allow_all_of(*found.mask);
    for (size_t i = 0, end = 0; i < found.exits.size(); i = end) {
      while (end < found.exits.size() && found.exits[end].matched == found.exits[i].matched) ++end;
      const Thread next = after_terminal(at.set, found.exits[i].matched);
      if (next.lexer == Lexer::kDead) continue;
      pending_.push_back({behind(at, i, end, next.lexer), at.part, next.set});
    }
  }
}

std::shared_ptr<const TokenSet> Walker::mask(PlaceId place) {
  if (const auto found = masks_.find(place); found != masks_.end()) return found->second;
  mask_steps_ = 0;
  grammar_.regexes.begin_searches();
  pending_.clear();
  if (insides_bytes_ > limits_.kept_masks_bytes) {
    insides_.clear();
    inside_of_state_.clear();
    behind_.clear();
    insides_bytes_ = 0;
  }
  const auto mask = std::make_shared<TokenSet>(trie_->num_tokens());
  const std::vector<Thread> threads = places_[static_cast<size_t>(place)].threads;
  for (const Thread& thread : threads) add_thread(thread, *mask);
  for (const auto& [token, twin] : trie_->doubles()) {
    if (mask->allows(token)) mask->allow(twin);
  }
  if (masks_.size() * mask->memory_bytes() > limits_.kept_masks_bytes) masks_.clear();
  masks_.emplace(place, mask);
  return mask;
}

bool Walker::only_ends(PlaceId place) {
  if (!is_complete(place)) return false;
  ByteSet possible;
  for (const Thread& thread : places_[static_cast<size_t>(place)].threads) {
    possible |= lexer_.next_bytes(thread.lexer);
  }
  for (size_t byte = 0; byte < possible.size(); ++byte) {
    if (possible[byte] && step(place, static_cast<uint8_t>(byte)) != kDead) return false;
  }
  return true;
}

std::optional<uint8_t> Walker::forced_byte(PlaceId place) {
  const Place& here = places_[static_cast<size_t>(place)];
  if (here.is_complete) return std::nullopt;
  ByteSet possible;
  for (const Thread& thread : here.threads) possible |= lexer_.next_bytes(thread.lexer);
  std::optional<uint8_t> only;
  constexpr size_t kMaxTried = 8;  // more are hardly ever dead but for one
  if (possible.count() > kMaxTried) return std::nullopt;
  for (size_t byte = 0; byte < possible.size(); ++byte) {
    if (!possible[byte] || step(place, static_cast<uint8_t>(byte)) == kDead) continue;
    if (only) return std::nullopt;
    only = static_cast<uint8_t>(byte);
  }
  return only;
}

size_t Walker::memory_bytes() const {
  constexpr size_t kPlaceBytes = 200;
  return grammar_.regexes.memory_bytes() + lexer_.memory_bytes() + parser_.memory_bytes() +
         places_.size() * kPlaceBytes + insides_bytes_ +
         masks_.size() * (trie_->num_tokens() / 8 + 64);
}

}  // namespace paceline
