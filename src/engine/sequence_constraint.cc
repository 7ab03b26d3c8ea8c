#include "engine/sequence_constraint.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace paceline {
namespace {

// Longer forced texts are forced piece by piece.
constexpr size_t kMaxForcedBytes = 256;

// A forced token isn't drawn, so nothing may forbid it.
bool leaves_all_tokens(const GenerateRequest& request) {
  const auto& biases = request.sampling.logit_bias;
  return request.sampling.mask == nullptr && request.allowed_token_ids.empty() &&
         request.banned_sequences.empty() && request.not_first.empty() &&
         std::none_of(biases.begin(), biases.end(),
                      [](const auto& bias) { return std::isinf(bias.second); });
}

std::vector<TokenId> end_tokens(const GenerateRequest& request) {
  std::vector<TokenId> ends = request.stop_token_ids;
  if (!request.ignore_eos) {
    ends.insert(ends.end(), request.eos_tokens.begin(), request.eos_tokens.end());
  }
  return ends;
}

// A token beyond the bits is not allowed.
void set_bit(std::vector<uint64_t>& bits, TokenId token, bool value) {
  constexpr size_t kBits = 64;
  const auto word = static_cast<size_t>(token) / kBits;
  const uint64_t bit = uint64_t{1} << (static_cast<size_t>(token) % kBits);
  if (word >= bits.size()) bits.resize(word + 1);
  bits[word] = value ? bits[word] | bit : bits[word] & ~bit;
}

}  // namespace

// A way from the output's end along a draft: forced tokens come before all others, as they will
// when the draft has been drawn. Takes the matcher back at its end.
class SequenceConstraint::Walk {
 public:
  explicit Walk(SequenceConstraint& constraint)
      : constraint_(constraint), forced_(constraint.forced().begin(), constraint.forced().end()) {}
  ~Walk() { constraint_.matcher_.rollback(num_accepted_); }
  Walk(const Walk&) = delete;
  Walk& operator=(const Walk&) = delete;

  // The token that comes without a draw.
  std::optional<TokenId> forced() const {
    if (num_taken_ == forced_.size()) return std::nullopt;
    return forced_[num_taken_];
  }

  // False where `token` can't come, or ends the output. Throws Error exhausted when what follows is
  // too complex.
  bool accept(TokenId token) {
    if (constraint_.is_end(token) || (forced() && *forced() != token)) return false;
    if (!constraint_.matcher_.accept(static_cast<uint32_t>(token))) return false;
    ++num_accepted_;
    if (num_taken_ < forced_.size()) ++num_taken_;
    if (num_taken_ < forced_.size()) return true;
    forced_ = constraint_.find_forced();
    num_taken_ = 0;
    return true;
  }

 private:
  SequenceConstraint& constraint_;
  std::vector<TokenId> forced_;
  size_t num_taken_ = 0;
  size_t num_accepted_ = 0;
};

class SequenceConstraint::WalkMask : public DraftMask {
 public:
  explicit WalkMask(SequenceConstraint& constraint) : constraint_(constraint), walk_(constraint) {}

  std::span<const uint64_t> allowed() override {
    if (has_ended_) return {};
    try {
      constraint_.find_allowed(allowed_);
    } catch (const Error&) {  // only the draft is too complex so far
      return {};
    }
    if (const auto forced = walk_.forced()) {
      std::fill(allowed_.begin(), allowed_.end(), 0);
      set_bit(allowed_, *forced, true);
    }
    return allowed_;
  }

  void accept(TokenId token) override {
    try {
      has_ended_ = has_ended_ || !walk_.accept(token);
    } catch (const Error&) {
      has_ended_ = true;
    }
  }

 private:
  SequenceConstraint& constraint_;
  Walk walk_;
  std::vector<uint64_t> allowed_;
  bool has_ended_ = false;
};

SequenceConstraint::SequenceConstraint(const GenerateRequest& request)
    : matcher_(request.constraint),
      ends_(end_tokens(request)),
      forces_(leaves_all_tokens(request)),
      forced_(find_forced()) {}

bool SequenceConstraint::is_end(TokenId token) const {
  return std::find(ends_.begin(), ends_.end(), token) != ends_.end();
}

std::vector<TokenId> SequenceConstraint::find_forced() {
  std::vector<TokenId> forced;
  if (!forces_) return forced;
  for (const uint32_t token : matcher_.forced_tokens(kMaxForcedBytes)) {
    if (is_end(static_cast<TokenId>(token))) break;  // drawn, it would end the text
    forced.push_back(static_cast<TokenId>(token));
  }
  return forced;
}

std::unique_ptr<DraftMask> SequenceConstraint::draft_mask() {
  return std::make_unique<WalkMask>(*this);
}

size_t SequenceConstraint::count_allowed(std::span<const TokenId> draft) {
  size_t count = 0;
  try {
    Walk walk(*this);
    while (count < draft.size() && walk.accept(draft[count])) ++count;
    const bool may_end = count < draft.size() && is_end(draft[count]) && !walk.forced();
    if (may_end && matcher_.is_complete()) ++count;
  } catch (const Error&) {  // only the draft is too complex so far
  }
  return count;
}

void SequenceConstraint::find_allowed(std::vector<uint64_t>& allowed) {
  const auto mask = matcher_.mask();
  const bool may_end = matcher_.is_complete();
  allowed.assign(mask->words().begin(), mask->words().end());
  for (const TokenId token : ends_) set_bit(allowed, token, may_end);
}

void SequenceConstraint::add_rule(const Walk& walk) {
  if (num_rules_ == rules_.size()) rules_.emplace_back();
  TokenRule& rule = rules_[num_rules_];
  rule.forced = walk.forced();
  if (!rule.forced) find_allowed(rule.allowed);
  ++num_rules_;
}

void SequenceConstraint::find_rules(std::span<const TokenId> draft) {
  num_rules_ = 0;
  next_rule_ = 0;
  if (failure_) return;
  try {
    Walk walk(*this);
    add_rule(walk);
    for (const TokenId token : draft) {
      if (!walk.accept(token)) break;
      add_rule(walk);
    }
  } catch (const Error& error) {
    // Where only the draft is too complex, the rules before it stand.
    if (num_rules_ == 0) failure_ = error;
  }
}

const TokenRule* SequenceConstraint::rule() {
  if (!failure_ && next_rule_ >= num_rules_) find_rules({});
  return failure_ ? nullptr : &rules_[next_rule_];
}

void SequenceConstraint::accept(TokenId token) {
  ++next_rule_;
  try {
    const bool is_accepted = matcher_.accept(static_cast<uint32_t>(token));
    PL_CHECK(is_accepted, "a token was drawn that the constraint doesn't allow");
    if (num_forced_taken_ < forced_.size()) ++num_forced_taken_;
    if (num_forced_taken_ < forced_.size()) return;
    forced_ = find_forced();
    num_forced_taken_ = 0;
  } catch (const Error& error) {
    failure_ = error;
  }
}

bool SequenceConstraint::only_ends() {
  if (failure_) return false;
  try {
    return matcher_.only_ends();
  } catch (const Error& error) {
    failure_ = error;
    return false;
  }
}

}  // namespace paceline
