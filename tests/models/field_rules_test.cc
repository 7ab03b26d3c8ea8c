// Every field of transformers' configuration classes is obeyed, harmless or refused, as the table
// says.
#include "models/field_rules.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "base/json.h"
#include "base/mapped_file.h"
#include "models/family.h"
#include "paceline/error.h"
#include "tests/source_path.h"
#include "weights/checkpoint.h"

namespace paceline::testing {
namespace {

Json field_goldens() {
  const std::string path = source_path("tests/goldens/configs/fields.json");
  return parse_json(read_text_file(path, 1 << 20), path);
}

// A model of the family in which every obeyed field takes part.
const std::map<std::string, std::string>& fields_of_family() {
  static const std::map<std::string, std::string> fields = {
      {"llama", R"("rope_theta": 500)"},
      {"mistral", R"("sliding_window": 8)"},
      {"qwen2", R"("use_sliding_window": true, "sliding_window": 8, "max_window_layers": 1)"},
      {"qwen3", R"("use_sliding_window": true, "sliding_window": 8, "max_window_layers": 1)"},
      {"gemma2", R"("sliding_window": 8)"},
      {"gemma3_text", R"("sliding_window": 8, "sliding_window_pattern": 2)"},
  };
  return fields;
}

// Other values, in the types of the classes.
const std::map<std::string, std::string>& another_value() {
  static const std::map<std::string, std::string> values = {
      {"dtype", R"("float16")"},
      {"vocab_size", "96"},
      {"hidden_size", "64"},
      {"intermediate_size", "40"},
      {"num_hidden_layers", "3"},
      {"num_attention_heads", "8"},
      {"num_key_value_heads", "1"},
      {"head_dim", "12"},
      {"max_position_embeddings", "77"},
      {"rms_norm_eps", "0.125"},
      {"hidden_act", R"("gelu")"},
      {"hidden_activation", R"("gelu")"},
      {"tie_word_embeddings", "false"},
      {"attention_bias", "true"},
      {"mlp_bias", "true"},
      {"rope_parameters", R"({"rope_type": "linear", "factor": 3, "rope_theta": 77})"},
      {"use_sliding_window", "false"},
      {"sliding_window", "5"},
      {"max_window_layers", "0"},
      {"layer_types", R"(["sliding_attention", "sliding_attention"])"},
      {"query_pre_attn_scalar", "3"},
      {"attn_logit_softcapping", "7"},
      {"final_logit_softcapping", "7"},
      {"initializer_range", "0.5"},
      {"attention_dropout", "0.5"},
      {"problem_type", R"("regression")"},
      {"id2label", R"({"0": "a"})"},
      {"label2id", R"({"a": 0})"},
      {"architectures", R"(["Other"])"},
      {"transformers_version", R"("4.0.0")"},
      {"output_hidden_states", "true"},
      {"return_dict", "false"},
      {"use_cache", "false"},
      {"chunk_size_feed_forward", "4"},
      {"pretraining_tp", "2"},
      {"use_bidirectional_attention", "true"},
      {"is_encoder_decoder", "true"},
  };
  return values;
}

// Read by other modules than models/.
const std::set<std::string>& special_tokens() {
  static const std::set<std::string> names = {"bos_token_id", "eos_token_id", "pad_token_id"};
  return names;
}

Json config_of_family(const std::string& family) {
  return parse_json(R"({"model_type": ")" + family + R"(", "vocab_size": 64, "hidden_size": 32,
      "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
      "num_key_value_heads": 2, "head_dim": 16, "tie_word_embeddings": true, )" +
                        fields_of_family().at(family) + "}",
                    "config.json");
}

DecoderConfig read(const Json& json) {
  Memory memory;
  return read_decoder_config(json, WeightReader(*make_dummy_checkpoint(DType::f32, 0, memory)),
                             "config.json");
}

// What another value of the field does to the model of its family.
ConfigFieldUse found_use(const std::string& family, const std::string& field) {
  const Json base = config_of_family(family);
  Json::Object changed;
  for (const auto& [key, value] : base.as_object("config.json")) {
    if (key != field) changed.emplace_back(key, value);
  }
  changed.emplace_back(field, parse_json(another_value().at(field), field));
  try {
    return read(Json(std::move(changed))) == read(base) ? ConfigFieldUse::harmless
                                                        : ConfigFieldUse::obeyed;
  } catch (const Error& error) {
    return error.code() == ErrorCode::unsupported ? ConfigFieldUse::refused
                                                  : ConfigFieldUse::obeyed;
  }
}

TEST(FieldRules, EveryFieldOfAClassHasARuleThatHolds) {
  const Json goldens = field_goldens();
  int checked = 0;
  for (const auto& [family, fields] : goldens.as_object("families")) {
    for (const Json& item : fields.as_array(family)) {
      const std::string& field = item.as_string(family);
      SCOPED_TRACE(family + "." + field);
      const FieldRule* const rule = find_field_rule(family, field);
      ASSERT_NE(rule, nullptr);
      if (!fields_of_family().contains(family) || special_tokens().contains(field)) continue;
      ASSERT_TRUE(another_value().contains(field)) << "no other value to try";
      EXPECT_EQ(found_use(family, field), rule->use);
      ++checked;
    }
  }
  EXPECT_GT(checked, 150);
}

}  // namespace
}  // namespace paceline::testing
