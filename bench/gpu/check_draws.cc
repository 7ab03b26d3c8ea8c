#include <fmt/format.h>

#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "bench/gpu/checks.h"
#include "kernels/cuda/make_cuda_backend.h"
#include "tests/cuda_backend/drawn_rows.h"

namespace paceline {
namespace {

using testing::DrawnRows;
using testing::has_same_bits;
using testing::RandomDraw;
using testing::RandomDraws;

constexpr int kRowsEach = 16;
constexpr int kMostShown = 3;  // of the batches that differ

std::string text_of(const Sample& sample) {
  std::string text =
      fmt::format("{} {} {:a}", static_cast<int>(sample.status), sample.id, sample.logprob);
  for (const TokenLogprob& one : sample.top_logprobs) {
    text += fmt::format(" {}:{:a}", one.id, one.logprob);
  }
  return text;
}

// The rows of a batch that the GPU draws otherwise.
std::string differing_rows(Backend& backend, const std::vector<RandomDraw>& rows) {
  DrawnRows draws(backend, rows);
  const std::vector<Sample> found = draws.on_device(kRowsEach), expected = draws.on_cpu();
  std::string differing;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (has_same_bits(found[i], expected[i])) continue;
    differing +=
        fmt::format("row {}: {} instead of {}; ", i, text_of(found[i]), text_of(expected[i]));
  }
  return differing;
}

}  // namespace

void check_draws(cuda::CudaDevice& device, const CheckOptions& options, CheckReport& report) {
  ThreadPool threads(1);
  const auto backend = cuda::make_cuda_backend(device, threads);
  const Deadline deadline(options.seconds);
  const int num_batches = options.is_small ? 10 : 2000;
  for (const bool is_large : {false, true}) {
    std::string differing;
    int num_differing = 0;
    int batch = 0;
    for (; batch < (is_large ? num_batches / 10 : num_batches) && !deadline.is_over(); ++batch) {
      RandomDraws random(static_cast<uint64_t>(batch));
      const size_t width = is_large ? 128'256 : random.any_width();
      std::vector<RandomDraw> rows;
      for (int i = 0; i < (options.is_small && is_large ? 2 : kRowsEach); ++i) {
        rows.push_back(random.next(width));
      }
      const std::string in_batch = differing_rows(*backend, rows);
      if (in_batch.empty()) continue;
      if (num_differing++ < kMostShown) differing += fmt::format("batch {}, {}", batch, in_batch);
    }
    report.check("draws", is_large ? "128,256 logits" : "1 to 5,000 logits", num_differing == 0,
                 [&](JsonWriter& json) {
                   json.member("batches", batch)
                       .member("differing_batches", num_differing)
                       .member("differing", differing);
                 });
  }
}

}  // namespace paceline
