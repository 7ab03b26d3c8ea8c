#include "adapters/expert_stacks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "adapters/expert_names.h"
#include "weights/quoted_name.h"

namespace paceline {
namespace {

// The parameters of transformers' classes of experts, in their order.
constexpr std::array<std::string_view, 2> kParameters = {"gate_up_proj", "down_proj"};

// Ends the name of the first.
constexpr std::string_view kBothPart = ".gate_up_proj";

bool ends_with_name(std::string_view text, std::string_view name) {
  return text.ends_with(name) &&
         (text.size() == name.size() || text[text.size() - name.size() - 1] == '.');
}

bool stacks_with(const LoraPair& one, const LoraPair& other) {
  return one.rank() == other.rank() && one.scale == other.scale && one.alpha == other.alpha &&
         one.a.view.dtype() == other.a.view.dtype() && one.b.view.dtype() == other.b.view.dtype();
}

int64_t expert_of(const LoraPair& pair) {
  return split_expert_part(split_layer_module(pair.module)->part)->expert;
}

}  // namespace

void ExpertStackReader::fail(ErrorCode code, std::string_view tensor, std::string_view what) const {
  throw Error(code, fmt::format("{}: tensor {} {}", where_, quoted_name(tensor), what));
}

bool ExpertStackReader::add(std::string_view module, LoraSide side,
                            const StoredLoraMatrix& matrix) {
  constexpr std::string_view kWrapped = ".base_layer";
  size_t depth = 0;
  for (; module.ends_with(kWrapped); ++depth) module.remove_suffix(kWrapped.size());
  if (!ends_with_name(module, "experts")) return false;
  const auto [at, is_new] = stacks_[std::string(module)][depth].matrices.emplace(side, matrix);
  if (!is_new) {
    fail(ErrorCode::corrupt, matrix.tensor,
         fmt::format("and {} are the same matrix", quoted_name(at->second.tensor)));
  }
  return true;
}

void ExpertStackReader::add_experts(PairCollector& collector, const AdapterBase& base,
                                    MatchBudget& budget) {
  for (const auto& [module, depths] : stacks_) {
    const std::string& first = depths.begin()->second.matrices.begin()->second.tensor;
    std::vector<std::string> parameters;
    for (const std::string_view one : kParameters) {
      const std::string parameter = fmt::format("{}.{}", module, one);
      if (config_.targets_parameter(parameter)) parameters.push_back(parameter);
    }
    if (parameters.size() != depths.size() || depths.rbegin()->first + 1 != depths.size()) {
      fail(
          ErrorCode::corrupt, first,
          fmt::format("is one of the matrices of {} parameters of {}, but target_parameters of the "
                      "config chooses {} of gate_up_proj and down_proj",
                      depths.size(), module, parameters.size()));
    }
    for (const auto& [depth, sides] : depths) {
      const std::string& parameter = parameters[depths.size() - 1 - depth];
      const int64_t rank = config_.rank_of(parameter, budget);
      for (const auto& [side, stack] : sides.matrices) {
        add_stack(parameter, side, stack, rank, collector, base);
      }
    }
  }
}

void ExpertStackReader::add_stack(const std::string& parameter, LoraSide side,
                                  const StoredLoraMatrix& stack, int64_t rank,
                                  PairCollector& collector, const AdapterBase& base) {
  const bool is_a = side == LoraSide::a;
  const bool is_matrix = stack.shape.rank() == 2 && is_float(stack.dtype) && !stack.bytes.empty();
  const int64_t ranks = !is_matrix ? 0 : stack.shape[is_a ? 0 : 1];
  if (ranks == 0 || ranks % rank != 0) {
    fail(ErrorCode::corrupt, stack.tensor,
         fmt::format("has dtype {} and shape {}, expected floats and, for each expert, {} {}",
                     dtype_name(stack.dtype), to_string(stack.shape), rank,
                     is_a ? "rows" : "columns"));
  }
  const int64_t experts = ranks / rank;
  const size_t dot = parameter.rfind('.');
  const auto module_of = [&](int64_t expert) {
    return fmt::format("{}.{}{}", parameter.substr(0, dot), expert, parameter.substr(dot));
  };
  if (base.is_known() && find_module(base, module_of(experts))) {
    fail(ErrorCode::invalid, stack.tensor,
         fmt::format("has shape {}: {} experts of rank {}, but the base model has more; was the "
                     "adapter trained on another model?",
                     to_string(stack.shape), experts, rank));
  }
  const size_t element = dtype_bytes(stack.dtype);
  for (int64_t expert = 0; expert < experts; ++expert) {
    StoredLoraMatrix one = stack;
    const auto index = static_cast<size_t>(expert);
    if (is_a) {
      one.shape = {rank, stack.shape[1]};
      const size_t bytes = stack.bytes.size() / static_cast<size_t>(experts);
      one.bytes = stack.bytes.subspan(index * bytes, bytes);
    } else {
      one.shape = {stack.shape[0], rank};
      one.bytes = stack.bytes.subspan(index * element);
      one.element_step = experts;
      one.alternates = base.expert_names.alternates && parameter.ends_with(kBothPart);
    }
    const std::string module = module_of(expert);
    parameters_.emplace(module, parameter);
    collector.add(module, side, std::move(one));
  }
}

const std::string* ExpertStackReader::parameter_of(std::string_view file_module) const {
  const auto at = parameters_.find(file_module);
  return at == parameters_.end() ? nullptr : &at->second;
}

Extents ExpertStack::shape(LoraSide side) const {
  const auto experts = std::ssize(pairs);
  const LoraPair& pair = *pairs.front();
  if (side == LoraSide::a) return {experts * pair.rank(), pair.in()};
  return {pair.out(), pair.rank() * experts};
}

std::vector<std::byte> ExpertStack::matrix(LoraSide side) const {
  std::vector<std::byte> all;
  if (side == LoraSide::a) {
    for (const LoraPair* const pair : pairs) {
      const auto bytes = pair->a.view.bytes();
      all.insert(all.end(), bytes.begin(), bytes.end());
    }
    return all;
  }
  const size_t experts = pairs.size(), size = pairs.front()->b.view.size_bytes();
  const size_t element = dtype_bytes(pairs.front()->b.view.dtype());
  all.resize(experts * size);
  const int64_t rows = pairs.front()->out(), rank = pairs.front()->rank();
  for (size_t expert = 0; expert < experts; ++expert) {
    const auto bytes = pairs[expert]->b.view.bytes();
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t from = alternates ? separated_row(row, rows) : row;
      for (int64_t k = 0; k < rank; ++k) {
        const auto to = static_cast<size_t>(row * rank + k) * experts + expert;
        std::memcpy(all.data() + to * element,
                    bytes.data() + static_cast<size_t>(from * rank + k) * element, element);
      }
    }
  }
  return all;
}

