// Walks the field tables: the readers accept what a type allows, at its bounds, and refuse the
// rest.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/protocol/endpoints.h"

namespace paceline {
namespace {

std::string repeated(size_t count, const std::string& item) {
  std::string json = "[";
  for (size_t i = 0; i < count; ++i) json += (i == 0 ? "" : ",") + item;
  return json + "]";
}

std::string quoted(size_t bytes) { return "\"" + std::string(bytes, 'x') + "\""; }

std::string sample(const FieldType& type);

std::string sample_object(const FieldType& type) {
  std::string json = "{";
  if (type.members == nullptr) return "{}";
  for (const FieldInfo& member : type.members()) {
    if (!member.is_required) continue;
    json += fmt::format("{}\"{}\": {}", json == "{" ? "" : ", ", member.name, sample(member.type));
  }
  // A message's role decides which members it needs.
  if (json.find("\"role\"") != std::string::npos) json = R"({"role": "user", "content": "x")";
  // So does the type of a decision's item, which is a message without one, and of a question.
  const FieldList members = type.members();
  const bool is_item = std::any_of(members.begin(), members.end(), [](const FieldInfo& member) {
    return member.name == "call_id";
  });
  if (is_item && json == "{") json = R"({"role": "user", "content": "x")";
  if (json == R"({"type": "noul")") json += R"(, "instructions": "x")";
  return json + "}";
}

// A value of the type.
std::string sample(const FieldType& type) {
  switch (type.kind) {
    case FieldKind::any:
      return "1";
    case FieldKind::boolean:
      return type.booleans == Booleans::only_true ? "true" : "false";
    case FieldKind::integer:
      return std::to_string(type.min);
    case FieldKind::number:
      return fmt::format("{}", type.range.max);
    case FieldKind::text:
      return type.words.empty() ? quoted(static_cast<size_t>(type.min))
                                : fmt::format("\"{}\"", type.words.front());
    case FieldKind::array:
      return repeated(static_cast<size_t>(type.min), sample(*type.item));
    case FieldKind::tuple:
      return fmt::format("[{}, {}]", sample(type.parts[0]), sample(type.parts[1]));
    case FieldKind::object:
      return sample_object(type);
    case FieldKind::one_of:
      return sample(type.parts[0]);
  }
  return "";
}

struct Values {
  std::vector<std::string> taken, refused;
};

void add_integers(const FieldType& type, Values& values) {
  values.taken.push_back(std::to_string(type.min));
  values.taken.push_back(std::to_string(type.max));
  if (type.min > std::numeric_limits<int64_t>::min()) {
    values.refused.push_back(std::to_string(type.min - 1));
  }
  values.refused.push_back(type.max == kNoMaximum ? "18446744073709551616"
                                                  : std::to_string(type.max + 1));
  values.refused.insert(values.refused.end(), {"0.5", "1e300"});
}

void add_numbers(const FieldType& type, Values& values) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const auto [min, max, above_min] = type.range;
  values.taken.push_back(fmt::format("{}", max));
  values.refused.push_back(fmt::format("{}", std::nextafter(max, kInfinity)));
  values.refused.push_back(fmt::format("{}", std::nextafter(min, -kInfinity)));
  (above_min ? values.refused : values.taken).push_back(fmt::format("{}", min));
}

void add_texts(const FieldType& type, Values& values) {
  if (!type.words.empty()) {
    for (const auto word : type.words) values.taken.push_back(fmt::format("\"{}\"", word));
    values.refused.insert(values.refused.end(), {"\"\"", "\"no such word\""});
    return;
  }
  values.taken.push_back(quoted(static_cast<size_t>(type.min)));
  if (type.min > 0) values.refused.push_back(quoted(static_cast<size_t>(type.min) - 1));
  if (type.max == kNoMaximum) return;
  values.taken.push_back(quoted(type.max));
  values.refused.push_back(quoted(type.max + 1));
}

void add_arrays(const FieldType& type, Values& values) {
  const std::string item = sample(*type.item);
  values.taken.push_back(repeated(static_cast<size_t>(type.min), item));
  if (type.max > 4096) return;
  values.taken.push_back(repeated(type.max, item));
  values.refused.push_back(repeated(type.max + 1, item));
}

void add_objects(const FieldType& type, Values& values) {
  if (type.max == kNoMaximum) return;
  std::string json = "{";
  for (uint64_t i = 0; i < type.max; ++i)
    json += fmt::format("\"{}\": {}, ", i, sample(*type.item));
  values.taken.push_back(json.substr(0, json.size() - 2) + "}");
  values.refused.push_back(json + fmt::format("\"{}\": {}}}", type.max, sample(*type.item)));
}

// Values at the type's bounds and beside them.
void add_values(const FieldType& type, Values& values) {
  switch (type.kind) {
    case FieldKind::integer:
      return add_integers(type, values);
    case FieldKind::number:
      return add_numbers(type, values);
    case FieldKind::text:
      return add_texts(type, values);
    case FieldKind::array:
      return type.item == nullptr ? void() : add_arrays(type, values);
    case FieldKind::object:
      return add_objects(type, values);
    case FieldKind::boolean:
      values.taken.push_back(sample(type));
      if (type.booleans != Booleans::both) {
        values.refused.push_back(sample(type) == "true" ? "false" : "true");
      }
      return;
    case FieldKind::one_of:
      for (const FieldType& part : type.parts) add_values(part, values);
      return;
    default:
      return;
  }
}

bool takes(const FieldType& type, FieldKind kind) {
  if (type.kind == FieldKind::any || type.kind == kind) return true;
  for (const FieldType& part : type.parts) {
    if (type.kind == FieldKind::one_of && takes(part, kind)) return true;
  }
  return (kind == FieldKind::integer && takes(type, FieldKind::number));
}

constexpr std::pair<FieldKind, const char*> kOfEachKind[] = {
    {FieldKind::boolean, "true"},    {FieldKind::integer, "1"},
    {FieldKind::number, "0.25"},     {FieldKind::text, "\"NaN\""},
    {FieldKind::array, "[[[[1]]]]"}, {FieldKind::object, "{\"a\": 1}"}};

// Other members that a value needs.
std::string companions(const Endpoint& endpoint, const FieldInfo& field, const std::string& value) {
  const bool is_of_responses = endpoint.name == "responses" || endpoint.name == "compact";
  if (is_of_responses && field.name == "tool_choice") {
    return R"(, "tools": [{"type": "function", "name": "f"}])";
  }
  if (is_of_responses && field.name.find("logprob") != std::string_view::npos) {
    return R"(, "include": ["message.output_text.logprobs"])";
  }
  if (field.name == "best_of") return ", \"n\": " + value;
  if (field.name == "top_logprobs" && endpoint.name == "chat") return ", \"logprobs\": true";
  if (field.name == "tool_choice" && endpoint.name != "chat") {
    return R"(, "tools": [{"name": "x", "input_schema": {}}])";
  }
  if (field.name == "tool_choice") {
    return R"(, "tools": [{"type": "function", "function": {"name": "f"}}])";
  }
  if (field.name == "text_1") return ", \"text_2\": " + value;  // as many
  if (field.name == "stream_options") return ", \"stream\": true";
  if (field.name == "continue_final_message") return ", \"add_generation_prompt\": false";
  if (field.name == "logprob_token_ids") {
    return endpoint.name == "chat" ? ", \"logprobs\": true" : ", \"logprobs\": 1";
  }
  return "";
}

std::string body_with(const Endpoint& endpoint, const FieldInfo& field, const std::string& value) {
  // /tokenize takes only one of its inputs.
  const bool is_other_input =
      endpoint.name == "tokenize" && (field.name == "content" || field.name == "messages");
  const bool stands_alone = is_other_input || field.name == "text_1";
  return fmt::format("{{{}\"{}\": {}{}}}", stands_alone ? "" : endpoint.required_beside(field.name),
                     field.name, value, companions(endpoint, field, value));
}

template <class Check>
void for_each_field(Check&& check) {
  for (const Endpoint& endpoint : endpoints()) {
    for (const FieldInfo& field : endpoint.fields) {
      if (field.use == FieldUse::refused) continue;
      if (field.name == "previous_response_id") continue;  // of a response that is stored
      SCOPED_TRACE(fmt::format("{}: {}", endpoint.name, field.name));
      check(endpoint, field);
    }
  }
}

void expect_refused(const Endpoint& endpoint, const FieldInfo& field, const std::string& value) {
  const ApiError error = refusal(endpoint.parse, body_with(endpoint, field, value));
  ASSERT_TRUE(error.field) << value.substr(0, 80);
  const std::string& param = *error.field;
  const bool is_named = param.starts_with(field.name) || (field.name == "best_of" && param == "n");
  EXPECT_TRUE(is_named) << param << " " << value.substr(0, 80);
  EXPECT_EQ(openai_kind(error.reason).status, 400);
}

TEST(FieldLimits, EveryFieldHasAType) {
  for_each_field(
      [](const Endpoint&, const FieldInfo& field) { EXPECT_NE(field.type.kind, FieldKind::any); });
}

TEST(FieldLimits, AValueOfAWrongKindIsRefused) {
  for_each_field([](const Endpoint& endpoint, const FieldInfo& field) {
    for (const auto& [kind, value] : kOfEachKind) {
      if (!takes(field.type, kind)) expect_refused(endpoint, field, value);
    }
  });
}

TEST(FieldLimits, BoundsAreTakenAndWhatIsPastThemIsNot) {
  for_each_field([](const Endpoint& endpoint, const FieldInfo& field) {
    Values values;
    add_values(field.type, values);
    for (const std::string& value : values.taken) {
      EXPECT_NO_THROW(endpoint.parse(body_with(endpoint, field, value))) << value.substr(0, 80);
    }
    for (const std::string& value : values.refused) expect_refused(endpoint, field, value);
  });
}

TEST(FieldLimits, DefaultsAreOfTheType) {
  for_each_field([](const Endpoint& endpoint, const FieldInfo& field) {
    std::string value;
    if (const auto* flag = std::get_if<bool>(&field.by_default)) value = *flag ? "true" : "false";
    if (const auto* whole = std::get_if<int64_t>(&field.by_default)) value = std::to_string(*whole);
    if (const auto* real = std::get_if<double>(&field.by_default)) value = fmt::format("{}", *real);
    if (const auto* text = std::get_if<std::string_view>(&field.by_default)) {
      value = fmt::format("\"{}\"", *text);
    }
    if (value.empty()) return;
    EXPECT_NO_THROW(endpoint.parse(body_with(endpoint, field, value)));
  });
}

TEST(FieldLimits, AliasesAreFieldsOfTheSameType) {
  for_each_field([](const Endpoint& endpoint, const FieldInfo& field) {
    if (field.alias_of.empty()) return;
    const auto named =
        std::find_if(endpoint.fields.begin(), endpoint.fields.end(),
                     [&](const auto& other) { return other.name == field.alias_of; });
    ASSERT_NE(named, endpoint.fields.end());
    EXPECT_EQ(named->type.kind, field.type.kind);
    EXPECT_EQ(named->type.max, field.type.max);
    EXPECT_EQ(named->type.range.max, field.type.range.max);
  });
}

TEST(RequestTerms, BoundTheChoices) {
  const RequestTerms terms{.max_choices = 4};
  const auto parse = [&](const std::string& body) {
    parse_completion_request(parse_json(body, ""), terms);
  };
  EXPECT_NO_THROW(parse(completion_body("\"n\": 4, \"best_of\": 4")));
  const ApiError error = refusal(parse, completion_body("\"n\": 5"));
  EXPECT_EQ(error.field, "n");
  EXPECT_EQ(error.message, "n: found 5, expected an integer from 1 to 4");
}

TEST(RequestTerms, UnknownFieldsCanBeLeftAlone) {
  std::vector<std::string> unknown;
  const RequestTerms terms{
      .on_unknown_field = [&](const std::string& path) { unknown.push_back(path); }};
  const std::string body =
      R"({"messages": [{"role": "user", "content": "x", "mood": 1}], "stream": true,
          "stream_options": {"colour": 2}, "temprature": 1})";
  parse_chat_request(parse_json(body, ""), terms);
  EXPECT_THAT(unknown, testing::UnorderedElementsAre("messages[0].mood", "stream_options.colour",
                                                     "temprature"));
  EXPECT_EQ(code_of(refusal(chat, body)), "unknown_parameter");
}

}  // namespace
}  // namespace paceline
