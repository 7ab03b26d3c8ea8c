#include "grammar/matcher.h"

#include <bit>

#include "base/error.h"
#include "base/utf8.h"

namespace paceline {

namespace {

// Texts begin in a walker of at most this size, and leave one for another when it is larger than
// that: what has been walked is walked again then, which takes longer than a mask may.
constexpr size_t kMaxFirstWalkerBytes = 64ULL << 20;
constexpr size_t kMaxWalkerBytes = 256ULL << 20;
constexpr size_t kCallsBetweenChecks = 256;
// Tokens that can be taken back without reading the text again.
constexpr size_t kKeptNames = 32;

}  // namespace

Constraint::Constraint(Grammar grammar, std::shared_ptr<const TokenTrie> trie,
                       const WalkerLimits& limits, Tokenise tokenise)
    : grammar_(std::move(grammar)),
      trie_(std::move(trie)),
      limits_(limits),
      tokenise_(std::move(tokenise)),
      current_(std::make_shared<Shared>(*this)) {
  if (current_->walker.begins_json(Walker::kStart)) first_names_.begin();
  measure(current_->walker);
}

void Constraint::measure(const Walker& walker) {
  memory_bytes_ = sizeof(*this) + grammar_.regexes.memory_bytes() + walker.memory_bytes();
}

std::shared_ptr<Constraint::Shared> Constraint::walker_after(const std::shared_ptr<Shared>& used) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<Shared> found = used ? used : current_;
  const size_t num_calls = ++found->num_calls;
  const bool is_checked = num_calls % kCallsBetweenChecks == 0 || std::has_single_bit(num_calls);
  if (!is_checked) return found;
  const std::lock_guard walker_lock(found->mutex);
  measure(found->walker);
  const size_t bytes = found->walker.memory_bytes();
  if (found == current_ && bytes > kMaxFirstWalkerBytes) {
    current_ = std::make_shared<Shared>(*this);
  }
  return bytes > kMaxWalkerBytes ? current_ : found;
}

Matcher::Matcher(std::shared_ptr<Constraint> constraint)
    : constraint_(std::move(constraint)), names_{constraint_->first_names_} {}

// Calls with the walker and its lock. In another walker than before the places are found anew.
template <class Call>
auto Matcher::with_walker(Call call) {
  std::shared_ptr<Constraint::Shared> shared = constraint_->walker_after(shared_);
  const std::lock_guard lock(shared->mutex);
  if (shared != shared_) {
    std::vector<PlaceId> places{Walker::kStart};
    for (const uint32_t token : tokens_) {
      places.push_back(shared->walker.step(places.back(), constraint_->trie().bytes(token)));
    }
    places_ = std::move(places);
    shared_ = shared;
  }
  return call(shared->walker);
}

std::shared_ptr<const TokenSet> Matcher::mask() {
  return with_walker([&](Walker& walker) { return mask_in(walker); });
}

std::shared_ptr<const TokenSet> Matcher::mask_in(Walker& walker) const {
  const std::shared_ptr<const TokenSet> all = walker.mask(places_.back());
  std::shared_ptr<const TokenSet> mask = all;
  const bool is_less = names_.back().forbid_repeated(constraint_->trie(), mask);
  const bool is_stuck = is_less && mask->num_allowed() == 0 && !walker.is_complete(places_.back());
  return is_stuck ? all : mask;
}

bool Matcher::accept(uint32_t token) {
  const std::string_view bytes = constraint_->trie().bytes(token);
  if (bytes.empty() || bytes.size() > TokenTrie::kMaxTokenBytes) return false;
  return with_walker([&](Walker& walker) {
    JsonNames names = names_.back();
    const auto [next, names_differ] = walker.read(places_.back(), bytes, names);
    if (next == Walker::kDead) return false;
    if (!names_differ && !mask_in(walker)->allows(token)) return false;
    tokens_.push_back(token);
    places_.push_back(next);
    keep_names(std::move(names));
    return true;
  });
}

void Matcher::rollback(size_t num_tokens) {
  PL_CHECK(num_tokens <= tokens_.size(), "more tokens taken back than accepted");
  tokens_.resize(tokens_.size() - num_tokens);
  places_.resize(places_.size() - num_tokens);
  if (num_tokens < names_.size()) {
    names_.resize(names_.size() - num_tokens);
  } else {
    find_names();
  }
}

void Matcher::keep_names(JsonNames names) {
  if (names_.size() == 2 * kKeptNames) names_.erase(names_.begin(), names_.begin() + kKeptNames);
  names_.push_back(std::move(names));
}

void Matcher::find_names() {
  JsonNames names = constraint_->first_names_;
  with_walker([&](Walker& walker) {
    PlaceId place = Walker::kStart;
    for (const uint32_t token : tokens_) {
      place = walker.read(place, constraint_->trie().bytes(token), names).place;
    }
  });
  names_ = {std::move(names)};
}

bool Matcher::is_complete() {
  return with_walker([&](Walker& walker) { return walker.is_complete(places_.back()); });
}

bool Matcher::only_ends() {
  return with_walker([&](Walker& walker) { return walker.only_ends(places_.back()); });
}

std::string Matcher::forced_bytes(size_t max_bytes) {
  return with_walker([&](Walker& walker) {
    std::string bytes;
    JsonNames names = names_.back();
    PlaceId place = places_.back();
    while (bytes.size() < max_bytes) {
      const std::optional<uint8_t> byte = walker.forced_byte(place);
      if (!byte) break;
      const char text = static_cast<char>(*byte);
      const Walker::Read next = walker.read(place, {&text, 1}, names);
      if (!next.names_differ) break;
      bytes += text;
      place = next.place;
    }
    return bytes;
  });
}

// A text that the tokenizer would split otherwise, had it known what follows, is left to the draw.
std::vector<uint32_t> Matcher::forced_tokens(size_t max_bytes) {
  if (!constraint_->tokenise_) return {};
  std::string bytes = forced_bytes(max_bytes);
  bytes.resize(bytes.size() - incomplete_utf8_suffix(bytes));
  if (bytes.empty() || !is_valid_utf8(bytes)) return {};
  std::vector<uint32_t> tokens = constraint_->tokenise_(bytes);
  const TokenTrie& trie = constraint_->trie();
  size_t begin = bytes.size();
  size_t num_kept = tokens.size();
  for (size_t i = tokens.size(); i > 0; --i) {
    begin -= trie.bytes(tokens[i - 1]).size();
    if (trie.has_longer(std::string_view(bytes).substr(begin))) num_kept = i - 1;
  }
  if (num_kept == tokens.size()) return tokens;
  const bool is_whole = with_walker(
      [&](Walker& walker) { return walker.only_ends(walker.step(places_.back(), bytes)); });
  if (!is_whole) tokens.resize(num_kept);
  return tokens;
}

}  // namespace paceline
