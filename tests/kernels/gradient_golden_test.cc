// Gradients by PyTorch's autograd (tools/goldens/make_gradient_goldens.py), on the reference and on
// every instruction set.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "base/json.h"
#include "kernels/recurrent_gradients.h"
#include "tests/kernels/attention_pass.h"
#include "tests/kernels/chosen_isa.h"
#include "tests/kernels/op_inputs.h"

namespace paceline {
namespace {

Json read_gradient_goldens() {
  std::ifstream file(PACELINE_SOURCE_DIR "/tests/goldens/gradients/gradients.json");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  return parse_json(text, "gradients.json");
}

const Json& field(const Json& object, const char* key) {
  const Json* const value = object.find(key);
  EXPECT_NE(value, nullptr) << key;
  return *value;
}

template <class T>
std::vector<T> list_of(const Json& object, const char* key) {
  std::vector<T> list;
  for (const Json& element : field(object, key).as_array(key)) {
    list.push_back(static_cast<T>(element.as_double(key)));
  }
  return list;
}

class GradientGolden : public testing::Test {
 protected:
  // A tensor of the case's inputs or outputs, of its own memory.
  OwnedTensor tensor(const Json& golden, const char* side, const char* name) {
    const Json& stored = field(field(golden, side), name);
    const std::vector<int64_t> sizes = list_of<int64_t>(stored, "shape");
    const Extents shape = sizes.size() == 1   ? Extents{sizes[0]}
                          : sizes.size() == 2 ? Extents{sizes[0], sizes[1]}
                                              : Extents{sizes[0], sizes[1], sizes[2]};
    OwnedTensor tensor = allocate_tensor(memory_, DType::f32, shape);
    const std::vector<float> values = list_of<float>(stored, "values");
    EXPECT_EQ(std::ssize(values), tensor.view.num_elements());
    std::copy(values.begin(), values.end(), tensor.view.elements<float>());
    return tensor;
  }
  OwnedTensor input(const Json& golden, const char* name) { return tensor(golden, "inputs", name); }
  OwnedTensor zeros_like(const OwnedTensor& other) {
    return allocate_tensor(memory_, DType::f32, other.view.shape());
  }

  void expect_output(const Json& golden, const char* name, const Tensor& found) {
    const OwnedTensor expected = tensor(golden, "outputs", name);
    ASSERT_EQ(found.num_elements(), expected.view.num_elements()) << name;
    const std::vector<float> values = to_vector(found);
    for (size_t i = 0; i < values.size(); ++i) {
      const float wanted = expected.view.elements<float>()[i];
      EXPECT_NEAR(values[i], wanted, 1e-5f * (1.0f + std::abs(wanted))) << name << " " << i;
    }
  }

  void check_attention(Backend& backend, const Json& golden);
  void check_linear(Backend& backend, const Json& golden);
  void check_recurrent(RecurrentGradientOps& ops, const std::string& op, const Json& golden);
  void check_rows(GradientOps& ops, const std::string& op, const Json& golden);

