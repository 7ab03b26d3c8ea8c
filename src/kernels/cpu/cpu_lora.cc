// Products with pairs of narrow matrices, those of all segments of a batch together.
#include <algorithm>

#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/product_split.h"

namespace paceline {
namespace {

// The prepared inputs of a piece stay in the second-level cache.
constexpr int64_t kPreparedBytes = 256 * 1024;
constexpr int64_t kLeastBlockRows = 8;
constexpr int64_t kMostBlockRows = 64;
// A piece of less work, in multiply-adds, isn't worth taking. The outputs of a row and panel cost
// about as much as kOutputDepth steps along K.
constexpr int64_t kPieceWork = 65536;
constexpr int64_t kOutputDepth = 32;
// Panels are short when K is a rank: many are read side by side.
constexpr int64_t kShortPanels = 8;

int64_t panel_work(const LoraPiece& piece) {
  return piece.num_rows * kPanelWidth * (piece.matrix->k + kOutputDepth);
}

int64_t most_block_rows(int64_t input_stride) {
  return std::clamp(kPreparedBytes / input_stride, kLeastBlockRows, kMostBlockRows);
}

int64_t work_of(const std::vector<LoraPiece>& pieces) {
  int64_t work = 0;
  for (const LoraPiece& piece : pieces) {
    work += panel_work(piece) * (piece.last_panel - piece.first_panel);
  }
  return work;
}

}  // namespace

size_t cpu_lora_bytes(int64_t rows, int64_t ranks, int64_t widest, int num_threads) {
  const int64_t inner = rows * ranks * int64_t{sizeof(float)};
  const int64_t stride = input_stride_of(widest * int64_t{sizeof(float)});
  return static_cast<size_t>(inner +
                             num_threads * std::max(kPreparedBytes, kLeastBlockRows * stride));
}

void CpuBackend::cut_lora_product(const LoraPiece& whole, std::vector<LoraPiece>& pieces) const {
  const int64_t most_rows = most_block_rows(CpuProduct(kernels_, *whole.matrix).input_stride());
  const int64_t block_rows = divide_up(whole.num_rows, divide_up(whole.num_rows, most_rows));
  for (int64_t row = 0; row < whole.num_rows; row += block_rows) {
    LoraPiece piece = whole;
    piece.first_row += row;
    piece.num_rows = std::min(block_rows, whole.num_rows - row);
    piece.inner += row * whole.inner_stride;
    const int64_t panels = divide_up(kPieceWork, panel_work(piece));
    for (int64_t panel = 0; panel < whole.matrix->num_panels(); panel += panels) {
      piece.first_panel = panel;
      piece.last_panel = std::min(panel + panels, whole.matrix->num_panels());
      pieces.push_back(piece);
    }
  }
}

template <class Body>
void CpuBackend::run_lora_pieces(const std::vector<LoraPiece>& pieces, Body&& body) {
  int64_t scratch_bytes = 0;
  for (const LoraPiece& piece : pieces) {
    const int64_t stride = CpuProduct(kernels_, *piece.matrix).input_stride();
    scratch_bytes = std::max(scratch_bytes, piece.num_rows * stride);
  }
  auto* const scratch =
      thread_scratch_.reserve_as<std::byte>(threads_.num_threads() * scratch_bytes);
  const int64_t count = std::ssize(pieces);
  const int64_t grain = work_of(pieces) < kPieceWork ? count : 1;
  threads_.parallel_for(count, grain, [&](int64_t begin, int64_t end, int thread_index) {
    for (int64_t i = begin; i < end; ++i) {
      body(pieces[static_cast<size_t>(i)], scratch + thread_index * scratch_bytes);
    }
  });
}

// Two parallel regions, whatever the number of segments: all inner products, then all outputs.
// Each piece prepares its own rows: there are few, or they are short.
void CpuBackend::do_add_lora(const Tensor& x, std::span<const LoraSegment> segments,
                             const Tensor& out) {
  shrink_pieces_.clear();
  expand_pieces_.clear();
  int64_t inner_floats = 0;
  const LoraSegment* stacked = nullptr;  // the first segment with these rows and this `a`
  LoraPiece shrink;
  for (const LoraSegment& segment : segments) {
    if (stacked == nullptr || stacked->a != segment.a || stacked->first_row != segment.first_row) {
      stacked = &segment;
      shrink = {.matrix = segment.a,
                .first_row = segment.first_row,
                .num_rows = segment.num_rows,
                .inner = inner_floats,
                .inner_stride = segment.a->num_panels() * kPanelWidth};
      inner_floats += shrink.num_rows * shrink.inner_stride;
      cut_lora_product(shrink, shrink_pieces_);
    }
    LoraPiece expand = shrink;
    expand.matrix = segment.b;
    expand.inner += segment.first_rank;
    expand.first_column = segment.first_column;
    cut_lora_product(expand, expand_pieces_);
  }
  auto* const inner = lora_inner_.reserve_as<float>(inner_floats);

  run_lora_pieces(shrink_pieces_, [&](const LoraPiece& piece, std::byte* rows) {
    const CpuProduct product(kernels_, *piece.matrix);
    for (int64_t r = 0; r < piece.num_rows; ++r) {
      product.prepare(x.row<float>(piece.first_row + r), 0, piece.matrix->k,
                      rows + r * product.input_stride());
    }
    product.multiply(
        {.inputs = rows,
         .num_rows = piece.num_rows,
         .first_panel = piece.first_panel,
         .last_panel = piece.last_panel,
         .out = {inner + piece.inner + piece.first_panel * kPanelWidth, piece.inner_stride}});
  });
  // A rank has one segment of K, so that a product that adds has the bits of one and an add.
  run_lora_pieces(expand_pieces_, [&](const LoraPiece& piece, std::byte* rows) {
    const CpuProduct product(kernels_, *piece.matrix);
    for (int64_t r = 0; r < piece.num_rows; ++r) {
      product.prepare(inner + piece.inner + r * piece.inner_stride, 0, piece.matrix->k,
                      rows + r * product.input_stride());
    }
    float* const to = out.row<float>(piece.first_row) + piece.first_column;
    product.multiply({.inputs = rows,
                      .num_rows = piece.num_rows,
                      .first_panel = piece.first_panel,
                      .last_panel = piece.last_panel,
                      .out = {to + piece.first_panel * kPanelWidth, out.stride(0)},
                      .streams = {.panels = kShortPanels},
                      .adds = true});
  });
}

}  // namespace paceline
