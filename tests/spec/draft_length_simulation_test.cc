// Simulates drafting with known costs and acceptance: the chosen lengths must be nearly as good as
// no drafts where those are best, and as the best fixed length elsewhere.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "spec/draft_length.h"
#include "tests/test_scale.h"

namespace paceline::testing {
namespace {

constexpr int64_t kMost = 16;

struct Machine {
  std::string name;
  double (*seconds)(double rows);
  double draft_seconds;  // per token
  // Of the best fixed length, where one more row than that one's costs a whole tile of rows: trying
  // it takes time, and it counts as the same number of rows.
  double share_of_best = 1.0;
};

const std::vector<Machine> kMachines = {
    {"memory", [](double rows) { return 0.02 * std::max(1 + 0.01 * rows, rows / 8); }, 0.0},
    {"memory, late knee", [](double rows) { return 0.01 * std::max(1 + 0.004 * rows, rows / 48); },
     0.0},
    {"compute", [](double rows) { return 0.01 * rows; }, 0.0},
    {"compute, some fixed", [](double rows) { return 0.004 + 0.01 * rows; }, 0.0},
    {"half", [](double rows) { return 0.02 + 0.01 * rows; }, 0.0},
    {"tiles of 16 rows", [](double rows) { return 0.02 + 0.04 * std::ceil(rows / 16); }, 0.0, 0.56},
    {"memory, costly drafts", [](double rows) { return 0.02 * std::max(1.0, rows / 8); }, 0.002},
};

// Tokens per second without learning: `length` for all sequences.
double fixed_rate(const Machine& machine, double acceptance, int64_t n, int64_t length) {
  double tokens = 1.0;
  for (int64_t i = 1; i <= length; ++i) tokens += std::pow(acceptance, static_cast<double>(i));
  const auto sequences = static_cast<double>(n);
  const auto drafted = static_cast<double>(length);
  return sequences * tokens /
         (machine.seconds(sequences * (1.0 + drafted)) +
          machine.draft_seconds * sequences * drafted);
}

// What else differs between simulations.
struct Circumstances {
  std::string name = "steady";
  double noise = 0.03;
  double outliers = 0.01;  // steps that seem five times as long
  double growth = 0.0;     // of all seconds, by the end
  double load = 1.0;       // of all seconds, in the second third
  double prospects = 1.0;  // the probability that a sequence has something to draft
  int64_t num_steps = 3'000;
  int64_t sequence_steps = 500;  // of a sequence, then another takes its place
};

class Simulation {
 public:
  Simulation(const Machine& machine, const Circumstances& circumstances, uint32_t seed)
      : machine_(machine), circumstances_(circumstances), random_(seed) {}

  // Tokens per second of a machine that stays as it is at the beginning.
  double rate(double acceptance, int64_t num_sequences) {
    sequences_.assign(static_cast<size_t>(num_sequences), {});
    lengths_.assign(sequences_.size(), 0);
    double tokens = 0.0;
    double seconds = 0.0;
    for (int64_t step = 0; step < circumstances_.num_steps; ++step) {
      choose_lengths(step);
      tokens += static_cast<double>(verify(acceptance));
      seconds += take_time(step);
    }
    return tokens / seconds;
  }

 private:
  bool happens(double probability) {
    return static_cast<double>(random_()) < probability * 4294967296.0;
  }

  void choose_lengths(int64_t step) {
    const auto num = static_cast<int64_t>(sequences_.size());
    candidates_.clear();
    for (int64_t i = 0; i < num; ++i) {
      const auto at = static_cast<size_t>(i);
      const int64_t age = step + i * circumstances_.sequence_steps / num;
      if (age % circumstances_.sequence_steps == 0) sequences_[at] = {};
      const bool has_prospects =
          circumstances_.prospects == 1.0 || happens(circumstances_.prospects);
      candidates_.push_back({&sequences_[at], has_prospects ? kMost : 0});
    }
    const auto lengths = chosen_.choose(candidates_, cost_, num);
    lengths_.assign(lengths.begin(), lengths.end());
  }

