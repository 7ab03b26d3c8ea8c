#include "kernels/cpu/expert_mixer.h"

#include <algorithm>

#include "kernels/backend.h"
#include "kernels/cpu/product_split.h"
#include "kernels/cpu/row_split.h"

namespace paceline {
namespace {

// Rows of an expert that are computed at a time: their inputs and outputs stay in the second-level
// cache.
constexpr int64_t kMostRows = 128;
constexpr int64_t kPiecesPerThread = 12;
// The reading of weights takes as long as the arithmetic of about this many rows.
constexpr int64_t kReadRows = 4;

int64_t in_lines(int64_t bytes) { return divide_up(bytes, kInputLine) * kInputLine; }

bool needs_up_rows(const GatedProduct& product) {
  return !product.up().takes_inputs_of(product.gate());
}

}  // namespace

size_t cpu_mixture_bytes(int64_t slots, int64_t widest, int64_t expert_width, int num_threads) {
  const auto element = static_cast<int64_t>(dtype_bytes(DType::bf16));
  const int64_t inputs =
      input_stride_of(widest * element) + input_stride_of(expert_width * element);
  const InnerColumns columns(kMostRows, kInnerColumns, divide_up(expert_width, kInnerColumns));
  return static_cast<size_t>(slots * inputs + columns.bytes(kMostRows) * num_threads);
}

ExpertMixer::ExpertMixer(const KernelTable& kernels, ThreadPool& threads, StreamTuner& tuner,
                         Memory& memory)
    : kernels_(kernels),
      threads_(threads),
      tuner_(tuner),
      gate_buffer_(memory),
      up_buffer_(memory),
      inner_buffer_(memory),
      down_buffer_(memory),
      thread_scratch_(memory) {}

void ExpertMixer::mix(std::span<const GatedMlpWeights> experts, const Routing& routing,
                      const Tensor& x, const Tensor& out) {
  num_rows_ = x.size(0);
  plan_blocks(experts, routing);
  plan_pieces();
  prepare_inputs(x);
  compute_inner_rows();
  prepare_inner_rows();
  add_outputs(out);
}

void ExpertMixer::plan_blocks(std::span<const GatedMlpWeights> experts, const Routing& routing) {
  sorted_.sort(routing, std::ssize(experts));
  blocks_.clear();
  for (const ExpertRows::Group& group : sorted_.groups()) {
    const GatedMlpWeights& weights = experts[static_cast<size_t>(group.expert)];
    const GatedProduct product(kernels_, weights);
    const int64_t rows = divide_up(group.count, divide_up(group.count, kMostRows));
    for (int64_t at = 0; at < group.count; at += rows) {
      blocks_.push_back({.product = product,
                         .weights = &weights,
                         .first_slot = group.first + at,
                         .num_rows = std::min(rows, group.count - at)});
    }
  }
}

// Pieces of about the same work.
void ExpertMixer::plan_pieces() {
  const auto unit_work = [](const Block& block) { return block.num_rows + kReadRows; };
  const auto num_units = [](const Block& block) {
    return divide_up(block.product.width(), block.product.unit());
  };
  int64_t work = 0;
  for (const Block& block : blocks_) work += num_units(block) * unit_work(block);
  const int64_t piece_work = divide_up(work, kPiecesPerThread * threads_.num_threads());
  pieces_.clear();
  for (const Block& block : blocks_) {
    const int64_t units = num_units(block);
    const int64_t most = std::clamp<int64_t>(piece_work / unit_work(block), 1, units);
    const int64_t piece_units = divide_up(units, divide_up(units, most));
    const InnerColumns columns(block.num_rows, block.product.unit(), piece_units);
    for (int64_t unit = 0; unit < units; unit += piece_units) {
      pieces_.push_back({.block = &block,
                         .first_unit = unit,
                         .last_unit = std::min(unit + piece_units, units),
                         .columns = columns});
    }
  }
}

bool ExpertMixer::shares_inputs() const {
  const CpuProduct& first = blocks_.front().product.gate();
  return num_rows_ == 1 && std::all_of(blocks_.begin(), blocks_.end(), [&](const Block& block) {
           return block.product.gate().takes_inputs_of(first) && !needs_up_rows(block.product);
         });
}

void ExpertMixer::prepare_inputs(const Tensor& x) {
  gate_rows_.is_shared = shares_inputs();
  gate_rows_.stride = up_rows_.stride = 0;
  for (const Block& block : blocks_) {
    const GatedProduct& product = block.product;
    gate_rows_.stride = std::max(gate_rows_.stride, product.gate().input_stride());
    if (!needs_up_rows(product)) continue;
    up_rows_.stride = std::max(up_rows_.stride, product.up().input_stride());
  }
  const int64_t slots = gate_rows_.is_shared ? 1 : sorted_.num_slots(), k = x.size(1);
  const int64_t blocks = gate_rows_.is_shared ? 1 : std::ssize(blocks_);
  gate_rows_.first = gate_buffer_.reserve_as<std::byte>(slots * gate_rows_.stride);
  up_rows_.first = up_buffer_.reserve_as<std::byte>(slots * up_rows_.stride);
  const int64_t grain = slots * k < kPieceElements ? blocks : 1;
  threads_.parallel_for(blocks, grain, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      const Block& block = blocks_[static_cast<size_t>(i)];
      const CpuProduct &gate = block.product.gate(), &up = block.product.up();
      const bool needs_up = needs_up_rows(block.product);
      for (int64_t r = 0; r < block.num_rows; ++r) {
        const auto slot = static_cast<size_t>(block.first_slot + r);
        const float* const row = x.row<float>(sorted_.slots()[slot].row);
        gate.prepare(row, 0, k, gate_rows_.of(block) + r * gate.input_stride());
        if (needs_up) up.prepare(row, 0, k, up_rows_.of(block) + r * up.input_stride());
      }
    }
  });
}

