#include "layers/laurel.h"

#include "kernels/backend.h"
#include "layers/load_context.h"

namespace paceline {

Laurel::Laurel(const LoadContext& context, const std::string& block, int64_t rank,
               int64_t hidden_size, const NormOptions& norm)
    : rank_(rank),
      left_(context, std::array{Projection{block + ".laurel.linear_left", rank}}, hidden_size,
            Linear::Bias::none),
      right_(context, std::array{Projection{block + ".laurel.linear_right", hidden_size}}, rank,
             Linear::Bias::none),
      norm_(context, block + ".laurel.post_laurel_norm", hidden_size, norm) {}

void Laurel::forward(Backend& backend, const Tensor& x, const BlockAdapters& adapters,
                     Scratch& scratch, const Tensor& out) const {
  const Scratch::Frame frame(scratch);
  const auto& [inner, added] = LaurelScratch(scratch, rank_, x.size(1), x.size(0));
  left_.forward(backend, x, inner);
  adapters.add(backend, BlockProduct::laurel_left, x, inner);
  right_.forward(backend, inner, added);
  adapters.add(backend, BlockProduct::laurel_right, inner, added);
  norm_.forward(backend, added, added);
  backend.add(x, added, out);
}

}  // namespace paceline
