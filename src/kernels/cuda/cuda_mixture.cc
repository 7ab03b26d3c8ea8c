// Mixtures of experts: the choice of each row's experts, and their weighted sum.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "kernels/cuda/code/gather.h"
#include "kernels/cuda/code/route.h"
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/operand_views.h"

namespace paceline::cuda {
namespace {

// The slots whose inputs and products are in memory at once.
constexpr int64_t kMostSlots = 8192;

// Slots sorted by their expert, those of one expert by row.
struct SortedSlots {
  std::vector<int32_t> rows;      // of the sorted slots
  std::vector<int32_t> places;    // of each row's slots among the sorted ones
  std::vector<int32_t> first_of;  // [experts + 1]
};

SortedSlots sort_slots(std::span<const int32_t> chosen, int64_t num_slots, int64_t num_experts) {
  SortedSlots sorted{std::vector<int32_t>(chosen.size()), std::vector<int32_t>(chosen.size()),
                     std::vector<int32_t>(static_cast<size_t>(num_experts) + 1)};
  for (const int32_t expert : chosen) {
    PL_CHECK(expert >= 0 && expert < num_experts, "mix_experts: no such expert");
    ++sorted.first_of[static_cast<size_t>(expert) + 1];
  }
  for (size_t i = 1; i < sorted.first_of.size(); ++i) sorted.first_of[i] += sorted.first_of[i - 1];
  std::vector<int32_t> next = sorted.first_of;
  for (size_t i = 0; i < chosen.size(); ++i) {
    const int32_t place = next[static_cast<size_t>(chosen[i])]++;
    sorted.places[i] = place;
    sorted.rows[static_cast<size_t>(place)] =
        static_cast<int32_t>(static_cast<int64_t>(i) / num_slots);
  }
  return sorted;
}

// The elements of a matrix, one row after another.
template <class T>
std::vector<T> read_rows(CudaDevice& device, const Tensor& x) {
  std::vector<T> elements(static_cast<size_t>(x.num_elements()));
  const auto width = static_cast<size_t>(x.size(1));
  if (x.is_contiguous()) {
    device.copy_from_device(elements.data(), x.raw(), x.size_bytes());
    return elements;
  }
  for (int64_t r = 0; r < x.size(0); ++r) {
    device.copy_from_device(elements.data() + static_cast<size_t>(r) * width, x.row<T>(r),
                            width * sizeof(T));
  }
  return elements;
}

// The rows of x of add_scaled_rows, sorted by the row that they are added to.
struct AddedRows {
  std::vector<int32_t> order;     // those of one row ascending
  std::vector<int32_t> first_of;  // of each target, and the end
  std::vector<int32_t> targets;   // ascending
};

AddedRows sort_added_rows(std::span<const int32_t> rows) {
  AddedRows sorted{.order = std::vector<int32_t>(rows.size()), .first_of = {}, .targets = {}};
  std::iota(sorted.order.begin(), sorted.order.end(), 0);
  std::ranges::stable_sort(sorted.order, {},
                           [rows](int32_t i) { return rows[static_cast<size_t>(i)]; });
  for (size_t k = 0; k < rows.size(); ++k) {
    const int32_t target = rows[static_cast<size_t>(sorted.order[k])];
    if (!sorted.targets.empty() && sorted.targets.back() == target) continue;
    sorted.first_of.push_back(static_cast<int32_t>(k));
    sorted.targets.push_back(target);
  }
  sorted.first_of.push_back(static_cast<int32_t>(rows.size()));
  return sorted;
}

}  // namespace

void CudaBackend::do_route(const Tensor& logits, const RoutingParams& params,
                           const Tensor* choice_bias, const Routing& out) {
  if (params.num_experts > kMostExperts) {
    throw Error(ErrorCode::unsupported,
                fmt::format("{}: a mixture of {} experts, expected at most {}; use --device cpu",
                            name_, params.num_experts, kMostExperts));
  }
  PL_CHECK(!params.groups_by_highest, "route: of models that don't run on GPUs");
  run<RouteRows>({static_cast<uint32_t>(logits.size(0))},
                 {.logits = const_rows_of(logits),
                  .choice_bias = choice_bias != nullptr ? choice_bias->elements<float>() : nullptr,
                  .experts = out.experts.elements<int32_t>(),
                  .experts_stride = out.experts.stride(0),
                  .weights = rows_of(out.weights),
                  .num_experts = params.num_experts,
                  .experts_per_token = params.experts_per_token,
                  .num_groups = params.num_groups,
                  .groups_kept = params.groups_kept,
                  .scale = params.scale,
                  .is_sigmoid = params.score == ExpertScore::sigmoid,
                  .normalises = params.normalise,
                  .has_shared_expert = params.shared != SharedExpert::none,
                  .has_shared_gate = params.shared == SharedExpert::gated});
}

HostRouting CudaBackend::do_read_routing(const Routing& routing) {
  return {.num_slots = routing.num_slots(),
          .experts = read_rows<int32_t>(device_, routing.experts),
          .weights = read_rows<float>(device_, routing.weights)};
}

void CudaBackend::do_add_scaled_rows(const Tensor& x, std::span<const int32_t> rows,
                                     std::span<const float> weights, const Tensor& out) {
  const AddedRows sorted = sort_added_rows(rows);
  const auto [order, first_of, targets, of_rows] =
      staging_.upload(sorted.order, sorted.first_of, sorted.targets, weights);
  run<AddScaledRows>(element_grid(std::ssize(sorted.targets), x.size(1)), {.x = const_rows_of(x),
                                                                           .order = order,
                                                                           .first_of = first_of,
                                                                           .targets = targets,
                                                                           .weights = of_rows,
                                                                           .out = rows_of(out),
                                                                           .width = x.size(1)});
}

void CudaBackend::do_mix_experts(std::span<const GatedMlpWeights> experts, const Routing& routing,
                                 const Tensor& x, const Tensor& out) {
  if (mix_slots(experts, routing, x, out)) return;
  const std::vector<int32_t> chosen = read_rows<int32_t>(device_, routing.experts);
  const int64_t slots = routing.num_slots(), rows = x.size(0);
  const int64_t rows_at_once = std::max<int64_t>(1, kMostSlots / std::max<int64_t>(1, slots));
  for (int64_t first = 0; first < rows; first += rows_at_once) {
    const int64_t end = std::min(first + rows_at_once, rows);
    const auto part = std::span(chosen).subspan(static_cast<size_t>(first * slots),
                                                static_cast<size_t>((end - first) * slots));
    mix_rows(experts, part, routing.weights.slice(0, first, end), x.slice(0, first, end),
             out.slice(0, first, end));
  }
}

void CudaBackend::mix_rows(std::span<const GatedMlpWeights> experts,
                           std::span<const int32_t> chosen, const Tensor& weights, const Tensor& x,
                           const Tensor& out) {
  const int64_t slots = weights.size(1), total = std::ssize(chosen);
  const SortedSlots sorted = sort_slots(chosen, slots, std::ssize(experts));
  const Tensor inputs = scratch(expert_inputs_, total, x.size(1));
  const Tensor products = scratch(expert_products_, total, out.size(1));
  const auto [rows, places] = staging_.upload(sorted.rows, sorted.places);
  run<GatherRows>(element_grid(total, x.size(1)),
                  {const_rows_of(x), rows, rows_of(inputs), x.size(1)});
  for (size_t i = 0; i < experts.size(); ++i) {
    const int64_t first = sorted.first_of[i], end = sorted.first_of[i + 1];
    if (first == end) continue;
    do_gated_mlp(experts[i], inputs.slice(0, first, end), products.slice(0, first, end));
  }
  run<CombineExperts>(element_grid(out.size(0), out.size(1)), {.products = const_rows_of(products),
                                                               .places = places,
                                                               .weights = const_rows_of(weights),
                                                               .num_slots = slots,
                                                               .out = rows_of(out),
                                                               .width = out.size(1)});
}

}  // namespace paceline::cuda