void ExpertMixer::compute_inner_rows() {
  int64_t scratch_bytes = 0, weight_bytes = 0, work = 0;
  inner_rows_.stride = 0;
  for (const Block& block : blocks_) {
    inner_rows_.stride = std::max(inner_rows_.stride, block.product.inner_stride());
    weight_bytes += block.product.weight_bytes();
    work += block.num_rows * 2 * block.product.width() * block.weights->gate.matrix->k;
  }
  for (const Piece& piece : pieces_) {
    const Block& block = *piece.block;
    scratch_bytes = std::max(scratch_bytes, in_lines(piece.columns.bytes(block.num_rows) +
                                                     block.product.scratch_bytes()));
  }
  inner_rows_.first = inner_buffer_.reserve_as<std::byte>(sorted_.num_slots() * inner_rows_.stride);
  auto* const scratch =
      thread_scratch_.reserve_as<std::byte>(threads_.num_threads() * scratch_bytes);
  const StreamTuner::Product timed(tuner_, *blocks_.front().weights->gate.matrix, weight_bytes,
                                   num_rows_, timed_panels(blocks_.front().product.gate()));
  const WeightStreams streams = streams_of(timed, *blocks_.front().weights->gate.matrix);
  threads_.parallel_for(
      std::ssize(pieces_), grain_of(std::ssize(pieces_), work),
      [&](int64_t begin, int64_t end, int thread_index) {
        for (int64_t i = begin; i < end; ++i) {
          const Piece& piece = pieces_[static_cast<size_t>(i)];
          const Block& block = *piece.block;
          block.product.run(
              {.gate_rows = gate_rows_.of(block),
               .up_rows = (needs_up_rows(block.product) ? up_rows_ : gate_rows_).of(block),
               .num_rows = block.num_rows,
               .first_unit = piece.first_unit,
               .last_unit = piece.last_unit,
               .inner_rows = inner_rows_.of(block),
               .columns = piece.columns,
               .scratch = scratch + thread_index * scratch_bytes,
               .streams = streams,
               .next_panels = panels_after(i)});
        }
      });
}

