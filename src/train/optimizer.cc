#include "train/optimizer.h"

#include <algorithm>
#include <cmath>

#include "base/divide_up.h"

namespace paceline {

double gradient_norm(std::span<TrainedParameter* const> parameters, ThreadPool& threads) {
  constexpr int64_t kBlock = 1 << 14;
  double total = 0.0;
  std::vector<double> sums;
  for (const TrainedParameter* const one : parameters) {
    const auto* const gradient = one->gradient().elements<float>();
    const int64_t count = one->gradient().num_elements();
    sums.assign(static_cast<size_t>(divide_up(count, kBlock)), 0.0);
    threads.parallel_for(std::ssize(sums), 1, [&](int64_t begin, int64_t end, int /*thread*/) {
      for (int64_t block = begin; block < end; ++block) {
        double sum = 0.0;
        const int64_t last = std::min(count, (block + 1) * kBlock);
        for (int64_t i = block * kBlock; i < last; ++i) {
          sum += double{gradient[i]} * double{gradient[i]};
        }
        sums[static_cast<size_t>(block)] = sum;
      }
    });
    double sum = 0.0;
    for (const double each : sums) sum += each;
    total += sum * double{one->scale()} * double{one->scale()};
  }
  return std::sqrt(total);
}

}  // namespace paceline
