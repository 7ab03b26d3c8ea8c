// Compares operations and their gradients with PyTorch's (tools/goldens/make_autodiff_goldens.py).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <map>
#include <string>

#include "autodiff/attention.h"
#include "autodiff/elementwise.h"
#include "autodiff/losses.h"
#include "autodiff/new_arrays.h"
#include "autodiff/normalisation.h"
#include "autodiff/reductions.h"
#include "autodiff/transforms.h"
#include "base/json.h"

namespace paceline::autodiff {
namespace {

Json read_operations() {
  std::ifstream file(PACELINE_SOURCE_DIR "/tests/goldens/autodiff/operations.json");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  return parse_json(text, "operations.json");
}

const Json& member(const Json& object, const char* key) {
  static const Json null;
  const Json* found = object.find(key);
  EXPECT_NE(found, nullptr) << key;
  return found == nullptr ? null : *found;
}

std::vector<double> numbers(const Json& json) {
  std::vector<double> values;
  for (const Json& value : json.as_array("numbers")) values.push_back(value.as_double("number"));
  return values;
}

Extents shape_of(const Json& array) {
  const std::vector<double> sizes = numbers(member(array, "shape"));
  const std::vector<int64_t> integers(sizes.begin(), sizes.end());
  return Extents(std::span<const int64_t>(integers));
}

class AutodiffGolden : public testing::Test {
 protected:
  Array array(const Json& json) {
    const std::vector<double> values = numbers(member(json, "values"));
    const std::vector<float> floats(values.begin(), values.end());
    return from_values(context_, floats, shape_of(json));
  }

  Array integers(const Json& json) {
    const std::vector<double> values = numbers(json);
    const std::vector<int32_t> rounded(values.begin(), values.end());
    return from_integers(context_, rounded, {static_cast<int64_t>(rounded.size())});
  }

  Array mask(const Json& json) {
    const std::vector<double> values = numbers(json);
    const std::vector<uint8_t> chosen(values.begin(), values.end());
    return from_mask(context_, chosen, {static_cast<int64_t>(chosen.size())});
  }

  Array run(const Json& golden, const Arrays& x) {
    const std::string& name = member(golden, "operation").as_string("operation");
    const Json& options = member(golden, "options");
    const auto option = [&](const char* key) {
      const Json* found = options.find(key);
      return found == nullptr ? 0.0f : static_cast<float>(found->as_double(key));
    };
    if (name == "layer_norm") return layer_norm(x[0], x[1], x[2], option("eps"));
    if (name == "rms_norm") return rms_norm(x[0], x[1], option("eps"));
    if (name == "gelu_tanh") return gelu_tanh(x[0]);
    if (name == "gelu_erf") return gelu_erf(x[0]);
    if (name == "silu") return silu(x[0]);
    if (name == "log_sum_exp") return log_sum_exp(x[0]);
    if (name == "softmax") return softmax(x[0], static_cast<int>(option("axis")));
    if (name == "max") return max(x[0], {static_cast<int>(option("axis"))});
    if (name == "maximum") return maximum(x[0], x[1]);
    if (name == "mse") return mse(x[0], x[1]);
    if (name == "rope") {
      const std::vector<double> values = numbers(member(options, "inv_freq"));
      const std::vector<float> inv_freq(values.begin(), values.end());
      const Array frequencies =
          from_values(context_, inv_freq, {static_cast<int64_t>(inv_freq.size())});
      return rope(x[0], rope_table(integers(member(options, "positions")), frequencies, 1.0f));
    }
    if (name == "attention") {
      return attention(x[0], x[1], x[2],
                       {.scale = option("scale"),
                        .soft_cap = option("soft_cap"),
                        .window = static_cast<int64_t>(option("window"))});
    }
    const Array targets = integers(member(options, "targets"));
    if (name == "cross_entropy") return cross_entropy(x[0], targets);
    EXPECT_EQ(name, "masked_cross_entropy");
    return masked_cross_entropy(x[0], targets, mask(member(options, "mask")));
  }

