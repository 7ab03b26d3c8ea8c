// What is left to draw from, and how likely, against the logits processors of Hugging Face
// transformers.
#include <cstdint>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "base/json.h"
#include "tests/sampling/sampler_fixture.h"

namespace paceline {
namespace {

class SamplingGoldenTest : public SamplerFixture {};

Json read_chains() {
  std::ifstream file(PACELINE_SOURCE_DIR "/tests/goldens/sampling/chains.json");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  return parse_json(text, "chains.json");
}

const Json::Array& array(const Json& object, const char* key) {
  static const Json::Array empty;
  const Json* value = object.find(key);
  EXPECT_NE(value, nullptr) << key;
  return value == nullptr ? empty : value->as_array(key);
}

SamplingOptions options_of(const Json& json) {
  SamplingOptions options;
  for (const auto& [key, value] : json.as_object("options")) {
    if (key == "temperature") {
      options.temperature = static_cast<float>(value.as_double(key));
    } else if (key == "top_k") {
      options.top_k = static_cast<int32_t>(value.as_int(key));
    } else if (key == "top_p") {
      options.top_p = static_cast<float>(value.as_double(key));
    } else if (key == "min_p") {
      options.min_p = static_cast<float>(value.as_double(key));
    } else if (key == "repetition_penalty") {
      options.repetition_penalty = static_cast<float>(value.as_double(key));
    } else if (key == "order" && value.as_string(key) == "mlx") {
      options.order = SamplerOrder::mlx;
    } else if (key == "logit_bias") {
      for (const auto& [id, bias] : value.as_object(key))
        options.logit_bias.emplace_back(std::stoi(id), static_cast<float>(bias.as_double(id)));
    } else {
      ADD_FAILURE() << "an option this test doesn't know: " << key;
    }
  }
  return options;
}

TEST_F(SamplingGoldenTest, KeptTokensAndProbabilitiesEqualThoseOfTransformers) {
  const Json chains = read_chains();
  EXPECT_EQ(array(chains, "cases").size(), 15u);
  for (const Json& c : array(chains, "cases")) {
    SCOPED_TRACE(c.find("name")->as_string("name"));
    std::vector<float> logits;
    for (const Json& x : array(c, "logits"))
      logits.push_back(static_cast<float>(x.as_double("logits")));
    TokenHistory history;
    for (const Json& id : array(c, "seen_ids")) {
      const auto token = static_cast<int32_t>(id.as_int("seen_ids"));
      history.add_prompt({&token, 1});
    }
    const SamplingOptions options = options_of(*c.find("options"));
    check_sampling_options(options, static_cast<int64_t>(logits.size()));

    const Distribution found = distribution(logits, options, history);
    ASSERT_EQ(found.tokens.size(), array(c, "kept_ids").size());
    double total = 0;
    for (const TokenWeight& token : found.tokens) total += static_cast<double>(token.weight);
    for (size_t i = 0; i < found.tokens.size(); ++i) {
      EXPECT_EQ(found.tokens[i].id, array(c, "kept_ids")[i].as_int("kept_ids"));
      const double expected = array(c, "probabilities")[i].as_double("probabilities");
      EXPECT_NEAR(static_cast<double>(found.tokens[i].weight) / total, expected, 5e-6 * expected);
    }
  }
}

}  // namespace
}  // namespace paceline