void ExpertMixer::prepare_inner_rows() {
  down_rows_.stride = 0;
  for (const Block& block : blocks_) {
    if (!block.product.has_plain_inner_rows()) continue;
    down_rows_.stride = std::max(down_rows_.stride, block.product.down().input_stride());
  }
  if (down_rows_.stride == 0) return;
  down_rows_.first = down_buffer_.reserve_as<std::byte>(sorted_.num_slots() * down_rows_.stride);
  threads_.parallel_for(std::ssize(blocks_), 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      const Block& block = blocks_[static_cast<size_t>(i)];
      if (!block.product.has_plain_inner_rows()) continue;
      const CpuProduct& down = block.product.down();
      for (int64_t r = 0; r < block.num_rows; ++r) {
        const std::byte* const numbers = inner_rows_.of(block) + r * block.product.inner_stride();
        down.prepare(reinterpret_cast<const float*>(numbers), 0, block.product.width(),
                     down_rows_.of(block) + r * down.input_stride());
      }
    }
  });
}

const void* ExpertMixer::panels_after(int64_t index) const {
  const auto next = static_cast<size_t>(index + 1);
  if (next == pieces_.size()) return nullptr;
  return pieces_[next].block->product.gate_panel(pieces_[next].first_unit);
}

// Each thread has some columns of all rows: it adds to them expert by expert, in ascending order.
void ExpertMixer::add_outputs(const Tensor& out) {
  const ProductSplit split(1, divide_up(out.size(1), kPanelWidth), threads_.num_threads());
  const int64_t width = split.piece_panels * kPanelWidth;
  int64_t scratch_bytes = 0, weight_bytes = 0, work = 0;
  for (const Block& block : blocks_) {
    const PackedMatrix& down = *block.weights->down.matrix;
    scratch_bytes = std::max(scratch_bytes, block.num_rows * width * int64_t{sizeof(float)} +
                                                in_lines(block.product.down().scratch_bytes()));
    weight_bytes += down.bytes();
    work += block.num_rows * down.n * down.k;
  }
  auto* const scratch =
      thread_scratch_.reserve_as<std::byte>(threads_.num_threads() * scratch_bytes);
  const StreamTuner::Product timed(tuner_, *blocks_.front().weights->down.matrix, weight_bytes,
                                   num_rows_, timed_panels(blocks_.front().product.down()));
  const WeightStreams streams = streams_of(timed, *blocks_.front().weights->down.matrix);
  const auto add_block = [&](const Block& block, const ProductSplit::Piece& piece,
                             const void* next_panels, std::byte* memory) {
    auto* const sums = reinterpret_cast<float*>(memory);
    const PackedColumns& columns = block.weights->down;
    block.product.down().multiply(
        {.inputs = down_rows_of(block),
         .num_rows = block.num_rows,
         .first_panel = piece.first_panel,
         .last_panel = piece.last_panel,
         .bias = columns.bias ? columns.bias->elements<float>() : nullptr,
         .out = {sums, width},
         .scratch = reinterpret_cast<std::byte*>(sums + block.num_rows * width),
         .streams = streams,
         .next_panels = next_panels});
    const int64_t first = piece.first_panel * kPanelWidth;
    const int64_t count = std::min(piece.last_panel * kPanelWidth, out.size(1)) - first;
    for (int64_t r = 0; r < block.num_rows; ++r) {
      const ExpertRows::Slot& slot = sorted_.slots()[static_cast<size_t>(block.first_slot + r)];
      kernels_.add_scaled(sums + r * width, slot.weight, count, out.row<float>(slot.row) + first);
    }
  };
  threads_.parallel_for(
      split.num_pieces(), grain_of(split.num_pieces(), work),
      [&](int64_t begin, int64_t end, int thread_index) {
        for (int64_t i = begin; i < end; ++i) {
          const ProductSplit::Piece piece = split.piece(i);
          const int64_t first = piece.first_panel * kPanelWidth;
          const int64_t last = std::min(piece.last_panel * kPanelWidth, out.size(1));
          for (int64_t r = 0; r < num_rows_; ++r) {
            std::fill(out.row<float>(r) + first, out.row<float>(r) + last, 0.0f);
          }
          for (size_t b = 0; b < blocks_.size(); ++b) {
            const bool is_last = b + 1 == blocks_.size();
            const CpuProduct& next = blocks_[is_last ? 0 : b + 1].product.down();
            const void* const next_panels =
                next.panel(is_last ? piece.last_panel : piece.first_panel);
            add_block(blocks_[b], piece, next_panels, scratch + thread_index * scratch_bytes);
          }
        }
      });
}

}  // namespace paceline
