// Compares the remaining tokens and their probabilities with the logits processors of Hugging Face
// transformers and with numpy.
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "base/json.h"
#include "tests/sampling/sampler_fixture.h"

namespace paceline {
namespace {

Json read_golden(const std::filesystem::path& path) {
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  return parse_json(text, path.filename().string());
}

// Every file of the directory, by name.
std::vector<Json> read_goldens() {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry :
       std::filesystem::directory_iterator(PACELINE_SOURCE_DIR "/tests/goldens/sampling")) {
    paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<Json> goldens;
  for (const auto& path : paths) goldens.push_back(read_golden(path));
  return goldens;
}

const Json::Array& array(const Json& object, const char* key) {
  static const Json::Array empty;
  const Json* value = object.find(key);
  EXPECT_NE(value, nullptr) << key;
  return value == nullptr ? empty : value->as_array(key);
}

SamplingOptions options_of(const Json& json) {
  SamplingOptions options;
  for (const auto& field : json.as_object("options")) {
    const auto& key = field.first;
    const auto& value = field.second;
    if (const SamplingNumber* number = find_sampling_number(key)) {
      const double given = value.as_double(key);
      std::visit(
          [&](auto member) {
            using T = std::decay_t<decltype(options.*member)>;
            options.*member = static_cast<T>(given);
          },
          number->member);
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

std::vector<float> logits_of(const Json& c) {
  std::vector<float> logits;
  for (const Json& x : array(c, "logits"))
    logits.push_back(static_cast<float>(x.as_double("logits")));
  return logits;
}

class SamplingGoldenTest : public SamplerFixture {
 protected:
  void expect_golden(const Json& c) {
    const std::vector<float> logits = logits_of(c);
    TokenHistory history;
    for (const Json& id : array(c, "seen_ids")) {
      const auto token = static_cast<int32_t>(id.as_int("seen_ids"));
      history.add_prompt({&token, 1});
    }
    const SamplingOptions options = options_of(*c.find("options"));
    check_sampling_options(options, static_cast<int64_t>(logits.size()));

    const WeighedTokens found = distribution(logits, options, history);
    ASSERT_EQ(found.tokens.size(), array(c, "kept_ids").size());
    double total = 0;
    for (const TokenWeight& token : found.tokens) total += static_cast<double>(token.weight);
    for (size_t i = 0; i < found.tokens.size(); ++i) {
      EXPECT_EQ(found.tokens[i].id, array(c, "kept_ids")[i].as_int("kept_ids"));
      const double expected = array(c, "probabilities")[i].as_double("probabilities");
      EXPECT_NEAR(static_cast<double>(found.tokens[i].weight) / total, expected, 5e-6 * expected);
    }
  }
};

TEST_F(SamplingGoldenTest, KeptTokensAndProbabilitiesEqualThoseOfTheOthers) {
  for (const Json& golden : read_goldens()) {
    const std::string& made_by = golden.find("made_by")->as_string("made_by");
    EXPECT_GE(array(golden, "cases").size(), 12u) << made_by;
    for (const Json& c : array(golden, "cases")) {
      SCOPED_TRACE(made_by + ": " + c.find("name")->as_string("name"));
      expect_golden(c);
    }
  }
}

TEST_F(SamplingGoldenTest, DrawnTokensEqualThoseOfTheRaceInPython) {
  const Json golden = read_golden(PACELINE_SOURCE_DIR "/tests/goldens/draws/race.json");
  EXPECT_GE(array(golden, "cases").size(), 8u);
  for (const Json& c : array(golden, "cases")) {
    const std::vector<float> logits = logits_of(c);
    SamplingOptions options;
    options.temperature = static_cast<float>(c.find("temperature")->as_double("temperature"));
    Sampler s = sampler(logits.size());
    for (const Json& draw : array(c, "draws")) {
      const Json::Array& numbers = draw.as_array("draws");
      ASSERT_EQ(numbers.size(), 3u);
      options.seed = static_cast<uint64_t>(numbers[0].as_int("seed"));
      const int64_t position = numbers[1].as_int("position");
      EXPECT_EQ(s.draw({logits}, options, {}, position).id, numbers[2].as_int("token"))
          << logits.size() << " tokens, seed " << options.seed << ", position " << position;
    }
  }
}

}  // namespace
}  // namespace paceline
