#include "cli/bench_measure.h"

#include <algorithm>

namespace paceline {
namespace {

constexpr double kSampleSeconds = 0.06;

struct Sample {
  double tokens_per_s = 0;
  double work_per_s = 0;
  double roofline_per_s = 0;
  double vdpbf16ps_flops_per_s = 0;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

BenchResult medians(std::string test, int64_t tokens, const std::vector<Sample>& samples) {
  const auto of = [&](auto&& value) {
    std::vector<double> values;
    for (const Sample& sample : samples) values.push_back(value(sample));
    return median(std::move(values));
  };
  return {.test = std::move(test),
          .tokens = tokens,
          .tokens_per_s = of([](const Sample& s) { return s.tokens_per_s; }),
          .work_per_s = of([](const Sample& s) { return s.work_per_s; }),
          .roofline_per_s = of([](const Sample& s) { return s.roofline_per_s; }),
          .fraction = of([](const Sample& s) { return s.work_per_s / s.roofline_per_s; }),
          .vdpbf16ps_flops_per_s = of([](const Sample& s) { return s.vdpbf16ps_flops_per_s; }),
          .vdpbf16ps_fraction = of([](const Sample& s) {
            return s.vdpbf16ps_flops_per_s > 0 ? s.work_per_s / s.vdpbf16ps_flops_per_s : 0;
          })};
}

// Any ids do: the work doesn't depend on them.
std::vector<int32_t> some_ids(int64_t count, int64_t vocab_size) {
  constexpr int64_t kStep = 7919;
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < count; ++i) {
    ids.push_back(static_cast<int32_t>((i + 1) * kStep % vocab_size));
  }
  return ids;
}

Metrics run(LLM& llm, int64_t prompt_tokens, int64_t output_tokens) {
  GenerateOptions options;
  options.max_tokens = output_tokens;
  options.temperature = 0.0f;
  options.ignore_eos = true;
  llm.generate(some_ids(prompt_tokens, llm.model_info().vocab_size), options).completion();
  return llm.metrics();
}

}  // namespace

RooflineSampler::RooflineSampler(Isa isa, int num_threads) : isa_(isa), threads_(num_threads) {}

Roofline RooflineSampler::sample() {
  return measure_roofline(isa_, threads_, memory_, kSampleSeconds);
}

double RooflineSampler::sample_vdpbf16ps() {
  return measure_vdpbf16ps_flops_per_s(threads_, kSampleSeconds);
}

std::vector<BenchResult> measure_model(LLM& llm, const ModelCosts& costs, const BenchSizes& sizes,
                                       RooflineSampler& roofline) {
  const ModelInfo model = llm.model_info();
  const double flops_per_token = 2.0 * static_cast<double>(costs.block_weights);
  const auto bytes_per_token = static_cast<double>(model.decode_bytes);
  const bool is_bf16 = !model.integer_products && model.weight_format != dtype_name(DType::f32) &&
                       model.weight_format != dtype_name(DType::f16);
  const auto flops_rate = [&](const Roofline& r) {
    if (model.integer_products) return r.int8_ops_per_s;
    return is_bf16 ? r.bf16_flops_per_s : r.f32_flops_per_s;
  };
  // The machine's state changes within minutes: each run counts against the samples around it.
  std::vector<Sample> prefill, decode;
  run(llm, sizes.prompt_tokens, 2);
  for (int64_t i = 0; i < sizes.repetitions; ++i) {
    const Roofline before = roofline.sample();
    const double prefill_rate = run(llm, sizes.prompt_tokens, 1).prefill_tokens_per_second;
    const Roofline between = roofline.sample();
    // The first token comes out of the prefill.
    const double decode_rate = run(llm, 1, sizes.output_tokens + 1).decode_tokens_per_second;
    const Roofline after = roofline.sample();
    prefill.push_back({.tokens_per_s = prefill_rate,
                       .work_per_s = prefill_rate * flops_per_token,
                       .roofline_per_s = (flops_rate(before) + flops_rate(between)) / 2,
                       .vdpbf16ps_flops_per_s = is_bf16 ? roofline.sample_vdpbf16ps() : 0});
    decode.push_back({.tokens_per_s = decode_rate,
                      .work_per_s = decode_rate * bytes_per_token,
                      .roofline_per_s = (between.read_bytes_per_s + after.read_bytes_per_s) / 2});
  }
  return {medians("prefill", sizes.prompt_tokens, prefill),
          medians("decode", sizes.output_tokens, decode)};
}

}  // namespace paceline
