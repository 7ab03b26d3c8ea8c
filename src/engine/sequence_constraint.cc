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
         request.banned_sequences.empty() &&
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

}  // namespace

SequenceConstraint::SequenceConstraint(const GenerateRequest& request)
    : matcher_(request.constraint),
      ends_(end_tokens(request)),
      forces_(leaves_all_tokens(request)) {
  force();
}

bool SequenceConstraint::is_end(TokenId token) const {
  return std::find(ends_.begin(), ends_.end(), token) != ends_.end();
}

void SequenceConstraint::force() {
  forced_.clear();
  num_forced_taken_ = 0;
  if (!forces_) return;
  for (const uint32_t token : matcher_.forced_tokens(kMaxForcedBytes)) {
    if (is_end(static_cast<TokenId>(token))) break;  // drawn, it would end the text
    forced_.push_back(static_cast<TokenId>(token));
  }
}

size_t SequenceConstraint::count_allowed(std::span<const TokenId> draft) {
  size_t count = 0;
  size_t num_accepted = 0;
  try {
    for (const TokenId token : draft) {
      if (is_end(token)) {
        count += matcher_.is_complete() ? 1 : 0;
        break;
      }
      if (!matcher_.accept(static_cast<uint32_t>(token))) break;
      ++count;
      ++num_accepted;
    }
  } catch (const Error&) {  // only the draft is too complex so far
  }
  matcher_.rollback(num_accepted);
  return count;
}

// The position behind `num_ahead` tokens that the matcher has accepted beyond the output.
void SequenceConstraint::add_rule(size_t num_ahead) {
  if (num_rules_ == rules_.size()) rules_.emplace_back();
  TokenRule& rule = rules_[num_rules_];
  if (num_ahead < forced().size()) {
    rule.forced = forced()[num_ahead];
    ++num_rules_;
    return;
  }
  constexpr size_t kBits = 64;
  rule.forced.reset();
  const auto mask = matcher_.mask();
  const bool may_end = matcher_.is_complete();
  rule.allowed.assign(mask->words().begin(), mask->words().end());
  for (const TokenId token : ends_) {
    const auto word = static_cast<size_t>(token) / kBits;
    const uint64_t bit = uint64_t{1} << (static_cast<size_t>(token) % kBits);
    if (word >= rule.allowed.size()) rule.allowed.resize(word + 1);
    rule.allowed[word] = may_end ? rule.allowed[word] | bit : rule.allowed[word] & ~bit;
  }
  ++num_rules_;
}

void SequenceConstraint::find_rules(std::span<const TokenId> draft) {
  num_rules_ = 0;
  next_rule_ = 0;
  if (failure_) return;
  size_t num_ahead = 0;
  try {
    add_rule(0);
    for (const TokenId token : draft) {
      if (is_end(token) || !matcher_.accept(static_cast<uint32_t>(token))) break;
      add_rule(++num_ahead);
    }
  } catch (const Error& error) {
    // Where only the draft is too complex, the rules before it stand.
    if (num_rules_ == 0) failure_ = error;
  }
  matcher_.rollback(num_ahead);
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
    if (num_forced_taken_ == forced_.size()) force();
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
