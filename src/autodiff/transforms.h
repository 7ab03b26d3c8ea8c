// Transformations of functions of arrays: reverse and forward differentiation, recomputation.
//
// They nest: the function given to one may call another, on arrays that the outer one follows.
// jvp of a function that calls vjp gives Hessian-vector products. Arrays that a function captures
// are constants of the transformation that calls it.
#pragma once

#include <functional>
#include <vector>

#include "autodiff/array.h"

namespace paceline::autodiff {

using Function = std::function<Arrays(const Arrays&)>;

struct Vjp {
  Arrays outputs;
  Arrays gradients;  // of the primals: the cotangents times the Jacobian
};
// Errors: invalid, if the cotangents don't fit the outputs, or a primal isn't a float array.
Vjp vjp(const Function& function, const Arrays& primals, const Arrays& cotangents);

struct Jvp {
  Arrays outputs;
  Arrays tangents;  // of the outputs: the Jacobian times the tangents
};
// Undefined tangents are zero. Errors: invalid, if the tangents don't fit the primals.
Jvp jvp(const Function& function, const Arrays& primals, const Arrays& tangents);

struct ValueAndGrad {
  Array value;       // the first output, a single element
  Arrays others;     // the other outputs
  Arrays gradients;  // of the value, by the arguments of argnums
};
// A function of the same arguments that also returns the gradients of its first output.
// Errors when called: invalid, if that isn't a single element, or an argnum isn't an argument.
std::function<ValueAndGrad(const Arrays&)> value_and_grad(Function function,
                                                          std::vector<int> argnums = {0});

// The same function; a vjp keeps its inputs alone and recomputes it in the backward pass. All
// arrays whose gradient is wanted must be among its inputs: Error invalid where the function
// captures one. Where it is recomputed, its inputs are traced, and nothing reads the elements of
// its outputs but their gradients: it may return arrays without elements.
Function checkpoint(Function function);

}  // namespace paceline::autodiff
