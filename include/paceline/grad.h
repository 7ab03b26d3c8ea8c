// Derivatives of functions of arrays, and the optimizer that follows them.
//
//   auto [loss, others, gradients] = value_and_grad(loss_of)(weights);
//   optimizer.step(weights, gradients);
//
// Transformations nest: the function given to one may call another, on arrays that the outer one
// follows; jvp of a function that calls vjp gives Hessian-vector products. Arrays that a function
// captures are constants. Errors and threads: as paceline/array.h.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "paceline/array.h"

namespace paceline::arrays {

using Function = std::function<std::vector<Array>(const std::vector<Array>&)>;

// std::vector<Array>, or arrays by name.
template <class T>
concept ArrayCollection = std::same_as<T, std::vector<Array>> || std::same_as<T, NamedArrays>;

// A function of a collection whose result is an array, or several.
template <class F, class Inputs>
concept ArrayFunction = ArrayCollection<Inputs> && std::invocable<const F&, const Inputs&> &&
    (std::same_as<std::invoke_result_t<const F&, const Inputs&>, Array> ||
     std::same_as<std::invoke_result_t<const F&, const Inputs&>, std::vector<Array>>);

// What they all become.
template <class F>
requires ArrayFunction<F, std::vector<Array>> Function as_function(F function) {
  return [function = std::move(function)](const std::vector<Array>& inputs) {
    if constexpr (std::same_as<std::invoke_result_t<const F&, const std::vector<Array>&>, Array>) {
      return std::vector<Array>{function(inputs)};
    } else {
      return function(inputs);
    }
  };
}

struct Vjp {
  std::vector<Array> outputs;
  std::vector<Array> gradients;  // of the primals: the cotangents times the Jacobian
};
// Reverse mode. Errors: also if the cotangents don't fit the outputs, or a primal isn't of floats.
Vjp vjp_of(const Function& function, const std::vector<Array>& primals,
           const std::vector<Array>& cotangents);
template <class F>
requires ArrayFunction<F, std::vector<Array>> Vjp vjp(F function, const std::vector<Array>& primals,
                                                      const std::vector<Array>& cotangents) {
  return vjp_of(as_function(std::move(function)), primals, cotangents);
}

struct Jvp {
  std::vector<Array> outputs;
  std::vector<Array> tangents;  // of the outputs: the Jacobian times the tangents
};
// Forward mode. An empty tangent is zero.
Jvp jvp_of(const Function& function, const std::vector<Array>& primals,
           const std::vector<Array>& tangents);
template <class F>
requires ArrayFunction<F, std::vector<Array>> Jvp jvp(F function, const std::vector<Array>& primals,
                                                      const std::vector<Array>& tangents) {
  return jvp_of(as_function(std::move(function)), primals, tangents);
}

template <ArrayCollection Weights>
struct ValueAndGrad {
  Array value;                // the first output, a single element
  std::vector<Array> others;  // the other outputs
  Weights gradients;          // of the value, by the arguments
};
// Without argnums, of all arguments: a vector then has the order of the arguments, else that of
// argnums. Errors: also if the first output isn't a single float, or an argument not of floats.
ValueAndGrad<std::vector<Array>> value_and_grad_of(const Function& function,
                                                   const std::vector<Array>& arguments,
                                                   const std::vector<int>& argnums = {});

// What value_and_grad() returns: call it with the arguments, a vector or arrays by name.
template <class F>
class GradientFunction {
 public:
  GradientFunction(F function, std::vector<int> argnums)
      : function_(std::move(function)), argnums_(std::move(argnums)) {}

