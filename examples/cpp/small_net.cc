// small_net FILE.safetensors: trains a net to tell the arms of a spiral apart, and saves it.
#include <paceline/grad.h>
#include <paceline/linear.h>

#include <cmath>
#include <cstdio>
#include <vector>

using namespace paceline::arrays;

constexpr int kArms = 3, kPointsPerArm = 100, kHidden = 32, kSteps = 400;

struct Points {
  Array positions;  // [points, 2]
  Array arms;       // [points] int32
};

static Points spiral() {
  const std::vector<float> noise = normal({kArms * kPointsPerArm}, {.seed = 1}).to_vector();
  std::vector<float> positions;
  std::vector<int32_t> arms;
  for (int i = 0; i < kArms * kPointsPerArm; ++i) {
    const int arm = i / kPointsPerArm;
    const float radius = static_cast<float>(i % kPointsPerArm) / kPointsPerArm;
    const float angle = 2.1f * static_cast<float>(arm) + 4.0f * radius + 0.1f * noise[i];
    positions.insert(positions.end(), {radius * std::sin(angle), radius * std::cos(angle)});
    arms.push_back(arm);
  }
  return {reshape(Array(positions, {2 * kArms * kPointsPerArm}), {-1, 2}),
          integers(arms, {kArms * kPointsPerArm})};
}

static Array logits_of(const NamedArrays& weights, const Array& positions) {
  const Array hidden = tanh(Linear::of(weights, "hidden")(positions));
  return Linear::of(weights, "out")(hidden);
}

int main(int argc, char** argv) try {
  if (argc != 2) return std::fputs("usage: small_net FILE.safetensors\n", stderr), 2;
  const Points points = spiral();
  NamedArrays weights;
  Linear::create(2, kHidden, {.seed = 2}).add_to(weights, "hidden");
  Linear::create(kHidden, kArms, {.seed = 3}).add_to(weights, "out");
  const auto loss_of = value_and_grad([&](const NamedArrays& w) {
    return cross_entropy(logits_of(w, points.positions), points.arms);
  });
  AdamW optimizer({.learning_rate = 0.05});
  for (int step = 0; step <= kSteps; ++step) {
    const auto [loss, others, gradients] = loss_of(weights);
    if (step % 100 == 0) std::printf("step %d: loss %.4f\n", step, loss.item());
    optimizer.step(weights, gradients);
  }
  const Array logits = logits_of(weights, points.positions);
  const Array right = equal(take_from_rows(logits, points.arms), max(logits, {1}));
  std::printf("right: %.1f %%\n", 100.0f * mean(where(right, ones({}), zeros({}))).item());
  save_safetensors(argv[1], weights);
} catch (const paceline::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
