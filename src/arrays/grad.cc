#include "paceline/grad.h"

#include <utility>

#include "arrays/array_state.h"
#include "autodiff/transforms.h"
#include "base/error.h"

namespace paceline::arrays {
namespace {

// The caller's function on the arrays of autodiff. What it returns is checked: it may be anything.
autodiff::Function inner(std::string_view transformation, const Function& function) {
  if (!function) {
    throw error_of(ErrorCode::invalid, "{}: no function: expected one of arrays", transformation);
  }
  const std::string where = std::string(transformation) + ": what the function returned";
  return [function, where](const autodiff::Arrays& inputs) {
    return arrays::inner(where, function(wrapped(inputs)));
  };
}

autodiff::Arrays inner_or_undefined(const std::vector<Array>& arrays) {
  autodiff::Arrays all;
  for (const Array& array : arrays) all.push_back(arrays::inner_or_undefined(array));
  return all;
}

}  // namespace

Vjp vjp_of(const Function& function, const std::vector<Array>& primals,
           const std::vector<Array>& cotangents) {
  const autodiff::Vjp found = autodiff::vjp(inner("vjp", function), arrays::inner("vjp", primals),
                                            inner_or_undefined(cotangents));
  return {.outputs = wrapped(found.outputs), .gradients = wrapped(found.gradients)};
}

Jvp jvp_of(const Function& function, const std::vector<Array>& primals,
           const std::vector<Array>& tangents) {
  const autodiff::Jvp found = autodiff::jvp(inner("jvp", function), arrays::inner("jvp", primals),
                                            inner_or_undefined(tangents));
  return {.outputs = wrapped(found.outputs), .tangents = wrapped(found.tangents)};
}

ValueAndGrad<std::vector<Array>> value_and_grad_of(const Function& function,
                                                   const std::vector<Array>& arguments,
                                                   const std::vector<int>& argnums) {
  constexpr std::string_view kName = "value_and_grad";
  std::vector<int> followed = argnums;
  for (size_t i = 0; argnums.empty() && i < arguments.size(); ++i) {
    followed.push_back(static_cast<int>(i));
  }
  const auto transformed = autodiff::value_and_grad(inner(kName, function), std::move(followed));
  const autodiff::ValueAndGrad found = transformed(arrays::inner(kName, arguments));
  return {.value = wrapped(found.value),
          .others = wrapped(found.others),
          .gradients = wrapped(found.gradients)};
}

Function checkpoint_of(Function function) {
  const autodiff::Function kept = autodiff::checkpoint(inner("checkpoint", function));
  return [kept](const std::vector<Array>& inputs) {
    return wrapped(kept(arrays::inner("checkpoint", inputs)));
  };
}

}  // namespace paceline::arrays
