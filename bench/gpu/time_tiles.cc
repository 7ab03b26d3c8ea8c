#include <fmt/format.h>

#include <vector>

#include "bench/gpu/kernel_timer.h"
#include "bench/gpu/shaped_products.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/product_views.h"
#include "kernels/cuda/tile_launch.h"

namespace paceline {
namespace {

using namespace cuda;

// A product with weights in several places, which calls take in turn.
struct TiledProduct {
  std::vector<PackedMatrix> weights;
  ProductSize size;
  TileParams params;
};

// Memory for the sums of segments, made once.
class SplitMemory {
 public:
  explicit SplitMemory(KernelTimer& timer)
      : timer_(timer),
        sums_(timer.memory(), size_t{256} << 20),
        arrivals_(timer.memory(), 1 << 20) {
    timer.device().clear(arrivals_.get(), arrivals_.size_bytes());
  }

  MakeSplitSums make() {
    return [this](int64_t tiles, int64_t segments, int64_t pieces) {
      const auto bytes = static_cast<size_t>(tiles * segments * pieces) * sizeof(Floats4);
      if (bytes > sums_.size_bytes()) sums_ = Buffer(timer_.memory(), bytes);
      return SplitSums{.num_segments = static_cast<uint32_t>(segments),
                       .partials = static_cast<Floats4*>(sums_.get()),
                       .arrivals = static_cast<uint32_t*>(arrivals_.get())};
    };
  }

 private:
  KernelTimer& timer_;
  Buffer sums_;
  Buffer arrivals_;
};

void time_choices(KernelTimer& timer, std::string_view name, const TiledProduct& product,
                  const TileDevice& on, SplitMemory& split) {
  const std::optional<TileChoice> chosen = choose_tile(product.size, on);
  const auto count = [](int64_t a, int64_t b) { return static_cast<double>(a * b); };
  const OperationCost cost{.bytes = 2 * count(product.size.columns, product.size.inputs) +
                                    4 * count(product.size.rows, product.size.columns),
                           .flops = 2 * count(product.size.rows, product.size.inputs) *
                                    static_cast<double>(product.size.columns)};
  for (const TileChoice& choice : possible_tiles(product.size, on)) {
    timer.time(fmt::format("{} x {}: {} x {}{}{}", name, product.size.rows, choice.size.columns,
                           choice.size.rows, choice.splits_inputs ? " split" : "",
                           choice == chosen ? ", chosen" : ""),
               cost, [&](int64_t i) {
                 TileParams params = product.params;
                 const auto turn = static_cast<size_t>(i) % product.weights.size();
                 params.columns[0].weights = plain_panels(product.weights[turn]);
                 launch_tiles<false>(timer.device(), params, choice, on, split.make());
               });
  }
}

void time_product(KernelTimer& timer, const ModelShape& shape, const ShapedProduct& product,
                  const TileDevice& on, SplitMemory& split) {
  TiledProduct tiled;
  tiled.weights.push_back(pack_quick_weights(timer.backend(), product.n, product.k));
  rotate_weights(timer, tiled.weights);
  for (const int64_t rows : {16, 32, 64, 128, 256, 512, 2048}) {
    if (timer.is_over() || (timer.is_small() && rows > 64)) return;
    const int64_t panels = divide_up(rows, kPanelWidth), stages = num_stages(product.k);
    const Buffer inputs(timer.memory(), static_cast<size_t>(panels * stages * kStageBytes));
    const OwnedTensor x = quick_rows(timer.backend(), rows, product.k);
    const OwnedTensor out = allocate_tensor(timer.memory(), DType::f32, {rows, product.n});
    tiled.size = {.rows = rows, .columns = product.n, .inputs = product.k};
    const InputPanels of_rows{static_cast<uint32_t*>(inputs.get()), static_cast<uint32_t>(stages),
                              static_cast<uint32_t>(panels)};
    launch<PackInputs>(timer.device(),
                       {static_cast<uint32_t>(panels), static_cast<uint32_t>(stages)},
                       {.x = const_rows_of(x.view),
                        .num_rows = rows,
                        .width = static_cast<uint32_t>(product.k),
                        .is_aligned = can_copy_inputs(x.view),
                        .out = of_rows});
    tiled.params = {.columns = {{.weights = plain_panels(tiled.weights.front())}},
                    .num_columns = product.n,
                    .x = of_rows,
                    .num_rows = rows,
                    .out = rows_of(out.view)};
    time_choices(timer, fmt::format("{} {}", shape.name, product.name), tiled, on, split);
    timer.device().synchronize();
  }
}

}  // namespace

void time_tiles(KernelTimer& timer) {
  const CudaDeviceInfo info = timer.device().info();
  const TileDevice on{.multiprocessors = info.multiprocessors,
                      .shared_bytes = int64_t{info.shared_bytes},
                      .can_take_registers = info.capability >= 90};
  SplitMemory split(timer);
  const ModelShape& shape = timer.is_small() ? kSmallShape : kMeasuredShapes[0];
  for (const ShapedProduct& product : products_of(shape)) {
    if (product.name != "head") time_product(timer, shape, product, on, split);
  }
}

}  // namespace paceline
