// Muon: momentum made orthogonal, for the matrices of blocks (Keller Jordan et al., "Muon: An
// optimizer for hidden layers in neural networks", 2024); AdamW for the other parameters.
#pragma once

#include <memory>
#include <vector>

#include "kernels/backend.h"
#include "train/adamw.h"

namespace paceline {

struct MuonOptions {
  double momentum = 0.95;
  double weight_decay = 0.01;
  DType dtype = DType::bf16;  // of the operands of products: float32 or bfloat16
  AdamWOptions adamw;         // of embedding, head, norms and biases
  double adamw_rate = 1.0;    // their learning rate is that of the matrices times this
};

// m = b m + (1 - b) g; u = orthogonalise((1 - b) g + b m), which is Nesterov's momentum; then
// p = p (1 - lr wd) - lr sqrt(max(1, n / k)) u for a matrix [n, k]. As torch.optim.Muon, whose
// learning rates are adjusted as "original".
class Muon final : public Optimizer {
 public:
  // `parameters` and the backend must outlive it.
  Muon(Backend& backend, const std::vector<TrainedParameter*>& parameters,
       const MuonOptions& options);

  std::vector<State> state() const override;

 private:
  void move(double learning_rate, double gradient_factor, ThreadPool& threads) override;
  void move_matrix(size_t index, double learning_rate, double gradient_factor, ThreadPool& threads);

  Backend& backend_;
  MuonOptions options_;
  std::vector<TrainedParameter*> matrices_;
  std::vector<OwnedTensor> momenta_;
  std::unique_ptr<AdamW> adamw_;  // of the others
};

}  // namespace paceline
