// The matrices of a mixture's experts as PEFT stacks them: `target_parameters` adapts parameters
// [experts, out, in] with a pair of A [experts * rank, in] and B [out, rank * experts].
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "adapters/adapter.h"
#include "adapters/pair_collector.h"
#include "adapters/peft_config.h"

namespace paceline {

// Row e * rank + k of A and column k * experts + e of B belong to expert e (ParamWrapper in
// peft/tuners/lora/layer.py, 0.21). A module with several such parameters is wrapped once for each,
// the first one of the class innermost: with gate_up_proj and down_proj the first one's matrices
// are called "experts.base_layer.lora_A", the second one's "experts.lora_A".
class ExpertStackReader {
 public:
  // `where` is the file, for messages; `config` must outlive it.
  ExpertStackReader(std::string where, const PeftConfig& config)
      : where_(std::move(where)), config_(config) {}

  // Takes a tensor of "…experts" or "…experts.base_layer"; returns false for other modules.
  bool add(std::string_view module, LoraSide side, const StoredLoraMatrix& matrix);

  // Adds the matrices of each expert to `collector`. Throws Error corrupt naming the tensor when
  // the config chooses other parameters, or when shapes and rank don't fit; invalid when the base
  // has more experts.
  void add_experts(PairCollector& collector, const AdapterBase& base, MatchBudget& budget);

  // The parameter, as configs call it ("model.layers.0.mlp.experts.down_proj"), of a module that
  // was added to the collector; null for others.
  const std::string* parameter_of(std::string_view file_module) const;

 private:
  struct Sides {
    std::map<LoraSide, StoredLoraMatrix> matrices;
  };
  void add_stack(const std::string& parameter, LoraSide side, const StoredLoraMatrix& stack,
                 int64_t rank, PairCollector& collector, const AdapterBase& base);
  [[noreturn]] void fail(ErrorCode code, std::string_view tensor, std::string_view what) const;

  std::string where_;
  const PeftConfig& config_;
  // By the experts' name and the number of base_layer behind it.
  std::map<std::string, std::map<size_t, Sides>> stacks_;
  std::map<std::string, std::string, std::less<>> parameters_;  // by file module
};

// The pairs of experts by module without the expert ("layers.0.mlp.experts.down_proj"), each by
// expert, and the others in order.
struct ExpertPairs {
  std::map<std::string, std::vector<const LoraPair*>> by_module;
  std::vector<const LoraPair*> others;
};
ExpertPairs pairs_of_experts(const Adapter& adapter);

// Whether the pairs cover all experts, with one rank, scale and type.
bool are_all_experts(const std::vector<const LoraPair*>& pairs, const AdapterBase& base);

// The pairs of a parameter of one layer, by expert.
struct ExpertStack {
  std::string module;  // canonical, without the expert: "layers.0.mlp.experts.down_proj"
  std::vector<const LoraPair*> pairs;
  bool has_inner = false;   // the module's other parameter is wrapped inside
  bool is_inner = false;    // this one is wrapped inside
  bool alternates = false;  // rows of gate and up are written in turn

  std::vector<std::byte> matrix(LoraSide side) const;
  Extents shape(LoraSide side) const;
};

// How an adapter is written: stacks of experts, and pairs by module.
struct StackedAdapter {
  std::vector<ExpertStack> stacks;
  std::vector<const LoraPair*> pairs;
};
// gate_up_proj of all of a layer's experts are a stack, and so are their down_proj if gate_proj and
// up_proj have no pairs. Throws Error unsupported when pairs of gate_up_proj can't be stacked.
StackedAdapter stack_experts(const Adapter& adapter, const AdapterBase& base);

}  // namespace paceline
