// Measures how often two distributions give the same token under the same key: drawn by a race, and
// by walking up the ids with one uniform number. agreement [MODEL DRAFTER TEXT_FILE [TOKENS]]
// compares random pairs, and two models on every token of the text.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "base/random.h"
#include "load/loaded_model.h"
#include "runner/model_runner.h"
#include "sampling/distribution.h"
#include "sampling/draw.h"
#include "sampling/sampler.h"
#include "tensor/memory.h"

namespace paceline {
namespace {

int32_t walk(const Distribution& distribution, double uniform) {
  auto before = static_cast<uint64_t>(uniform * static_cast<double>(distribution.total));
  size_t i = 0;
  for (; i + 1 < distribution.ids.size() && distribution.weights[i] <= before; ++i) {
    before -= distribution.weights[i];
  }
  return distribution.ids[i];
}

double total_variation(const Distribution& p, const Distribution& q) {
  double common = 0;
  for (size_t i = 0, j = 0; i < p.ids.size() && j < q.ids.size();) {
    if (p.ids[i] == q.ids[j]) {
      common += std::min(static_cast<double>(p.weights[i]) / static_cast<double>(p.total),
                         static_cast<double>(q.weights[j]) / static_cast<double>(q.total));
    }
    const bool is_before = p.ids[i] <= q.ids[j];
    j += q.ids[j] <= p.ids[i] ? 1 : 0;
    i += is_before ? 1 : 0;
  }
  return 1.0 - common;
}

struct Agreement {
  double pairs = 0, draws = 0;
  double distance = 0, bound = 0;      // sums over pairs
  double by_walking = 0, by_race = 0;  // equal draws

  void add(const Distribution& p, const Distribution& q, int num_seeds, int64_t position) {
    const double d = total_variation(p, q);
    pairs += 1;
    distance += d;
    bound += (1.0 - d) / (1.0 + d);
    for (int i = 0; i < num_seeds; ++i) {
      const auto seed = static_cast<uint64_t>(i);
      const double uniform = uniform_draw(seed, static_cast<uint64_t>(position));
      const uint64_t key = draw_key(seed, position);
      draws += 1;
      by_walking += walk(p, uniform) == walk(q, uniform) ? 1 : 0;
      by_race += draw_from(p, key) == draw_from(q, key) ? 1 : 0;
    }
  }

