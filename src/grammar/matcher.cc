#include "grammar/matcher.h"

#include "base/error.h"

namespace paceline {

namespace {

// A walker of more bytes is given up for a new one.
constexpr size_t kMaxWalkerBytes = 64ULL << 20;
constexpr size_t kCallsBetweenChecks = 256;

}  // namespace

Constraint::Constraint(Grammar grammar, std::shared_ptr<const TokenTrie> trie,
                       const WalkerLimits& limits)
    : grammar_(std::move(grammar)),
      trie_(std::move(trie)),
      limits_(limits),
      current_(std::make_shared<Shared>(*this)) {}

std::shared_ptr<Constraint::Shared> Constraint::walker_after(const std::shared_ptr<Shared>& used) {
  const std::lock_guard lock(mutex_);
  ++current_->num_calls;
  if (used != current_ || current_->num_calls % kCallsBetweenChecks != 0) return current_;
  const std::shared_ptr<Shared> checked = current_;  // outlives its lock
  const std::lock_guard walker_lock(checked->mutex);
  if (checked->walker.memory_bytes() > kMaxWalkerBytes) current_ = std::make_shared<Shared>(*this);
  return current_;
}

size_t Constraint::memory_bytes() const {
  const std::lock_guard lock(mutex_);
  const std::lock_guard walker_lock(current_->mutex);
  return sizeof(*this) + grammar_.regexes.memory_bytes() + current_->walker.memory_bytes();
}

Matcher::Matcher(std::shared_ptr<Constraint> constraint) : constraint_(std::move(constraint)) {}

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
  return with_walker([&](Walker& walker) { return walker.mask(places_.back()); });
}

bool Matcher::accept(uint32_t token) {
  const std::string_view bytes = constraint_->trie().bytes(token);
  if (bytes.empty() || bytes.size() > TokenTrie::kMaxTokenBytes) return false;
  return with_walker([&](Walker& walker) {
    const PlaceId next = walker.step(places_.back(), bytes);
    if (next == Walker::kDead) return false;
    tokens_.push_back(token);
    places_.push_back(next);
    return true;
  });
}

void Matcher::rollback(size_t num_tokens) {
  PL_CHECK(num_tokens <= tokens_.size(), "more tokens taken back than accepted");
  tokens_.resize(tokens_.size() - num_tokens);
  places_.resize(places_.size() - num_tokens);
}

bool Matcher::is_complete() {
  return with_walker([&](Walker& walker) { return walker.is_complete(places_.back()); });
}

std::string Matcher::forced_bytes(size_t max_bytes) {
  return with_walker([&](Walker& walker) {
    std::string bytes;
    PlaceId place = places_.back();
    while (bytes.size() < max_bytes) {
      const std::optional<uint8_t> byte = walker.forced_byte(place);
      if (!byte) break;
      bytes += static_cast<char>(*byte);
      place = walker.step(place, *byte);
    }
    return bytes;
  });
}

}  // namespace paceline
