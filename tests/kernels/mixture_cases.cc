#include "tests/kernels/mixture_cases.h"

#include <fmt/format.h>

#include "tests/kernels/mixture_inputs.h"
#include "tests/kernels/op_inputs.h"

namespace paceline {
namespace {

constexpr uint64_t kRoutingSeed = 20251125;

struct RouteInputs {
  OwnedTensor logits, bias, experts, weights;

  // The experts, then their weights.
  std::vector<float> result() const {
    std::vector<float> all = to_vector(weights.view);
    for (int64_t i = 0; i < experts.view.num_elements(); ++i) {
      all.push_back(static_cast<float>(experts.view.elements<int32_t>()[i]));
    }
    return all;
  }
};

OpCase route_case(int64_t rows, const RoutingParams& params, bool has_bias, CaseSize size) {
  const bool is_sigmoid = params.score == ExpertScore::sigmoid;
  return {.name = fmt::format("route {} {} of {} in {} of {} groups, {}{}{}", rows,
                              params.experts_per_token, params.num_experts, params.groups_kept,
                              params.num_groups, is_sigmoid ? "sigmoid" : "softmax",
                              params.normalise ? " normalised" : "", has_bias ? " biased" : ""),
          .size = size,
          .tolerance = 1e-6,
          .bytes = static_cast<double>(rows * params.num_experts * 4),
          .make = [=](ThreadPool&, Memory& memory) {
            auto in = std::make_shared<RouteInputs>();
            in->logits =
                random_tensor(memory, DType::f32, {rows, params.num_logits()}, kRoutingSeed, 4.0f);
            in->bias = random_tensor(memory, DType::f32, {params.num_experts}, kRoutingSeed + 1,
                                     is_sigmoid ? 1.0f : 0.05f);
            in->experts = allocate_tensor(memory, DType::i32, {rows, params.num_slots()});
            in->weights = allocate_tensor(memory, DType::f32, {rows, params.num_slots()});
            const auto run = [in, params, has_bias](Backend& backend) {
              backend.route(in->logits.view, params, has_bias ? &in->bias.view : nullptr,
                            {in->experts.view, in->weights.view});
            };
            return OpInstance{run, [in] { return in->result(); }, in};
          }};
}

OpCase mix_case(const WeightType& type, const MixtureShape& shape, CaseSize size) {
  const double weights =
      static_cast<double>(std::min(shape.experts, shape.rows * shape.slots) * shape.width) *
      static_cast<double>(2 * shape.inputs + shape.outputs);
  const double products = static_cast<double>(shape.rows * shape.slots * shape.width) *
                          static_cast<double>(2 * shape.inputs + shape.outputs);
  const bool is_product = shape.rows * shape.slots >= 16 * shape.experts;
  return {.name = fmt::format("mix_experts {} {} rows, {} of {} {}x{}x{}", type.name, shape.rows,
                              shape.slots, shape.experts, shape.inputs, shape.width, shape.outputs),
          .size = size,
          .tolerance = 2e-5,
          .flops = is_product ? 2.0 * products : 0.0,
          .bytes = is_product ? 0.0 : weights * type.bytes(),
          .make = [type, shape](ThreadPool& threads, Memory& memory) {
            auto in = std::make_shared<MixtureInputs>(type, shape, threads, memory);
            const auto run = [in](Backend& backend) {
              backend.mix_experts(in->experts, in->routing(), in->x.view, in->out.view);
            };
            return OpInstance{run, [in] { return to_vector(in->out.view); }, in};
          }};
}

// Of every row's slots in a wider table, as a batch's first rows are. The output: as of route.
OpCase read_routing_case(int64_t rows, int64_t slots) {
  return {
      .name = fmt::format("read_routing {}x{}", rows, slots),
      .size = CaseSize::small,
      .bytes = static_cast<double>(rows * slots * 8),
      .make = [=](ThreadPool&, Memory& memory) {
        auto in = std::make_shared<RouteInputs>();
        in->experts = allocate_tensor(memory, DType::i32, {rows, slots + 3});
        for (int64_t i = 0; i < in->experts.view.num_elements(); ++i) {
          in->experts.view.elements<int32_t>()[i] = static_cast<int32_t>(i * 31 % 97);
        }
        in->weights = random_tensor(memory, DType::f32, {rows, slots + 3}, kRoutingSeed + 2, 1.0f);
        auto read = std::make_shared<HostRouting>();
        const auto run = [in, read, slots](Backend& backend) {
          *read = backend.read_routing({.experts = in->experts.view.slice(1, 0, slots),
                                        .weights = in->weights.view.slice(1, 0, slots)});
        };
        const auto result = [read] {
          std::vector<float> all = read->weights;
          all.insert(all.end(), read->experts.begin(), read->experts.end());
          return all;
        };
        return OpInstance{run, result, in};
      }};
}

void add_route_cases(std::vector<OpCase>& cases) {
  for (const ExpertScore score : {ExpertScore::softmax, ExpertScore::sigmoid}) {
    for (const SharedExpert shared :
         {SharedExpert::none, SharedExpert::plain, SharedExpert::gated}) {
      const bool normalise = shared != SharedExpert::plain;
      RoutingParams params{.num_experts = 8,
                           .experts_per_token = 2,
                           .score = score,
                           .normalise = normalise,
                           .scale = 2.5f,
                           .shared = shared};
      cases.push_back(route_case(7, params, false, CaseSize::small));
      cases.push_back(route_case(7, params, true, CaseSize::small));
      params.num_experts = 60;
      params.experts_per_token = 6;
      params.num_groups = 6;
      params.groups_kept = 2;
      cases.push_back(route_case(300, params, true, CaseSize::small));
    }
  }
  cases.push_back(
      route_case(3, {.num_experts = 1, .experts_per_token = 1}, false, CaseSize::small));
  cases.push_back(route_case(3, {.num_experts = 5, .experts_per_token = 5}, true, CaseSize::small));
  cases.push_back(
      route_case(512, {.num_experts = 128, .experts_per_token = 8}, false, CaseSize::large));
}

}  // namespace

std::vector<OpCase> mixture_cases() {
  std::vector<OpCase> cases;
  add_route_cases(cases);
  for (const auto& [rows, slots] : {std::pair{1, 1}, {1, 8}, {7, 3}, {300, 9}}) {
    cases.push_back(read_routing_case(rows, slots));
  }
  for (const WeightType& type : weight_types()) {
    // Roundings of inner columns to bfloat16 or 8 bits may differ from the reference's.
    if (type.dtype == DType::bf16) continue;
    for (const int64_t rows : {1, 5, 90}) {
      cases.push_back(mix_case(type, {.rows = rows}, CaseSize::small));
    }
    cases.push_back(mix_case(type,
                             {.rows = 70,
                              .experts = 3,
                              .slots = 3,
                              .inputs = 130,
                              .width = 300,
                              .last_width = 170,
                              .outputs = 33,
                              .has_bias = true},
                             CaseSize::small));
  }
  // The sizes of OLMoE-1B-7B.
  for (const WeightType& type : weight_types()) {
    if (type.name != "bfloat16" && type.name != "q4x32 offsets multiples" && type.name != "q8x32") {
      continue;
    }
    for (const int64_t rows : {1, 8, 512}) {
      cases.push_back(mix_case(type,
                               {.rows = rows,
                                .experts = 64,
                                .slots = 8,
                                .inputs = 2048,
                                .width = 1024,
                                .last_width = 1024,
                                .outputs = 2048},
                               CaseSize::large));
    }
  }
  return cases;
}

}  // namespace paceline
