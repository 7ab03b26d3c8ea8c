// Operation is a function of arrays with its derivatives: the extension point of the module.
//
// A new operation is a subclass with constants as members, and a function that checks nothing
// itself and calls apply_operation(). `forward` sees arrays without traces: it checks shapes
// (throwing Error invalid, see shape_error.h), reads Array::tensor() and writes a new array; this
// is where a kernel is called. The rules `vjp` and `jvp` are written with operations on arrays, so
// that transformations nest: their arrays may be traced by an outer transformation. A rule that
// calls a kernel on Array::tensor() must refuse traced arrays (Error unsupported), or the outer
// transformation would take its result for a constant.
#pragma once

#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "autodiff/array.h"

namespace paceline::autodiff {

// Which inputs need a gradient.
using Wanted = std::vector<bool>;

// What `forward` leaves for the rule of the backward pass.
struct Forward {
  Array output;
  Arrays saved{};  // such as the log-sum-exp of an attention
};

// One application, as its vjp rule sees it.
struct Application {
  const Arrays& inputs;  // without elements where vjp_reads_input says so
  const Array& output;   // likewise
  const Arrays& saved;
  const Wanted& wanted;
};

class Operation {
 public:
  virtual ~Operation() = default;

  virtual std::string_view name() const = 0;

  virtual Array forward(const Arrays& inputs) const = 0;

  // The same, saving what makes the backward pass cheaper. Called instead of forward when a vjp
  // records the operation and no outer transformation follows its inputs; else nothing is saved,
  // and the rule has to do without.
  virtual Forward forward_and_save(const Arrays& inputs, const Wanted& wanted) const;

  // The gradient of each wanted input, of its shape (undefined: zero), given that of the output.
  // Gradients are rounded to the input's dtype by the caller.
  virtual Arrays vjp(const Array& cotangent, const Application& application) const = 0;

  // The tangent of the output; undefined tangents are zero, at least one is defined.
  virtual Array jvp(const Arrays& tangents, const Arrays& inputs, const Array& output) const = 0;

  // Whether the vjp rule reads the elements of an input, or of the output. The tape keeps only
  // those that are read.
  virtual bool vjp_reads_input(size_t index, const Wanted& wanted) const;
  virtual bool vjp_reads_output() const { return true; }
};

// Applies an operation under all transformations that follow the inputs.
Array apply_operation(const std::shared_ptr<const Operation>& operation, const Arrays& inputs);

template <class Op, class... Constants>
Array apply_new(const Arrays& inputs, Constants&&... constants) {
  return apply_operation(std::make_shared<const Op>(std::forward<Constants>(constants)...), inputs);
}

// The gradients of an operation with one input.
inline Arrays one_gradient(Array gradient) { return {std::move(gradient)}; }

}  // namespace paceline::autodiff
