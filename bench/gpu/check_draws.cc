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

// The rows of a batch that the GPU draws otherwise.
std::string differing_rows(Backend& backend, const std::vector<RandomDraw>& rows) {
  DrawnRows draws(backend, rows);
  const std::vector<Sample> found = draws.on_device(kRowsEach), expected = draws.on_cpu();
  std::string differing;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (!has_same_bits(found[i], expected[i])) differing += std::to_string(i) + " ";
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
    int batch = 0;
    for (; batch < (is_large ? num_batches / 10 : num_batches) && !deadline.is_over(); ++batch) {
      RandomDraws random(static_cast<uint64_t>(batch));
      const size_t width = is_large ? 128'256 : random.any_width();
      std::vector<RandomDraw> rows;
      for (int i = 0; i < (options.is_small && is_large ? 2 : kRowsEach); ++i) {
        rows.push_back(random.next(width));
      }
      const std::string in_batch = differing_rows(*backend, rows);
      if (!in_batch.empty()) differing += std::to_string(batch) + ": " + in_batch + "; ";
    }
    report.check(
        "draws", is_large ? "128,256 logits" : "1 to 5,000 logits", differing.empty(),
        [&](JsonWriter& json) { json.member("batches", batch).member("differing", differing); });
  }
}

}  // namespace paceline
