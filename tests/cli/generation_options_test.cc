// Every option of kGenerationOptions from each side: command line, lines of JSON, HTTP, documents.
#include "text/generation_options.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "base/json.h"
#include "base/json_writer.h"
#include "cli/command.h"
#include "cli/help.h"
#include "cli/line_fields.h"
#include "cli/option_value.h"
#include "paceline/error.h"
#include "protocol/chat_request.h"
#include "protocol/classification_request.h"
#include "protocol/completion_request.h"
#include "protocol/schemas.h"
#include "server/page_options.h"

namespace paceline {
namespace {

using testing::AnyOf;
using testing::HasSubstr;

// One value, as written in a request and as flags.
struct Written {
  std::string json;
  std::vector<std::string> texts;
};

Written written(std::string text) { return {text, {text}}; }

Written text_list(size_t count, size_t bytes) {
  Written list{.json = "[", .texts = std::vector<std::string>(count, std::string(bytes, 'x'))};
  for (size_t i = 0; i < count; ++i) list.json += (i == 0 ? "\"" : ", \"") + list.texts[i] + "\"";
  list.json += "]";
  return list;
}

Written id_list(size_t count) {
  std::string ids = "1";
  for (size_t i = 1; i < count; ++i) ids += ",1";
  return {"[" + ids + "]", {ids}};
}

Written bias_list(double bias) {
  return {fmt::format("{{\"5\": {}}}", bias), {fmt::format("5={}", bias)}};
}

bool flag_by_default(const GenerationOption& option) {
  return GenerateOptions{}.*std::get<bool GenerateOptions::*>(option.member);
}

// An allowed value that isn't the default.
Written inside(const GenerationOption& option) {
  switch (kind_of(option)) {
    case GenerationKind::flag:
      return written(flag_by_default(option) ? "false" : "true");
    case GenerationKind::choice:
      return {R"("mlx")", {"mlx"}};
    case GenerationKind::integer:
    case GenerationKind::number:
      return written(fmt::format("{}", option.range.max));
    case GenerationKind::seed:
      return written("18446744073709551615");
    case GenerationKind::texts:
      return text_list(option.list.max_items, option.list.max_bytes);
    case GenerationKind::token_ids:
      return id_list(option.list.max_items);
    case GenerationKind::logit_bias:
      return bias_list(option.range.min);
  }
  return {};
}

// Values just out of range.
std::vector<Written> outside(const GenerationOption& option) {
  switch (kind_of(option)) {
    case GenerationKind::flag:
    case GenerationKind::seed:
    case GenerationKind::choice:
      return {{R"("x")", {"x"}}};
    case GenerationKind::integer:
    case GenerationKind::number:
      return {written(fmt::format("{}", option.range.max + 1)),
              written(fmt::format("{}", option.range.min - (option.range.above_min ? 0 : 1)))};
    case GenerationKind::texts:
      return {text_list(option.list.max_items + 1, 1), text_list(1, option.list.max_bytes + 1),
              text_list(1, 0)};
    case GenerationKind::token_ids:
      return {id_list(option.list.max_items + 1), {"[-1]", {"-1"}}};
    case GenerationKind::logit_bias:
      return {bias_list(option.range.min - 1), bias_list(option.range.max + 1)};
  }
  return {};
}

GenerateOptions of_flags(const GenerationOption& option, const Written& value) {
  const OptionDef* definition = find_option(option.name);
  if (definition == nullptr) throw Error(ErrorCode::not_found, std::string(option.name));
  Settings settings;
  apply_option(*definition,
               parse_option_value(*definition, value.texts, "--" + std::string(definition->name)),
               settings);
  return settings.generate;
}

GenerateOptions of_line(const GenerationOption& option, const Written& value) {
  const Json line = parse_json(fmt::format("{{\"{}\": {}}}", option.name, value.json), "line");
  check_line_keys(line, {kGenerateFields});
  Settings settings;
  apply_option_fields(line, kGenerateFields, settings);
  return settings.generate;
}

GenerateOptions of_request(const GenerationOption& option, const Written& value) {
  const bool needs_logprobs = option.name == "logprob_token_ids";
  const auto request = parse_completion_request(
      parse_json(fmt::format(R"({{"prompt": "x", {}"{}": {}}})",
                             needs_logprobs ? R"("logprobs": 1, )" : "", option.name, value.json),
                 "body"));
  GenerateOptions options = request.options;
  options.logprobs = request.logprobs;
  return options;
}

constexpr GenerateOptions (*const kSides[])(const GenerationOption&, const Written&) = {
    of_flags, of_line, of_request};

bool are_equal(const GenerateOptions& a, const GenerateOptions& b, const GenerationOption& option) {
  return std::visit([&](auto member) { return a.*member == b.*member; }, option.member);
}

std::string refusal_of(const GenerationOption& option, const Written& value, size_t side) {
  try {
    kSides[side](option, value);
  } catch (const Error& error) {
    return error.what();
  }
  return fmt::format("side {} takes {} as {}", side, value.json.substr(0, 80), option.name);
}

std::string with_dashes_instead(std::string_view name) {
  std::string text(name);
  std::replace(text.begin(), text.end(), '_', '-');
  return text;
}

TEST(GenerationOptions, AValueWithinTheRangeIsTakenAlikeFromEverySide) {
  for (const GenerationOption& option : kGenerationOptions) {
    SCOPED_TRACE(option.name);
    const Written value = inside(option);
    const GenerateOptions from_line = of_line(option, value);
    EXPECT_TRUE(is_set(from_line, option));
    EXPECT_TRUE(are_equal(of_flags(option, value), from_line, option));
    EXPECT_TRUE(are_equal(of_request(option, value), from_line, option));
    EXPECT_NO_THROW(check_generation_options(from_line, true));
  }
}

TEST(GenerationOptions, AValueOutsideIsRefusedByNameFromEverySide) {
  for (const GenerationOption& option : kGenerationOptions) {
    for (const Written& value : outside(option)) {
      for (size_t side = 0; side < std::size(kSides); ++side) {
        EXPECT_THAT(refusal_of(option, value, side),
                    AnyOf(testing::StartsWith(std::string(option.name)),
                          testing::StartsWith("--" + with_dashes_instead(option.name))));
      }
    }
  }
}

TEST(GenerationOptions, OtherNamesAreTakenToo) {
  for (const GenerationOption& option : kGenerationOptions) {
    if (option.other_name.empty()) continue;
    const std::string body =
        fmt::format(R"({{"prompt": "x", "{}": {}}})", option.other_name, inside(option).json);
    EXPECT_TRUE(is_set(parse_completion_request(parse_json(body, "")).options, option));
    EXPECT_THAT(flags_of(*find_option(option.name)),
                testing::Contains("--" + with_dashes_instead(option.other_name)));
  }
}

TEST(GenerationOptions, HelpSchemaAndDocumentsListThem) {
  std::ifstream file(PACELINE_SOURCE_DIR "/docs/api.md");
  const std::string docs{std::istreambuf_iterator<char>(file), {}};
  std::string completion, classification;
  JsonWriter completion_writer(completion), classification_writer(classification);
  write_fields_schema(completion_writer, completion_request_fields(), {});
  write_fields_schema(classification_writer, classification_request_fields(), {});
  const std::string help = whole_command_help(find_command("generate"));
  const std::string page = page_options_module();
  for (const GenerationOption& option : kGenerationOptions) {
    const std::string described = fmt::format("\"description\":{}", json_quote(option.help));
    EXPECT_THAT(help, HasSubstr("--" + with_dashes_instead(option.name)));
    EXPECT_THAT(completion, HasSubstr(fmt::format("\"{}\":{{", option.name)));
    EXPECT_THAT(completion, HasSubstr(described));
    EXPECT_EQ(classification.find(described) != std::string::npos,
              option.group == GenerationGroup::sampling)
        << option.name;
    EXPECT_THAT(docs, HasSubstr(fmt::format("| `{}` | implemented |", option.name)));
    EXPECT_THAT(docs, HasSubstr(option.help));
    if (find_sampling_number(option.name) != nullptr) {
      EXPECT_THAT(page, HasSubstr(fmt::format("\"name\":\"{}\"", option.name)));
    }
  }
}

// The words for an unset number state its real default.
TEST(GenerationOptions, DefaultWordsAreTheDefaults) {
  const SamplingOptions sampling;
  for (const SamplingNumber& number : kSamplingNumbers) {
    for (const GenerationOption& option : kGenerationOptions) {
      if (option.name != number.name) continue;
      const double value = std::visit(
          [&](auto member) { return static_cast<double>(sampling.*member); }, number.member);
      EXPECT_EQ(option.default_words.substr(0, option.default_words.find(' ')),
                fmt::format("{}", value))
          << option.name;
    }
  }
  EXPECT_EQ(generation_option("max_tokens").default_words.substr(0, 3),
            std::to_string(kDefaultMaxTokens));
}

TEST(GenerationOptions, ModelsSetWhatIsUnset) {
  GenerateOptions defaults, options;
  defaults.top_k = 7;
  defaults.temperature = 0.5f;
  options.temperature = 2.0f;
  take_defaults(options, defaults);
  EXPECT_EQ(options.top_k, 7);
  EXPECT_EQ(options.temperature, 2.0f);
  EXPECT_EQ(sampling_options(options).top_k, 7);
  EXPECT_EQ(sampling_options(options).top_p, 1.0f);
}

TEST(GenerationOptions, TextsNeedATokenizer) {
  GenerateOptions options;
  options.stop = {"x"};
  EXPECT_NO_THROW(check_generation_options(options, true));
  EXPECT_THROW(check_generation_options(options, false), Error);
}

}  // namespace
}  // namespace paceline
