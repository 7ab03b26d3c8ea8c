// AdapterWeights is a LoRA adapter packed for a decoder's products.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <variant>
#include <vector>

#include "kernels/operands.h"

namespace paceline {

class Backend;
class DecodeSlots;

// The products of a block that adapters may change. Those of scans are within Mamba 1; that of the
// router and those around latent columns are a mixture's; `queries` is that of the queries'
// latents; output_gates and decays are those of a delta net's latents; the last four are those of a
// layer's input (LayerInputGate) and of Laurel.
enum class BlockProduct : uint8_t {
  qkv,
  output,
  gate_up,
  down,
  router,
  scan_parts,
  scan_steps,
  to_latent,
  from_latent,
  queries,
  output_gates,
  decays,
  input_gate,
  input_projection,
  laurel_left,
  laurel_right
};
constexpr size_t kNumBlockProducts = 16;

// Of the products of all blocks: DecodeSlots count them.
constexpr int64_t product_index(size_t block, BlockProduct product) {
  return static_cast<int64_t>(block * kNumBlockProducts + static_cast<size_t>(product));
}

// The pair of one projection: y[:, first_column..] += (x a^T) b^T.
struct AdapterPair {
  int64_t first_column = 0;         // of the product
  const PackedMatrix* a = nullptr;  // [ranks, k]; pairs of one product may be stacked in it
  int64_t first_rank = 0;
  const PackedMatrix* b = nullptr;  // [columns, rank]; it holds the scale
};

// By BlockProduct, each sorted by column; no pairs where the adapter leaves a product as it is.
using BlockPairs = std::array<std::vector<AdapterPair>, kNumBlockProducts>;

// Immutable once made, and read by batches. The backend that packed it must outlive it.
struct AdapterWeights {
  std::vector<std::unique_ptr<const PackedMatrix>> matrices;  // what the pairs point to
  std::vector<BlockPairs> blocks;                             // one a layer
  // By layer and expert of its mixture (Mixture::experts): the pairs of gate_up and down. No
  // experts where the adapter changes none of the layer's.
  std::vector<std::vector<BlockPairs>> experts;

  // Of the packed matrices.
  size_t size_bytes() const;
  // The most that rows of `a` of one product fill in whole panels (cpu_lora_bytes).
  int64_t max_ranks() const;
};

// Rows [first_row, first_row + num_rows) of a batch are computed with the adapter of this number.
struct AdapterRows {
  int64_t first_row = 0;
  int64_t num_rows = 0;
  int32_t adapter = 0;
  bool operator==(const AdapterRows&) const = default;
};
// Adapters by number.
using AdapterTable = std::span<const AdapterWeights* const>;

// Sorted, none twice.
struct AdaptedRows {
  std::span<const AdapterRows> rows;
  AdapterTable table;

  const AdapterWeights& weights_of(const AdapterRows& one) const {
    return *table[static_cast<size_t>(one.adapter)];
  }
};

// Decode slots add the adapters that they were loaded with.
using AdapterSlots = std::reference_wrapper<DecodeSlots>;

// Is shown what the products read: rows of inputs, in the memory of the backend. It changes
// nothing. Those of experts that are chosen aren't shown.
class InputObserver {
 public:
  virtual ~InputObserver() = default;
  virtual void observe(size_t block, BlockProduct product, const Tensor& x) = 0;
  virtual void observe_head(const Tensor& x) = 0;
};
using ObservedInputs = std::reference_wrapper<InputObserver>;

using BatchAdapters = std::variant<AdaptedRows, AdapterSlots, ObservedInputs>;

// None with decode slots or an observer.
AdaptedRows adapted_rows(const BatchAdapters& adapters);

// The adapters of a batch in one block.
class BlockAdapters {
 public:
  // `segments` is memory to use; it and what the adapters refer to must outlive it.
  BlockAdapters(const BatchAdapters& adapters, size_t block, std::vector<LoraSegment>& segments)
      : adapters_(adapters), block_(block), segments_(segments) {}

  // Whether a row's product is changed, or observed. With decode slots any may be.
  bool change(BlockProduct product) const;
  // The segments of a product.
  void list(BlockProduct product, std::vector<LoraSegment>& segments) const;
  bool change_experts() const;
  // out += the pairs' products with x, in the rows and columns that they change; or shows x.
  void add(Backend& backend, BlockProduct product, const Tensor& x, const Tensor& out) const;
  // Appends the segments of an expert's product. Its inputs are the batch's rows `batch_rows`,
  // ascending, from row `first_row` of the product on.
  void list_expert(size_t expert, BlockProduct product, std::span<const int32_t> batch_rows,
                   int64_t first_row, std::vector<LoraSegment>& segments) const;

 private:
  std::span<const AdapterPair> pairs(const AdapterWeights& weights, BlockProduct product) const {
    return weights.blocks[block_][static_cast<size_t>(product)];
  }

  BatchAdapters adapters_;
  size_t block_;
  std::vector<LoraSegment>& segments_;
};

}  // namespace paceline
