// Muon against its definition in float64, PyTorch's, and itself on other threads.
#include "train/muon.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/json_cursor.h"
#include "base/mapped_file.h"
#include "base/random.h"
#include "tests/kernels/chosen_isa.h"
#include "tests/models/test_model.h"
#include "tests/source_path.h"
#include "train/newton_schulz.h"
#include "train/trained_matrix.h"

namespace paceline::testing {
namespace {

// The gradient that tools/goldens/make_train_goldens.py computes, too.
void write_gradient(int64_t step, const Tensor& gradient) {
  for (int64_t i = 0; i < gradient.size(0); ++i) {
    for (int64_t k = 0; k < gradient.size(1); ++k) {
      const int64_t place = (step * 5 + i * 7 + k * 11 + i * k * 3) % 32;
      gradient.row<float>(i)[k] = static_cast<float>(place) / 32.0f - 0.5f;
    }
  }
}

std::vector<float> values_after(Backend& backend, ThreadPool& threads, const Extents& shape,
                                DType dtype, const JsonCursor& golden) {
  TrainedMatrix matrix("p", shape, DType::f32, 1.0f, backend);
  auto* const values = matrix.value().elements<float>();
  const int64_t count = matrix.value().num_elements();
  for (int64_t i = 0; i < count; ++i) values[i] = static_cast<float>(i) / 64.0f - 0.25f;
  Muon optimizer(backend, {&matrix},
                 {.momentum = golden.at("momentum").number(),
                  .weight_decay = golden.at("weight_decay").number(),
                  .dtype = dtype});
  for (int64_t step = 0; step < golden.at("steps").integer(); ++step) {
    write_gradient(step, matrix.gradient());
    optimizer.step(golden.at("lr").number(), 1.0, threads);
  }
  return {values, values + count};
}

TEST(Muon, ItsStepsAreThoseOfTheDefinitionAndPyTorchs) {
  const std::string file = source_path("tests/goldens/train/muon.json");
  const Json json = parse_json(read_text_file(file, 1 << 20), file);
  const JsonCursor golden(json, file);
  ThreadPool threads(2);
  Memory memory;
  for (const Isa isa : isas_to_run()) {
    const auto backend = make_cpu_backend(isa, threads, memory);
    for (const auto& [name, shape] : {std::pair{"wide", Extents{4, 10}}, {"tall", Extents{6, 3}}}) {
      SCOPED_TRACE(std::string(isa_name(isa)) + " " + name);
      const auto exact = golden.at(name).at("float64").items();
      const auto torch = golden.at(name).at("bfloat16").items();
      const auto in_floats = values_after(*backend, threads, shape, DType::f32, golden);
      const auto in_bfloats = values_after(*backend, threads, shape, DType::bf16, golden);
      for (size_t i = 0; i < in_floats.size(); ++i) {
        EXPECT_NEAR(in_floats[i], exact[i].number(), 1e-5) << i;
        EXPECT_NEAR(in_bfloats[i], torch[i].number(), 1e-2) << i;
      }
    }
  }
}

TEST(Muon, OrthogonaliseHasTheSameBitsOnAnyThreads) {
  for (const Isa isa : isas_to_run()) {
    for (const Extents& shape : {Extents{70, 300}, Extents{384, 96}}) {
      for (const DType dtype : {DType::f32, DType::bf16}) {
        const auto result = [&](int num_threads) {
          ThreadPool threads(num_threads);
          Memory memory;
          const auto backend = make_cpu_backend(isa, threads, memory);
          const OwnedTensor x = allocate_tensor(memory, DType::f32, shape);
          std::vector<float> values;
          for (uint64_t i = 0; i < static_cast<uint64_t>(x.view.num_elements()); ++i) {
            values.push_back(static_cast<float>(uniform_draw(5, i)) - 0.5f);
          }
          backend->write(values, x.view);
          orthogonalise(*backend, threads, dtype, x.view);
          const auto* const begin = x.view.elements<float>();
          return std::vector<float>(begin, begin + x.view.num_elements());
        };
        const std::vector<float> one = result(1);
        for (const int num_threads : {2, 3}) EXPECT_TRUE(same_bits(result(num_threads), one));
        // Rows or columns, whichever are fewer, have a length near 1.
        double squares = 0;
        for (const float each : one) squares += double{each} * double{each};
        EXPECT_NEAR(squares / static_cast<double>(std::min(shape[0], shape[1])), 1.0, 0.35);
      }
    }
  }
}

// Momenta of matrices, moments of the others; a gradient of zeros moves nothing but by the decay.
TEST(Muon, KeepsAndMovesWhatItShould) {
  Memory memory;
  ThreadPool threads(1);
  const auto backend = make_reference_backend();
  TrainedMatrix matrix("m", {2, 3}, DType::f32, 1.0f, *backend);
  const OwnedTensor value = allocate_tensor(memory, DType::f32, {4});
  const OwnedTensor gradient = allocate_tensor(memory, DType::f32, {4});
  TrainedParameter vector("v", TrainedParameter::Kind::vector, value.view, gradient.view);
  matrix.value().elements<float>()[1] = 2.0f;
  value.view.elements<float>()[1] = 2.0f;
  gradient.view.elements<float>()[2] = 1.0f;
  Muon optimizer(*backend, {&matrix, &vector},
                 {.weight_decay = 0.5, .adamw = {.weight_decay = 0}, .adamw_rate = 0.1});
  std::vector<std::string> names;
  for (const auto& state : optimizer.state()) names.push_back(state.name);
  EXPECT_EQ(names, (std::vector<std::string>{"v.first_moment", "v.second_moment", "m.momentum"}));
  optimizer.step(0.1, 1.0, threads);
  EXPECT_FLOAT_EQ(matrix.value().elements<float>()[1], 2.0f * 0.95f);
  EXPECT_EQ(matrix.value().elements<float>()[0], 0.0f);
  EXPECT_EQ(value.view.elements<float>()[1], 2.0f);
  EXPECT_NEAR(value.view.elements<float>()[2], -0.01f, 1e-6);  // Adam's first step is the rate
  EXPECT_EQ(optimizer.num_steps(), 1);
}

}  // namespace
}  // namespace paceline::testing