  Memory memory_;
  ThreadPool threads_{2};
};

void GradientGolden::check_attention(Backend& backend, const Json& golden) {
  const Json& params = field(golden, "params");
  const OwnedTensor q = input(golden, "q"), k = input(golden, "k");
  AttentionPass pass({.heads = q.view.size(1),
                      .kv_heads = k.view.size(1),
                      .head_dim = q.view.size(2),
                      .soft_cap = static_cast<float>(field(params, "cap").as_double("cap")),
                      .window = field(params, "window").as_int("window"),
                      .lengths = list_of<int64_t>(params, "lengths")},
                     1, memory_);
  copy_elements(q.view, pass.q.view);
  copy_elements(k.view, pass.k.view);
  copy_elements(input(golden, "v").view, pass.v.view);
  copy_elements(input(golden, "dout").view, pass.dout.view);
  pass.forward(backend);
  pass.backward(backend);
  expect_output(golden, "out", pass.out.view);
  expect_output(golden, "log_sum_exp", pass.log_sum_exp.view);
  expect_output(golden, "dq", pass.dq.view);
  expect_output(golden, "dk", pass.dk.view);
  expect_output(golden, "dv", pass.dv.view);
}

void GradientGolden::check_linear(Backend& backend, const Json& golden) {
  const OwnedTensor x = input(golden, "x"), weights = input(golden, "w"), dy = input(golden, "dy");
  const PackedMatrix w = backend.pack_matrix(std::span(&weights.view, 1), DType::f32);
  const OwnedTensor dx = zeros_like(x), dw = zeros_like(weights);
  backend.gradients().matmul_input_gradient(dy.view, w, dx.view);
  backend.gradients().matmul_weight_gradient(dy.view, x.view, OperandRounding::none, dw.view);
  expect_output(golden, "dx", dx.view);
  expect_output(golden, "dw", dw.view);
}

void GradientGolden::check_rows(GradientOps& ops, const std::string& op, const Json& golden) {
  const Json& params = field(golden, "params");
  if (op == "rms_norm") {
    const OwnedTensor x = input(golden, "x"), weight = input(golden, "weight");
    const OwnedTensor dx = zeros_like(x), dweight = zeros_like(weight);
    ops.rms_norm_gradient({x.view, weight.view, input(golden, "dy").view},
                          static_cast<float>(field(params, "eps").as_double("eps")), dx.view,
                          &dweight.view);
    expect_output(golden, "dx", dx.view);
    expect_output(golden, "dweight", dweight.view);
  } else if (op == "layer_norm") {
    const OwnedTensor x = input(golden, "x"), weight = input(golden, "weight");
    const OwnedTensor dx = zeros_like(x), dweight = zeros_like(weight), dbias = zeros_like(weight);
    ops.layer_norm_gradient({x.view, weight.view, input(golden, "dy").view},
                            static_cast<float>(field(params, "eps").as_double("eps")), dx.view,
                            &dweight.view, &dbias.view);
    expect_output(golden, "dx", dx.view);
    expect_output(golden, "dweight", dweight.view);
    expect_output(golden, "dbias", dbias.view);
  } else if (op == "activation") {
    const OwnedTensor x = input(golden, "x"), dx = zeros_like(x);
    ops.activation_gradient(Activation::gelu_tanh, x.view, input(golden, "dout").view, dx.view);
    expect_output(golden, "dx", dx.view);
  } else if (op == "gate") {
    const std::string& name = field(params, "activation").as_string("activation");
    const Activation kind = name == "silu"        ? Activation::silu
                            : name == "gelu_tanh" ? Activation::gelu_tanh
                            : name == "gelu_erf"  ? Activation::gelu_erf
                                                  : Activation::clamped_swiglu;
    const OwnedTensor gate = input(golden, "gate"), up = input(golden, "up");
    ops.gated_activation_gradient(kind, {gate.view, up.view, input(golden, "dout").view}, gate.view,
                                  up.view);
    expect_output(golden, "dgate", gate.view);
    expect_output(golden, "dup", up.view);
  } else if (op == "cross_entropy") {
    const OwnedTensor logits = input(golden, "logits");
    std::vector<float> losses(static_cast<size_t>(logits.view.size(0)));
    ops.cross_entropy_gradient(list_of<int32_t>(params, "targets"),
                               list_of<float>(params, "weights"), logits.view, losses);
    expect_output(golden, "gradient", logits.view);
    expect_output(golden, "losses", Tensor(losses.data(), DType::f32, {std::ssize(losses)}));
  } else if (op == "embedding") {
    const OwnedTensor dtable = allocate_tensor(memory_, DType::f32, {9, 12});
    ops.embedding_gradient(list_of<int32_t>(params, "ids"),
                           static_cast<float>(field(params, "scale").as_double("scale")),
                           input(golden, "dout").view, dtable.view);
    expect_output(golden, "dtable", dtable.view);
  } else {
    ADD_FAILURE() << "an operation that this test doesn't run: " << op;
  }
}

std::vector<SequenceRows> sequences_of(const Json& golden) {
  std::vector<SequenceRows> sequences;
  int64_t first_row = 0;
  for (const int64_t length : list_of<int64_t>(field(golden, "params"), "lengths")) {
    sequences.push_back({.first_row = first_row, .num_rows = length});
    first_row += length;
  }
  return sequences;
}

void GradientGolden::check_recurrent(RecurrentGradientOps& ops, const std::string& op,
                                     const Json& golden) {
  const OwnedTensor dout = input(golden, "dout");
  if (op == "decay_gates") {
    const OwnedTensor dx = zeros_like(dout);
    ops.decay_gates_gradient({.x = input(golden, "x").view,
                              .bias = input(golden, "bias").view,
                              .rates = input(golden, "rates").view,
                              .dout = dout.view},
                             dx.view);
    return expect_output(golden, "dx", dx.view);
  }
  if (op == "short_convolution") {
    const OwnedTensor taps = input(golden, "taps"), dx = zeros_like(dout);
    ops.short_convolution_gradient({.channels = taps.view.size(1), .taps = taps.view.size(0)},
                                   taps.view, dout.view, sequences_of(golden), dx.view);
    return expect_output(golden, "dx", dx.view);
  }
  const OwnedTensor q = input(golden, "q"), k = input(golden, "k"), v = input(golden, "v");
  const OwnedTensor log_decay = input(golden, "log_decay"), beta = input(golden, "beta");
  const OwnedTensor dq = zeros_like(q), dk = zeros_like(k), dv = zeros_like(v);
  const OwnedTensor dlog_decay = zeros_like(beta), dbeta = zeros_like(beta);
  ops.delta_rule_gradient(
      {.key_heads = k.view.size(1),
       .value_heads = v.view.size(1),
       .key_dim = k.view.size(2),
       .value_dim = v.view.size(2),
       .corrects = field(field(golden, "params"), "corrects").as_int("corrects") != 0},
      {.forward =
           {.q = q.view, .k = k.view, .v = v.view, .log_decay = log_decay.view, .beta = beta.view},
       .dout = dout.view},
      sequences_of(golden),
      {.dq = dq.view,
       .dk = dk.view,
       .dv = dv.view,
       .dlog_decay = dlog_decay.view,
       .dbeta = dbeta.view});
  for (const auto& [name, gradient] : {std::pair{"dq", &dq},
                                       {"dk", &dk},
                                       {"dv", &dv},
                                       {"dlog_decay", &dlog_decay},
                                       {"dbeta", &dbeta}}) {
    expect_output(golden, name, gradient->view);
  }
}

TEST_F(GradientGolden, AllAreThoseOfAutograd) {
  std::vector<std::unique_ptr<Backend>> backends;
  backends.push_back(make_reference_backend());
  for (const Isa isa : isas_to_run()) backends.push_back(make_cpu_backend(isa, threads_, memory_));
  const Json goldens = read_gradient_goldens();
  ASSERT_EQ(goldens.as_array("goldens").size(), 16u);
  for (const auto& backend : backends) {
    for (const Json& golden : goldens.as_array("goldens")) {
      const std::string& op = field(golden, "op").as_string("op");
      SCOPED_TRACE(std::string(backend->name()) + " " + op);
      if (op == "attention") {
        check_attention(*backend, golden);
      } else if (op == "linear") {
        check_linear(*backend, golden);
      } else if (op == "delta_rule" || op == "short_convolution" || op == "decay_gates") {
        check_recurrent(*backend->recurrent_gradients(), op, golden);
      } else {
        check_rows(backend->gradients(), op, golden);
      }
    }
  }
}

}  // namespace
}  // namespace paceline
