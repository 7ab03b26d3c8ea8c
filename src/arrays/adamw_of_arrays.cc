// AdamW on public arrays.
#include <fmt/format.h>

#include <atomic>
#include <cmath>
#include <map>
#include <utility>

#include "arrays/array_state.h"
#include "autodiff/lines.h"
#include "autodiff/shapes.h"
#include "base/error.h"
#include "paceline/grad.h"
#include "train/adamw_update.h"

namespace paceline::arrays {
namespace {

// One that the caller trains: its name for messages, and where it is.
struct Trained {
  std::string name;
  Array* weight;
  const Array* gradient;
};

struct Moments {
  autodiff::Array first;
  autodiff::Array second;
};

constexpr std::string_view kFirstMoment = ".first_moment";
constexpr std::string_view kSecondMoment = ".second_moment";

autodiff::Array new_moment(const Extents& shape) {
  return autodiff::Array(array_context(), paceline::DType::f32, shape);
}

autodiff::Array copy_of(const autodiff::Array& array) {
  autodiff::Array copy = new_moment(array.shape());
  copy_elements(array.tensor(), copy.writable());
  return copy;
}

void check_options(const AdamWOptions& options) {
  const auto is_share = [](double beta) { return beta >= 0.0 && beta < 1.0; };
  const auto is_size = [](double number) { return number >= 0.0 && std::isfinite(number); };
  if (is_size(options.learning_rate) && is_size(options.epsilon) && is_size(options.weight_decay) &&
      is_share(options.beta1) && is_share(options.beta2)) {
    return;
  }
  throw error_of(ErrorCode::invalid,
                 "AdamW: learning_rate {}, betas {} and {}, epsilon {}, weight_decay {}: expected "
                 "finite numbers from 0 on, betas below 1",
                 options.learning_rate, options.beta1, options.beta2, options.epsilon,
                 options.weight_decay);
}

// A constant float32 array.
const autodiff::Array& plain(std::string_view what, const std::string& name, const Array& array) {
  const std::string where = fmt::format("AdamW: {} {}", what, name);
  const autodiff::Array& found = inner(where, array);
  if (found.traced() == nullptr && found.dtype() == paceline::DType::f32) return found;
  throw error_of(ErrorCode::invalid, "{}: {} {}{}: expected float32 outside of transformations",
                 where, dtype_name(found.dtype()), to_string(found.shape()),
                 found.traced() != nullptr ? " that a transformation follows" : "");
}

// The elements of the weight alone, to be written: in place if nobody shares them.
Tensor owned_elements(Array& weight) {
  autodiff::Array& array = weight.state()->array;
  if (weight.state().use_count() == 1 && array.is_exclusive() && array.tensor().is_contiguous()) {
    std::atomic_thread_fence(std::memory_order_acquire);  // another thread may have let go of them
    return array.writable();
  }
  weight = wrapped(copy_of(array));
  return weight.state()->array.writable();
}

}  // namespace

struct AdamW::State {
  AdamWOptions options;
  int64_t num_steps = 0;
  std::map<std::string, Moments> moments;  // by weight; from the first step on

  // Whether the weights are those of the steps before, each with a gradient of its shape.
  void check(const std::vector<Trained>& all) const {
    if (!moments.empty() && moments.size() != all.size()) {
      throw error_of(ErrorCode::invalid, "AdamW: {} weights: expected the {} of the steps before",
                     all.size(), moments.size());
    }
    for (const Trained& trained : all) {
      const Extents& shape = plain("weight", trained.name, *trained.weight).shape();
      const Extents& found = plain("gradient", trained.name, *trained.gradient).shape();
      if (found != shape) {
        throw error_of(ErrorCode::invalid,
                       "AdamW: weight {} of {} with a gradient of {}: expected one shape",
                       trained.name, to_string(shape), to_string(found));
      }
      if (!moments.empty()) check_known(trained.name, shape);
    }
  }

  void check_known(const std::string& name, const Extents& shape) const {
    const auto known = moments.find(name);
    if (known != moments.end() && known->second.first.shape() == shape) return;
    throw error_of(ErrorCode::invalid, "AdamW: weight {} of {}: {} in the steps before", name,
                   to_string(shape),
                   known == moments.end() ? "it wasn't"
                                          : "it was of " + to_string(known->second.first.shape()));
  }

