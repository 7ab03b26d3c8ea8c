#include "train/optimizer.h"

#include <algorithm>
#include <cmath>

#include "base/divide_up.h"
#include "train/sum_of_squares.h"

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
        const int64_t first = block * kBlock;
        sums[static_cast<size_t>(block)] =
            sum_of_squares(gradient + first, std::min(kBlock, count - first));
      }
    });
    double sum = 0.0;
    for (const double each : sums) sum += each;
    total += sum * double{one->scale()} * double{one->scale()};
  }
  return std::sqrt(total);
}

}  // namespace paceline
