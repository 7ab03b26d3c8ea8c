#include "layers/alternating_updates.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "kernels/backend.h"
#include "layers/load_context.h"

namespace paceline {
namespace {

// Small products that decide about whole streams aren't rounded, as those of routers.
Linear load_exact(const LoadContext& context, const std::string& name, int64_t in, int64_t out) {
  LoadContext exact = context;
  exact.weight_dtype = DType::f32;
  exact.activations.reset();
  exact.quantizes = false;
  return Linear(exact, std::array{Projection{name, out}}, in, Linear::Bias::none);
}

// router_norm divides by the number of elements, too.
Norm load_altup_norm(const LoadContext& context, const std::string& name, int64_t width,
                     const NormOptions& options) {
  std::vector<float> weight = load_numbers(context, name + ".weight", width);
  for (float& element : weight) element /= static_cast<float>(width);
  return Norm(write_vector(context.backend, weight), options);
}

std::vector<int32_t> all_rows(int64_t count) {
  std::vector<int32_t> rows(static_cast<size_t>(count));
  std::iota(rows.begin(), rows.end(), 0);
  return rows;
}

// The root mean square of each row, in double.                     x contiguous [rows, width]
std::vector<double> magnitudes(Backend& backend, const Tensor& x) {
  std::vector<float> staging;
  const std::span<const float> elements = backend.read(x, staging);
  const auto width = static_cast<size_t>(x.size(1));
  std::vector<double> found;
  for (size_t first = 0; first < elements.size(); first += width) {
    double sum = 0.0;
    for (const float element : elements.subspan(first, width)) {
      sum += double{element} * double{element};
    }
    found.push_back(sum / static_cast<double>(width));
  }
  for (double& mean : found) mean = std::sqrt(mean);
  return found;
}

// Gives each row of x the magnitude that `of` has there.
void set_magnitudes(Backend& backend, std::span<const double> of, const Tensor& x) {
  constexpr double kLeastSquare = 1e-5;
  const std::vector<double> found = magnitudes(backend, x);
  std::vector<float> factors;
  for (size_t row = 0; row < found.size(); ++row) {
    const double least = std::sqrt(kLeastSquare);
    factors.push_back(static_cast<float>(of[row] / (found[row] < least ? least : found[row])));
  }
  backend.scale(x, factors, x);
}

}  // namespace

Streams take_streams(Scratch& scratch, const AltUpConfig& config, int64_t rows,
                     int64_t hidden_size) {
  Streams streams;
  for (int64_t i = 0; i < config.num_streams; ++i) {
    streams.push_back(scratch.take(DType::f32, {rows, hidden_size}));  // contiguous: magnitudes()
  }
  return streams;
}

AltUpScratch::AltUpScratch(Scratch& scratch, const AltUpConfig& config, int64_t rows,
                           int64_t hidden_size)
    : normed(scratch.take_rows(rows, hidden_size)),
      modalities(scratch.take_rows(rows, config.num_streams)),
      factors(scratch.take(DType::f32, {rows, config.num_streams * config.num_streams})) {}

AltUp::AltUp(const LoadContext& context, const std::string& block, const AltUpConfig& config,
             int64_t hidden_size, const NormOptions& norm)
    : config_(config),
      hidden_size_(hidden_size),
      router_(
          load_exact(context, block + ".altup.modality_router", hidden_size, config.num_streams)),
      prediction_(load_exact(context, block + ".altup.prediction_coefs", config.num_streams,
                             config.num_streams * config.num_streams)),
      correction_(load_exact(context, block + ".altup.correction_coefs", config.num_streams,
                             config.num_streams)),
      router_norm_(load_altup_norm(context, block + ".altup.router_norm", hidden_size, norm)),
      correction_scale_(load_vector(context, block + ".altup.correct_output_scale", hidden_size)) {}

std::vector<float> AltUp::make_factors(Backend& backend, const Tensor& x,
                                       const Linear& coefficients, Scratch& scratch) const {
  const Scratch::Frame frame(scratch);
  const auto& [normed, modalities, all_factors] =
      AltUpScratch(scratch, config_, x.size(0), hidden_size_);
  router_norm_.forward(backend, x, normed);
  router_.forward(backend, normed, modalities);
  backend.soft_cap(modalities, 1.0f, modalities);  // tanh
  const int64_t count = coefficients.out_features();
  const Tensor factors = all_factors.as_strided({x.size(0), count}, {count, 1});
  coefficients.forward(backend, modalities, factors);
  std::vector<float> staging;
  const std::span<const float> read = backend.read(factors, staging);
  return {read.begin(), read.end()};
}

namespace {

// Every count-th of the factors, from `first` on: one of each row.
std::vector<float> column_of(std::span<const float> factors, size_t count, size_t first) {
  std::vector<float> column;
  for (size_t i = first; i < factors.size(); i += count) column.push_back(factors[i]);
  return column;
}

}  // namespace

void AltUp::predict(Backend& backend, std::span<const Tensor> streams, Scratch& scratch,
                    std::span<const Tensor> predicted) const {
  const auto& active = streams[static_cast<size_t>(config_.active)];
  const std::vector<float> factors = make_factors(backend, active, prediction_, scratch);
  const std::vector<int32_t> rows = all_rows(active.size(0));
  const size_t count = streams.size();
  for (size_t i = 0; i < count; ++i) {
    backend.clear(predicted[i]);
    for (size_t j = 0; j < count; ++j) {
      backend.add_scaled_rows(streams[j], rows, column_of(factors, count * count, i * count + j),
                              predicted[i]);
    }
    backend.add(predicted[i], streams[i], predicted[i]);
  }
}

void AltUp::correct(Backend& backend, const Tensor& computed, Scratch& scratch,
                    std::span<const Tensor> predicted) const {
  std::vector<float> factors = make_factors(backend, computed, correction_, scratch);
  for (float& factor : factors) factor += 1.0f;
  const Scratch::Frame frame(scratch);
  const Tensor change = scratch.take_rows(computed.size(0), hidden_size_);
  backend.scale(predicted[static_cast<size_t>(config_.active)], std::array{-1.0f}, change);
  backend.add(computed, change, change);
  const std::vector<int32_t> rows = all_rows(computed.size(0));
  for (size_t i = 0; i < predicted.size(); ++i) {
    backend.add_scaled_rows(change, rows, column_of(factors, predicted.size(), i), predicted[i]);
  }
}

void AltUp::scale_corrected(Backend& backend, const Tensor& x, const Tensor& out) const {
  if (!config_.scales_corrected) return backend.scale(x, std::array{1.0f}, out);
  backend.scale_columns(x, correction_scale_.view, out);
}

AltUpEnds::AltUpEnds(const LoadContext& context, const AltUpConfig& config, int64_t hidden_size) {
  const auto load = [&](const std::string& name) {
    return Linear(context, std::array{Projection{name, hidden_size}}, hidden_size,
                  Linear::Bias::none);
  };
  for (int64_t i = 0; i + 1 < config.num_streams; ++i) {
    projections_.push_back(load("altup_projections." + std::to_string(i)));
    unembeddings_.push_back(load("altup_unembed_projections." + std::to_string(i)));
  }
}

void AltUpEnds::begin(Backend& backend, const Tensor& embedded,
                      std::span<const Tensor> streams) const {
  backend.scale(embedded, std::array{1.0f}, streams[0]);
  const std::vector<double> magnitude = magnitudes(backend, streams[0]);
  for (size_t i = 1; i < streams.size(); ++i) {
    projections_[i - 1].forward(backend, streams[0], streams[i]);
    set_magnitudes(backend, magnitude, streams[i]);
  }
}

void AltUpEnds::end(Backend& backend, std::span<const Tensor> streams, const Tensor& out) const {
  const std::vector<double> magnitude = magnitudes(backend, streams[0]);
  backend.scale(streams[0], std::array{1.0f}, out);
  for (size_t i = 1; i < streams.size(); ++i) {
    unembeddings_[i - 1].forward(backend, streams[i], streams[0]);
    set_magnitudes(backend, magnitude, streams[0]);
    backend.add(out, streams[0], out);
  }
  backend.scale(out, std::array{1.0f / static_cast<float>(streams.size())}, out);
}

}  // namespace paceline