  void step(const std::vector<Trained>& all) {
    check(all);
    if (moments.empty()) {
      std::map<std::string, Moments> fresh;
      for (const Trained& trained : all) {
        const Extents& shape = trained.weight->state()->array.shape();
        fresh[trained.name] = {.first = new_moment(shape), .second = new_moment(shape)};
      }
      moments = std::move(fresh);
    }
    // Copies come first: where memory runs out nothing has changed.
    std::vector<AdamWUpdate::Arrays> arrays;
    std::vector<autodiff::Array> gradients;
    for (size_t i = 0; i < all.size(); ++i) {
      gradients.push_back(autodiff::make_contiguous(all[i].gradient->state()->array));
      Moments& kept = moments.at(all[i].name);
      arrays.push_back({.values = owned_elements(*all[i].weight).elements<float>(),
                        .gradients = gradients[i].tensor().elements<float>(),
                        .first_moments = kept.first.writable().elements<float>(),
                        .second_moments = kept.second.writable().elements<float>()});
    }
    const AdamWUpdate update({.beta1 = options.beta1,
                              .beta2 = options.beta2,
                              .epsilon = options.epsilon,
                              .weight_decay = options.weight_decay},
                             ++num_steps, options.learning_rate);
    for (size_t i = 0; i < all.size(); ++i) {
      autodiff::for_parts(
          array_context(), gradients[i].num_elements(), 1,
          [&](int64_t begin, int64_t end) { update.apply(arrays[i], 1.0f, begin, end); });
    }
  }
};

AdamW::AdamW(const AdamWOptions& options) : state_(std::make_unique<State>()) {
  check_options(options);
  state_->options = options;
}
AdamW::AdamW(AdamW&&) noexcept = default;
AdamW& AdamW::operator=(AdamW&&) noexcept = default;
AdamW::~AdamW() = default;

void AdamW::step(std::vector<Array>& weights, const std::vector<Array>& gradients) {
  if (weights.size() != gradients.size()) {
    throw error_of(ErrorCode::invalid, "AdamW: {} gradients of {} weights: expected one for each",
                   gradients.size(), weights.size());
  }
  std::vector<Trained> all;
  for (size_t i = 0; i < weights.size(); ++i) {
    all.push_back({std::to_string(i), &weights[i], &gradients[i]});
  }
  state_->step(all);
}

void AdamW::step(NamedArrays& weights, const NamedArrays& gradients) {
  for (const auto& [name, gradient] : gradients) {
    if (weights.contains(name)) continue;
    throw error_of(ErrorCode::invalid, "AdamW: a gradient of {}: expected a weight of that name",
                   name);
  }
  std::vector<Trained> all;
  for (auto& [name, weight] : weights) {
    const auto gradient = gradients.find(name);
    if (gradient == gradients.end()) {
      throw error_of(ErrorCode::invalid, "AdamW: weight {} without a gradient: expected one", name);
    }
    all.push_back({name, &weight, &gradient->second});
  }
  state_->step(all);
}

double AdamW::learning_rate() const { return state_->options.learning_rate; }

void AdamW::set_learning_rate(double learning_rate) {
  AdamWOptions options = state_->options;
  options.learning_rate = learning_rate;
  check_options(options);
  state_->options = options;
}

int64_t AdamW::num_steps() const { return state_->num_steps; }

NamedArrays AdamW::state() const {
  NamedArrays all;
  for (const auto& [name, moments] : state_->moments) {
    all[name + std::string(kFirstMoment)] = wrapped(copy_of(moments.first));
    all[name + std::string(kSecondMoment)] = wrapped(copy_of(moments.second));
  }
  return all;
}

void AdamW::restore(const NamedArrays& state, int64_t num_steps) {
  if (num_steps < 0) {
    throw error_of(ErrorCode::invalid, "AdamW: a state of {} steps: expected 0 or more", num_steps);
  }
  std::map<std::string, Moments> moments;
  for (const auto& [name, array] : state) {
    const bool is_first = name.ends_with(kFirstMoment);
    if (!is_first && !name.ends_with(kSecondMoment)) {
      throw error_of(ErrorCode::invalid, "AdamW: a state with {}: expected NAME{} and NAME{}", name,
                     kFirstMoment, kSecondMoment);
    }
    const size_t suffix = (is_first ? kFirstMoment : kSecondMoment).size();
    Moments& restored = moments[name.substr(0, name.size() - suffix)];
    (is_first ? restored.first : restored.second) = copy_of(plain("moment", name, array));
  }
  for (const auto& [name, restored] : moments) {
    if (restored.first.is_defined() && restored.second.is_defined() &&
        restored.first.shape() == restored.second.shape()) {
      continue;
    }
    throw error_of(ErrorCode::invalid, "AdamW: the state of {}: expected two moments of one shape",
                   name);
  }
  state_->moments = std::move(moments);
  state_->num_steps = num_steps;
}

}  // namespace paceline::arrays