  template <ArrayCollection Inputs>
  requires ArrayFunction<F, Inputs> ValueAndGrad<Inputs>
  operator()(const Inputs& arguments) const {
    if constexpr (std::same_as<Inputs, std::vector<Array>>) {
      return value_and_grad_of(as_function(function_), arguments, argnums_);
    } else {
      if (!argnums_.empty()) {
        throw Error(ErrorCode::invalid,
                    "value_and_grad: argnums with arrays by name: expected a vector of arrays");
      }
      std::vector<Array> values;
      for (const auto& [name, array] : arguments) values.push_back(array);
      auto found = value_and_grad_of(as_function([&](const std::vector<Array>& inputs) {
                                       NamedArrays named = arguments;
                                       size_t i = 0;
                                       for (auto& [name, array] : named) array = inputs[i++];
                                       return function_(named);
                                     }),
                                     values);
      NamedArrays gradients;
      size_t i = 0;
      for (const auto& [name, array] : arguments) gradients[name] = found.gradients[i++];
      return {std::move(found.value), std::move(found.others), std::move(gradients)};
    }
  }

 private:
  F function_;
  std::vector<int> argnums_;
};

template <class F>
GradientFunction<F> value_and_grad(F function) {
  return {std::move(function), {}};
}
// By these arguments alone, of a function of a vector.
template <class F>
requires ArrayFunction<F, std::vector<Array>> GradientFunction<F> value_and_grad(
    F function, std::vector<int> argnums) {
  return {std::move(function), std::move(argnums)};
}

// The same function; a vjp keeps its inputs alone and recomputes it in the backward pass. All
// arrays whose gradient is wanted must be among its inputs: Error invalid where it captures one.
Function checkpoint_of(Function function);

// What checkpoint() returns: call it with a vector, or with as many arrays as the function takes.
template <class F>
class Checkpointed {
 public:
  explicit Checkpointed(F function) : function_(std::move(function)) {}

  template <std::same_as<std::vector<Array>> Inputs>
  requires ArrayFunction<F, Inputs>
  auto operator()(const Inputs& inputs) const {
    return result<std::invoke_result_t<const F&, const Inputs&>>(
        checkpoint_of(as_function(function_))(inputs));
  }
  template <std::same_as<Array>... More>
  requires std::invocable<const F&, const Array&, const More&...>
  auto operator()(const Array& first, const More&... more) const {
    using Result = std::invoke_result_t<const F&, const Array&, const More&...>;
    const auto call = [function = function_](const std::vector<Array>& inputs) {
      return [&]<size_t... i>(std::index_sequence<i...>) { return function(inputs[i]...); }
      (std::make_index_sequence<1 + sizeof...(More)>());
    };
    return result<Result>(checkpoint_of(as_function(call))({first, more...}));
  }

 private:
  template <class Result>
  static Result result(std::vector<Array> outputs) {
    if constexpr (std::same_as<Result, Array>) {
      return std::move(outputs.front());
    } else {
      return outputs;
    }
  }

  F function_;
};

template <class F>
Checkpointed<F> checkpoint(F function) {
  return Checkpointed<F>(std::move(function));
}

struct AdamWOptions {
  double learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0.01;
};

// AdamW (Loshchilov & Hutter, "Decoupled Weight Decay Regularization", ICLR 2019):
// m = b1 m + (1 - b1) g, v = b2 v + (1 - b2) g^2, with both corrected for their bias, then
// w = w (1 - lr wd) - lr m^ / (sqrt(v^) + eps). Of float32 weights. One thread at a time.
class AdamW {
 public:
  // Errors: invalid for a learning rate, epsilon or weight decay below 0, a beta outside [0, 1).
  explicit AdamW(const AdamWOptions& options = {});
  AdamW(AdamW&&) noexcept;
  AdamW& operator=(AdamW&&) noexcept;
  ~AdamW();

  // Replaces each weight by the next one; the first step decides how many there are, their names
  // and shapes. Elements that no other Array shares are written in place. Errors: invalid for
  // weights and gradients that don't fit each other or the first step; nothing has changed then.
  void step(std::vector<Array>& weights, const std::vector<Array>& gradients);
  void step(NamedArrays& weights, const NamedArrays& gradients);

  double learning_rate() const;
  void set_learning_rate(double learning_rate);
  int64_t num_steps() const;

  // What it keeps from step to step, to save and to restore: NAME.first_moment and
  // NAME.second_moment of each weight, a vector's by their indices. Errors of restore: invalid.
  NamedArrays state() const;
  void restore(const NamedArrays& state, int64_t num_steps);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace paceline::arrays