  // The operation with a definition that is easily taken for the right one, where there is such.
  Array misread(const Json& golden, const Arrays& x) {
    const std::string& name = member(golden, "operation").as_string("operation");
    const Json& options = member(golden, "options");
    if (name == "layer_norm") {  // eps outside of the root
      const Array centred = x[0] - mean(x[0], {-1}, Reduced::kept);
      const Array deviation = sqrt(mean(centred * centred, {-1}, Reduced::kept)) + 0.125f;
      return centred / deviation * x[1] + x[2];
    }
    if (name == "gelu_tanh") return gelu_erf(x[0]);
    if (name == "gelu_erf") return gelu_tanh(x[0]);
    if (name == "softmax") return softmax(x[0], 1);
    if (name == "masked_cross_entropy") {  // the mean over all positions
      const Array targets = integers(member(options, "targets"));
      return 0.75f * masked_cross_entropy(x[0], targets, mask(member(options, "mask")));
    }
    if (options.find("window") != nullptr || options.find("soft_cap") != nullptr) {
      return attention(x[0], x[1], x[2],
                       {.scale = static_cast<float>(member(options, "scale").as_double("scale"))});
    }
    return Array();
  }

  static void expect_near(const Array& found, const Json& expected, const std::string& what) {
    EXPECT_EQ(found.shape(), shape_of(expected)) << what;
    const std::vector<float> values = to_floats(found);
    const std::vector<double> numbers_expected = numbers(member(expected, "values"));
    ASSERT_EQ(values.size(), numbers_expected.size()) << what;
    double largest = 1.0;
    for (const double value : numbers_expected) largest = std::max(largest, std::abs(value));
    for (size_t i = 0; i < values.size(); ++i) {
      EXPECT_NEAR(values[i], numbers_expected[i], 1e-5 * largest) << what << ", element " << i;
    }
  }

  Memory memory_;
  Context context_{memory_};
};

TEST_F(AutodiffGolden, OperationsAndGradients) {
  const Json goldens = read_operations();
  std::map<std::string, int> counts;
  for (const Json& golden : member(goldens, "cases").as_array("cases")) {
    const std::string& name = member(golden, "operation").as_string("operation");
    SCOPED_TRACE(name + " " + std::to_string(++counts[name]));
    Arrays inputs;
    for (const Json& input : member(golden, "inputs").as_array("inputs")) {
      inputs.push_back(array(input));
    }
    const auto function = [&](const Arrays& x) { return Arrays{run(golden, x)}; };
    const Vjp found = vjp(function, inputs, {array(member(golden, "cotangent"))});
    expect_near(found.outputs[0], member(golden, "output"), "value");
    const Json::Array& gradients = member(golden, "gradients").as_array("gradients");
    ASSERT_EQ(gradients.size(), inputs.size());
    for (size_t i = 0; i < inputs.size(); ++i) {
      expect_near(found.gradients[i], gradients[i], "gradient " + std::to_string(i));
    }
  }
  EXPECT_EQ(counts.size(), 14u);
  EXPECT_EQ(counts["attention"], 6);
}

// What the goldens are there for: a misread definition is further off than the tolerance.
TEST_F(AutodiffGolden, MisreadDefinitionsMiss) {
  const Json goldens = read_operations();
  int num_misread = 0;
  for (const Json& golden : member(goldens, "cases").as_array("cases")) {
    SCOPED_TRACE(member(golden, "operation").as_string("operation"));
    Arrays inputs;
    for (const Json& input : member(golden, "inputs").as_array("inputs")) {
      inputs.push_back(array(input));
    }
    const Array wrong = misread(golden, inputs);
    if (!wrong.is_defined()) continue;
    ++num_misread;
    const std::vector<float> values = to_floats(wrong);
    const std::vector<double> expected = numbers(member(member(golden, "output"), "values"));
    double largest = 0.0;
    for (size_t i = 0; i < values.size(); ++i) {
      largest = std::max(largest, std::abs(values[i] - expected[i]));
    }
    EXPECT_GT(largest, 1e-4);
  }
  EXPECT_EQ(num_misread, 9);
}

}  // namespace
}  // namespace paceline::autodiff