bool are_all_experts(const std::vector<const LoraPair*>& pairs, const AdapterBase& base) {
  for (size_t i = 0; i < pairs.size(); ++i) {
    if (expert_of(*pairs[i]) != static_cast<int64_t>(i)) return false;
    if (!stacks_with(*pairs[i], *pairs[0])) return false;
  }
  if (!base.is_known()) return true;
  const auto layer = *split_layer_module(pairs[0]->module);
  return !base.size_of(fmt::format("layers.{}.{}.{}.{}", layer.layer, kExpertsPart, pairs.size(),
                                   split_expert_part(layer.part)->projection));
}

ExpertPairs pairs_of_experts(const Adapter& adapter) {
  ExpertPairs result;
  for (const LoraPair& pair : adapter.pairs()) {
    const auto module = without_expert(pair.module);
    module ? result.by_module[*module].push_back(&pair) : result.others.push_back(&pair);
  }
  for (auto& [module, pairs] : result.by_module) {
    std::ranges::sort(pairs, {}, [](const LoraPair* pair) { return expert_of(*pair); });
  }
  return result;
}

StackedAdapter stack_experts(const Adapter& adapter, const AdapterBase& base) {
  ExpertPairs experts = pairs_of_experts(adapter);
  const auto& stacks = experts.by_module;
  StackedAdapter result{.stacks = {}, .pairs = std::move(experts.others)};
  for (const auto& [module, pairs] : stacks) {
    const std::string block = module.substr(0, module.rfind('.'));
    const bool is_both = module.ends_with(kBothPart), is_down = module.ends_with(".down_proj");
    const bool is_single =
        stacks.contains(block + ".gate_proj") || stacks.contains(block + ".up_proj");
    const bool is_stack = (is_both || is_down) && !is_single && are_all_experts(pairs, base);
    const bool has_both = stacks.contains(block + ".gate_up_proj");
    if (!is_stack && has_both) {
      throw Error(
          ErrorCode::unsupported,
          fmt::format("{}: PEFT's format has gate_up_proj and down_proj of all experts of a "
                      "layer with one rank and one scale each, or gate_proj, up_proj and "
                      "down_proj of any; found others beside gate_up_proj",
                      module));
    }
    if (is_stack) {
      result.stacks.push_back({.module = module,
                               .pairs = pairs,
                               .has_inner = is_down && has_both,
                               .is_inner = is_both && stacks.contains(block + ".down_proj"),
                               .alternates = is_both && base.expert_names.alternates});
    } else {
      result.pairs.insert(result.pairs.end(), pairs.begin(), pairs.end());
    }
  }
  std::ranges::sort(result.pairs, {}, &LoraPair::module);
  return result;
}

}  // namespace paceline