  void print(const std::string& name) const {
    fmt::print("{:44} {:9.3f} {:9.3f} {:9.3f} {:9.3f} {:9.3f} {:10.0f}\n", name, distance / pairs,
               1.0 - distance / pairs, bound / pairs, by_walking / draws, by_race / draws, draws);
  }
};

Distribution of_shares(const std::vector<double>& shares) {
  Distribution made;
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  for (size_t i = 0; i < shares.size(); ++i) {
    const auto weight = static_cast<uint64_t>(shares[i] / sum * 0x1p43);
    if (weight == 0) continue;
    made.ids.push_back(static_cast<int32_t>(i));
    made.weights.push_back(weight);
    made.total += weight;
  }
  return made;
}

std::vector<double> random_shares(std::mt19937_64& random, size_t size) {
  std::normal_distribution<double> normal(0.0, 2.0);
  std::vector<double> shares(size);
  for (double& share : shares) share = std::exp(normal(random));
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  for (double& share : shares) share /= sum;
  return shares;
}

// Pairs p and (1 - a) p + a r with r random, a such that their total variation distance is
// `wanted`.
void compare_random_pairs(size_t size, double wanted) {
  std::mt19937_64 random(1);
  Agreement agreement;
  for (int64_t pair = 0; pair < 200; ++pair) {
    const std::vector<double> p = random_shares(random, size), r = random_shares(random, size);
    double distance = 0;
    for (size_t i = 0; i < size; ++i) distance += std::abs(p[i] - r[i]) / 2;
    const double part = std::min(1.0, wanted / distance);
    std::vector<double> q(size);
    for (size_t i = 0; i < size; ++i) q[i] = (1.0 - part) * p[i] + part * r[i];
    agreement.add(of_shares(p), of_shares(q), 2000, pair);
  }
  agreement.print(fmt::format("random, {} tokens, distance {:.2f}", size, wanted));
}

// Logits of every position of the window, [tokens, vocab].
std::vector<float> logits_of(LoadedModel& model, std::span<const int32_t> window) {
  std::vector<int32_t> blocks(window.size() / 16 + 1);
  std::iota(blocks.begin(), blocks.end(), 0);
  Batch batch;
  batch.groups.resize(1);
  batch.tokens.assign(window.begin(), window.end());
  batch.positions.resize(window.size());
  std::iota(batch.positions.begin(), batch.positions.end(), 0);
  batch.output_rows = batch.positions;
  batch.groups[0].slots.assign(batch.positions.begin(), batch.positions.end());
  batch.groups[0].slices.push_back({.num_rows = std::ssize(window), .block_table = blocks});
  model.runner->run(batch);
  std::vector<float> all;
  for (int64_t row = 0; row < std::ssize(window); row += model.runner->max_logits_rows()) {
    const int64_t count = std::min(model.runner->max_logits_rows(), std::ssize(window) - row);
    const auto logits = model.runner->logits(row, count);
    all.insert(all.end(), logits.begin(), logits.end());
  }
  return all;
}

std::unique_ptr<LoadedModel> loaded(const std::string& path) {
  LoadOptions options;
  options.model = path;
  options.kv_cache_memory_bytes = size_t{64} << 20;
  return load_model(options);
}

void compare_models(const std::string& path, const std::string& drafter_path,
                    const std::string& text_path, size_t num_tokens) {
  const auto model = loaded(path), drafter = loaded(drafter_path);
  std::ifstream file(text_path);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  text.resize(std::min(text.size(), num_tokens * 8));
  std::vector<int32_t> tokens = model->tokenizer->encode(text);
  tokens.resize(std::min(tokens.size(), num_tokens));

  const std::vector<SamplingOptions> variants = {
      {{.temperature = 1.0f}},
      {{.temperature = 0.7f}},
      {{.temperature = 1.0f, .top_p = 0.9f}},
      {{.temperature = 0.7f, .top_p = 0.9f}},
      {{.temperature = 0.8f, .top_k = 40}},
  };
  std::vector<Agreement> agreements(variants.size());
  const int64_t vocab_size = model->runner->vocab_size();
  Memory memory;
  Sampler sampler(memory, vocab_size);
  Distribution p, q;
  constexpr size_t kWindow = 512;
  for (size_t first = 0; first < tokens.size(); first += kWindow) {
    const auto window =
        std::span<const int32_t>(tokens).subspan(first, std::min(kWindow, tokens.size() - first));
    const std::vector<float> rows = logits_of(*model, window), other = logits_of(*drafter, window);
    for (size_t i = 0; i < window.size(); ++i) {
      const auto row_of = [&](const std::vector<float>& logits) {
        return LogitsRow{std::span(logits).subspan(i * static_cast<size_t>(vocab_size),
                                                   static_cast<size_t>(vocab_size))};
      };
      for (size_t v = 0; v < variants.size(); ++v) {
        sampler.distribution(row_of(rows), variants[v], {}, p);
        sampler.distribution(row_of(other), variants[v], {}, q);
        agreements[v].add(p, q, 8, static_cast<int64_t>(first + i));
      }
    }
  }
  for (size_t v = 0; v < variants.size(); ++v) {
    agreements[v].print(fmt::format("models, temperature {}, top-p {}, top-k {}",
                                    variants[v].temperature, variants[v].top_p, variants[v].top_k));
  }
}

}  // namespace
}  // namespace paceline

int main(int argc, char** argv) {
  if (argc != 1 && argc != 4 && argc != 5) {
    fmt::print(stderr, "usage: agreement [MODEL DRAFTER TEXT_FILE [TOKENS]]\n");
    return 2;
  }
  fmt::print("{:44} {:>9} {:>9} {:>9} {:>9} {:>9} {:>10}\n", "", "distance", "most",
             "race >=", "walking", "race", "draws");
  for (const size_t size : {16, 1000}) {
    for (const double distance : {0.05, 0.1, 0.2, 0.4}) {
      paceline::compare_random_pairs(size, distance);
    }
  }
  if (argc > 1) {
    const size_t num_tokens = argc == 5 ? std::strtoull(argv[4], nullptr, 10) : 20'000;
    paceline::compare_models(argv[1], argv[2], argv[3], num_tokens);
  }
  return 0;
}
