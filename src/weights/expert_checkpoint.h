// ExpertCheckpoint presents the matrices and biases of stacked experts one by one.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weights/forwarding_checkpoint.h"

namespace paceline {

// Checkpoints hold the matrices of a layer's experts one by one, or as tensors [experts, rows, row
// length] under several names. This has only names such as
// "layers.0.mlp.experts.3.gate_proj.weight" [rows, row length]. Every other tensor passes through.
//
// So are stacks of the norms of each head ("q_layernorm.norms.weight" [heads, head_dim]), which
// checkpoints have one by one.
//
// Stacks with biases beside them are gpt-oss's: gate and up take turns in the rows of their common
// stack, and plain stacks are transposed, [experts, row length, rows].
class ExpertCheckpoint : public UnpackingCheckpoint {
 public:
  // All arguments must outlive it. Throws Error corrupt naming the tensor when a stack can't be
  // divided.
  ExpertCheckpoint(Checkpoint& source, Memory& memory, ThreadPool& threads);

  bool contains(std::string_view name) const override;
  std::optional<Extents> shape_of(std::string_view name) const override;
  // Matrices of quantised stacks, and what isn't contiguous, are copied to memory of its own.
  Tensor read_tensor(std::string_view name, const Extents& shape, ReadAs as) override;
  std::shared_ptr<const GroupedRows> read_grouped(std::string_view name,
                                                  const Extents& shape) override;
  // The pages of a stack go back when all its parts were released.
  void release(std::string_view name) override;

 private:
  enum class Layout : uint8_t { rows, columns, vectors };
  struct Stack {
    std::string name;
    Extents shape;
    Layout layout = Layout::rows;
    int64_t num_parts = 0;
    int64_t num_released = 0;

    int64_t rows_each() const;   // of an expert, of all projections in the stack
    int64_t row_length() const;  // 1 of vectors
  };
  // The rows first_row, first_row + step, ... of an expert.
  struct Part {
    Stack* stack = nullptr;
    int64_t expert = 0;
    int64_t first_row = 0;
    int64_t step = 1;
    int64_t num_rows = 0;
    bool was_released = false;

    Extents shape() const;
    // This part of the stack's tensor.
    Tensor view(const Tensor& stack_tensor) const;
  };

  void divide(const CheckpointEntry& entry);
  Part* find_part(std::string_view name);
  void check_shape(std::string_view name, const Part& part, const Extents& shape) const;

  std::vector<std::unique_ptr<Stack>> stacks_;
  std::map<std::string, Part, std::less<>> parts_;
};

}  // namespace paceline
