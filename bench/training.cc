// Measures training steps: the tokens per second of forward, backward and optimizer with LoRA on
// all linear modules, or of all weights, beside the matrix rate.
//     training MODEL [--dummy] [--quantize=q4] [--dtype=bfloat16] [--rank=8] [--full] [--muon]
//              [--sequences=4] [--micro-batch=4] [--length=512] [--rounds=3] [--threads=2]
//              [--kept-mib=256] [--no-checkpoints]
// MODEL is a directory; with --dummy its config.json is enough. A micro-batch has as many of the
// sequences as fit.
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "bench/options.h"
#include "kernels/backend.h"
#include "load/loaded_model.h"
#include "models/decoder.h"
#include "train/decoder_pass.h"
#include "train/lora_set.h"
#include "train/muon.h"
#include "train/weight_set.h"

namespace paceline {
namespace {

struct Options {
  LoadOptions load = {
      .max_model_len = 1024, .max_num_seqs = 1, .cache_limit_bytes = kTrainingCacheBytes};
  int64_t rank = 8;
  int64_t sequences = 4;
  int64_t length = 512;
  int64_t micro_batch = 1 << 20;
  int64_t rounds = 3;
  int64_t kept_mib = kKeptActivationBytes >> 20;
  bool keeps_all = false;  // activations
  bool is_full = false;    // all weights are trained
  bool is_muon = false;
};

Options read_options(int argc, char** argv) {
  Options options;
  bench::BenchOptions("training")
      .model(options.load)
      .flag("no-checkpoints", options.keeps_all)
      .count("kept-mib", options.kept_mib)
      .flag("full", options.is_full)
      .flag("muon", options.is_muon)
      .text("dtype", options.load.dtype)
      .count("micro-batch", options.micro_batch)
      .count("rank", options.rank)
      .count("sequences", options.sequences)
      .count("length", options.length)
      .count("rounds", options.rounds)
      .read(argc, argv);
  return options;
}

std::vector<TrainBatch> random_batches(const Options& options, int64_t vocab) {
  std::vector<TrainBatch> batches;
  uint64_t draw = 0;
  for (int64_t i = 0; i < options.sequences; ++i) {
    std::vector<int32_t> tokens;
    for (int64_t k = 0; k <= options.length; ++k) {
      tokens.push_back(static_cast<int32_t>(uniform_draw(1, draw++) * static_cast<double>(vocab)));
    }
    if (i % options.micro_batch == 0) batches.emplace_back();
    batches.back().add(tokens, std::vector<float>(static_cast<size_t>(options.length),
                                                  1.0f / static_cast<float>(options.length)));
  }
  return batches;
}

std::unique_ptr<TrainedSet> trained_set(const Options& options, LoadedModel& model) {
  if (options.is_full) return std::make_unique<WeightSet>(*model.backend, *model.decoder);
  const LoraOptions lora{
      .shape_of = [&](std::string_view) { return LoraShape{.rank = options.rank}; }};
  return std::make_unique<LoraSet>(*model.backend, *model.decoder, lora);
}

std::unique_ptr<Optimizer> make_optimizer(const Options& options, const TrainedSet& trained,
                                          LoadedModel& model) {
  if (!options.is_muon)
    return std::make_unique<AdamW>(trained.parameters(), AdamWOptions{}, model.memory);
  return std::make_unique<Muon>(*model.backend, trained.parameters(), MuonOptions{});
}

int run(const Options& options) {
  const auto model = load_model(options.load);
  Backend& backend = *model->backend;
  const auto trained = trained_set(options, *model);
  DecoderPass pass(backend, *model->threads, *model->decoder, trained->training(),
                   {.kv_dtype = model->kv_dtype,
                    .kept_bytes = options.keeps_all ? kAllActivations : options.kept_mib << 20});
  const auto optimizer = make_optimizer(options, *trained, *model);
  const std::vector<TrainBatch> batches =
      random_batches(options, model->decoder->config().vocab_size);
  double weights = 0;  // that a token is multiplied by
  for (const PackedMatrix* const matrix : model->decoder->weights()) {
    weights += static_cast<double>(matrix->n) * static_cast<double>(matrix->k);
  }
  const size_t before = model->memory.stats().active_bytes;
  model->memory.reset_peak();
  fmt::print("{}, {}, {} threads; {:.0f} M weights, {} M trained; {} x {} tokens\n",
             model->path.string(), backend.name(), model->threads->num_threads(), weights / 1e6,
             static_cast<double>(trained->num_parameters()) / 1e6, options.sequences,
             options.length);
  for (int64_t round = 0; round < options.rounds; ++round) {
    std::vector<float> losses;
    trained->clear_gradients();
    const auto begin = std::chrono::steady_clock::now();
    for (const TrainBatch& batch : batches) pass.run(batch, {}, losses);
    trained->complete_gradients();
    const auto middle = std::chrono::steady_clock::now();
    optimizer->step(1e-4, 1.0, *model->threads);
    trained->pack(backend);
    const auto end = std::chrono::steady_clock::now();
    const double seconds = std::chrono::duration<double>(end - begin).count();
    const double step = std::chrono::duration<double>(end - middle).count();
    const double rate = static_cast<double>(options.sequences * options.length) / seconds;
    double loss = 0;
    for (const float one : losses) loss += double{one};
    fmt::print(
        "  {:.2f} s ({:.0f} ms of it the optimizer), {:.1f} tokens/s, {:.0f} GFLOP/s counted as 6 "
        "a "
        "weight and token, loss {:.3f}, peak {:.0f} MiB over the model\n",
        seconds, 1e3 * step, rate, 6 * weights * rate / 1e9,
        loss / static_cast<double>(losses.size()),
        static_cast<double>(model->memory.stats().peak_bytes - before) / (1 << 20));
  }
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  fmt::print("  resident at most {} MiB\n", usage.ru_maxrss / 1024);
  return 0;
}

}  // namespace
}  // namespace paceline

int main(int argc, char** argv) {
  const auto options = paceline::read_options(argc, argv);
  return paceline::run(options);
}
