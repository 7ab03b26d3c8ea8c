// Drafters for tests of the engine: right, wrong, random, failing, and one that breaks its
// contract.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "base/random.h"
#include "paceline/error.h"
#include "spec/drafter.h"

namespace paceline::testing {

// The token that the model draws after `token` at `position`, as in ScriptedRunner's script.
using NextToken = std::function<int32_t(int32_t token, int64_t position)>;

// Proposes `most` tokens to every sequence, each made by drafted() from the one before it. Counts
// the calls.
class ScriptedDrafter : public Drafter {
 public:
  std::string_view name() const override { return "scripted"; }

  std::unique_ptr<DraftState> begin(std::span<const int32_t>, std::span<const int32_t>) override {
    ++num_begun;
    return std::make_unique<DraftState>();
  }

  int64_t prospects(DraftState&, std::span<const int32_t>, int64_t most) override { return most; }

  void propose(std::span<const DraftRequest> requests) override {
    ++num_proposals;
    for (const DraftRequest& request : requests) {
      int32_t token = request.tokens.back();
      auto position = static_cast<int64_t>(request.tokens.size()) - 1;
      for (int64_t i = 0; i < num_tokens(request.most); ++i) {
        token = drafted(token, position++);
        request.draft->tokens.push_back(token);
      }
    }
  }

  int64_t num_begun = 0;
  int64_t num_proposals = 0;

 protected:
  // The token that it proposes after `token` at `position`.
  virtual int32_t drafted(int32_t token, int64_t position) = 0;
  virtual int64_t num_tokens(int64_t most) { return most; }
};

// Every token is the model's.
class RightDrafter : public ScriptedDrafter {
 public:
  explicit RightDrafter(NextToken next) : next_(std::move(next)) {}

 protected:
  int32_t drafted(int32_t token, int64_t position) override { return next_(token, position); }

 private:
  NextToken next_;
};

// No token is the model's.
class WrongDrafter : public ScriptedDrafter {
 public:
  WrongDrafter(int64_t vocab_size, NextToken next)
      : vocab_size_(vocab_size), next_(std::move(next)) {}

 protected:
  int32_t drafted(int32_t token, int64_t position) override {
    return static_cast<int32_t>((next_(token, position) + int64_t{1}) % vocab_size_);
  }

 private:
  int64_t vocab_size_;
  NextToken next_;
};

// A token is the model's with probability `right`, else any; of 0 to `most` tokens. All depends on
// the seed, token and position alone.
class RandomDrafter : public ScriptedDrafter {
 public:
  RandomDrafter(int64_t vocab_size, NextToken next, uint64_t seed, double right = 0.6)
      : vocab_size_(vocab_size), next_(std::move(next)), seed_(seed), right_(right) {}

 protected:
  int32_t drafted(int32_t token, int64_t position) override {
    const int32_t next = next_(token, position);
    const auto counter = static_cast<uint64_t>(2 * position);
    if (uniform_draw(seed_ + static_cast<uint32_t>(token), counter) < right_) return next;
    return static_cast<int32_t>(uniform_draw(seed_, counter + 1) *
                                static_cast<double>(vocab_size_));
  }

  int64_t num_tokens(int64_t most) override {
    const auto counter = static_cast<uint64_t>(num_drafts_++);
    return static_cast<int64_t>(uniform_draw(~seed_, counter) * static_cast<double>(most + 1));
  }

 private:
  int64_t vocab_size_;
  NextToken next_;
  uint64_t seed_;
  double right_;
  int64_t num_drafts_ = 0;
};

// Throws an Error on the k-th call of propose(), counted from 1, after it has filled the drafts;
// right before and after it.
class ThrowingDrafter : public RightDrafter {
 public:
  ThrowingDrafter(NextToken next, int64_t k) : RightDrafter(std::move(next)), k_(k) {}

  void propose(std::span<const DraftRequest> requests) override {
    RightDrafter::propose(requests);
    if (num_proposals == k_) throw Error(ErrorCode::internal, "scripted drafter: propose() fails");
  }

 private:
  int64_t k_;
};

// Throws an Error on the k-th call of begin(), counted from 1; right otherwise.
class ThrowingInBegin : public RightDrafter {
 public:
  ThrowingInBegin(NextToken next, int64_t k) : RightDrafter(std::move(next)), k_(k) {}

  std::unique_ptr<DraftState> begin(std::span<const int32_t> prompt,
                                    std::span<const int32_t> prediction) override {
    auto state = RightDrafter::begin(prompt, prediction);
    if (num_begun == k_) throw Error(ErrorCode::exhausted, "scripted drafter: begin() fails");
    return state;
  }

 private:
  int64_t k_;
};

// Breaks the contract: three tokens more than `most`, all right, or every third id outside the
// vocabulary (below 0 and above it in turn).
class UnlawfulDrafter : public RightDrafter {
 public:
  enum class Fault : uint8_t { too_many, outside_vocabulary };
  UnlawfulDrafter(NextToken next, Fault fault) : RightDrafter(std::move(next)), fault_(fault) {}

  void propose(std::span<const DraftRequest> requests) override {
    RightDrafter::propose(requests);
    if (fault_ != Fault::outside_vocabulary) return;
    for (const DraftRequest& request : requests) {
      for (int32_t& token : request.draft->tokens) {
        if (++num_proposed_ % 3 != 0) continue;
        token = num_proposed_ % 2 == 0 ? -1 : std::numeric_limits<int32_t>::max();
      }
    }
  }

 protected:
  int64_t num_tokens(int64_t most) override { return fault_ == Fault::too_many ? most + 3 : most; }

 private:
  Fault fault_;
  int64_t num_proposed_ = 0;
};

}  // namespace paceline::testing