  int64_t verify(double acceptance) {
    int64_t tokens = 0;
    for (size_t i = 0; i < sequences_.size(); ++i) {
      int64_t accepted = 0;
      while (accepted < lengths_[i] && happens(acceptance)) ++accepted;
      sequences_[i].record(lengths_[i], accepted);
      tokens += 1 + accepted;
    }
    return tokens;
  }

  double take_time(int64_t step) {
    const int64_t drafted = std::accumulate(lengths_.begin(), lengths_.end(), int64_t{0});
    const int64_t rows = static_cast<int64_t>(lengths_.size()) + drafted;
    const double seconds = machine_.seconds(static_cast<double>(rows));
    const double draft_seconds = machine_.draft_seconds * static_cast<double>(drafted);
    const double progress =
        static_cast<double>(step) / static_cast<double>(circumstances_.num_steps);
    double factor = 1.0 + circumstances_.growth * progress;
    if (progress > 0.33 && progress < 0.67) factor *= circumstances_.load;
    if (happens(circumstances_.outliers)) factor *= 5;
    cost_.record(rows, seconds * factor * std::exp(circumstances_.noise * normal_(random_)));
    cost_.record_draft(drafted, draft_seconds * factor);
    return seconds + draft_seconds;
  }

  const Machine& machine_;
  const Circumstances& circumstances_;
  std::mt19937 random_;
  std::normal_distribution<double> normal_;
  RowCost cost_;
  std::vector<AcceptanceRate> sequences_;
  std::vector<DraftCandidate> candidates_;
  DraftLengths chosen_;
  std::vector<int64_t> lengths_;
};

struct Bounds {
  double of_none = 0.97;  // at least this share of the rate without drafts
  double of_best = 0.93;  // and of that of the best fixed length
};

struct Grid {
  std::vector<double> acceptances;
  std::vector<int64_t> num_sequences;
  int num_seeds = 1;
};

void expect_nearly_the_best(const Circumstances& circumstances, const Grid& grid,
                            const Bounds& bounds) {
  size_t first = 0;
  for (const Machine& machine : kMachines) {
    for (const double acceptance : grid.acceptances) {
      for (const int64_t n : cases_to_run(grid.num_sequences, first++, 6, 2)) {
        double best = 0.0;
        for (int64_t k = 0; k <= kMost; ++k)
          best = std::max(best, fixed_rate(machine, acceptance, n, k));
        const double none = fixed_rate(machine, acceptance, n, 0);
        for (int seed = 0; seed < grid.num_seeds; ++seed) {
          Simulation simulation(machine, circumstances, static_cast<uint32_t>(seed));
          const double chosen = simulation.rate(acceptance, n);
          const std::string where =
              fmt::format("{}: {}, acceptance {}, {} sequences, seed {}", circumstances.name,
                          machine.name, acceptance, n, seed);
          EXPECT_GE(chosen / none, bounds.of_none) << where;
          EXPECT_GE(chosen / best, bounds.of_best * machine.share_of_best) << where;
        }
      }
    }
  }
}

TEST(DraftLengthSimulation, ChosenLengthsAreNearlyTheBest) {
  const Grid grid = {.acceptances = {0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95},
                     .num_sequences = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64},
                     .num_seeds = scaled(1, 20)};
  expect_nearly_the_best({}, grid, {});
}

TEST(DraftLengthSimulation, NoiseLoadAndGrowingContextsCostLittle) {
  const Grid grid = {.acceptances = {0.3, 0.7, 0.9},
                     .num_sequences = {1, 3, 8, 24, 64},
                     .num_seeds = scaled(1, 20)};
  expect_nearly_the_best({.name = "noise", .noise = 0.1, .outliers = 0.03}, grid,
                         {.of_none = 0.94, .of_best = 0.88});
  expect_nearly_the_best({.name = "growth", .growth = 1.0}, grid, {.of_best = 0.9});
  expect_nearly_the_best({.name = "load", .load = 2.0}, grid, {.of_none = 0.94, .of_best = 0.86});
  // A fixed length would draft as rarely: there is no best to compare with.
  expect_nearly_the_best({.name = "rare prospects", .prospects = 0.2}, grid, {.of_best = 0.0});
}

}  // namespace
}  // namespace paceline::testing
