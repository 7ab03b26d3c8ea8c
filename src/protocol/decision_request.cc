#include "protocol/decision_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/json_writer.h"
#include "base/request_error.h"
#include "protocol/chat_messages.h"

namespace paceline {
namespace {

// TypeSafe's texts: a string, or an object or array, which is written as JSON.
constexpr FieldType kAnyArray = array_type(kAnyValue, 0, kNoMaximum);
constexpr FieldType kAnyContent =
    one_of_type<kAnyText, kAnyObject, kAnyArray>("a string, an object or an array");
constexpr FieldType kCriteria = one_of_type<kAnyObject, kAnyArray>("an object or an array");

// null is an empty text.
std::string read_content_text(const Json& content) {
  if (content.is_null()) return "";
  return content.is_string() ? *content.string() : to_json(content);
}

// OpenAI's: a string, or parts of type input_text, input_json, output_text and refusal.
constexpr FieldType kJsonData =
    one_of_type<kAnyObject, kAnyArray>("an object or an array of objects");
constexpr std::string_view kPartWords[] = {"input_text", "input_json", "output_text", "refusal"};
constexpr std::string_view kItemWords[] = {"message", "function_call", "function_call_output",
                                           "custom_tool_call", "custom_tool_call_output"};
constexpr std::string_view kDecisionRoles[] = {"user", "developer", "system", "assistant"};

constexpr KindNeed kPartNeeds[] = {{"input_text", {"text"}},
                                   {"input_json", {"data"}},
                                   {"output_text", {"text"}},
                                   {"refusal", {"refusal"}}};

struct DecisionPart {
  std::string type;
  std::optional<std::string> text;
};

constexpr FieldDef<DecisionPart> kDecisionPartFields[] = {
    required("type", only_words_type(kPartWords), "input_text, input_json, output_text or refusal.",
             store<&DecisionPart::type>),
    field("text", kAnyText, "Of a text.", store<&DecisionPart::text>),
    field("refusal", kAnyText, "Of a refusal.", store<&DecisionPart::text>),
    field("data", kJsonData, "Of input_json.",
          [](const FieldValue& v, DecisionPart& t) { t.text = to_json(v.json()); }),
};

std::string decision_part_text(const FieldValue& value) {
  const auto part = read_object<kDecisionPartFields, FieldLevel::part>(value);
  require_members(value, *find_need(kPartNeeds, part.type));
  return *part.text;
}

constexpr FieldType kDecisionPart = object_type(fields_of<kDecisionPartFields, FieldLevel::part>);
constexpr FieldType kDecisionText =
    text_or_array_type<kDecisionPart>("a string or an array of parts");

// Parts are joined with line breaks; JSON is written on one line. Throws RequestError for images.
std::string read_decision_text(const FieldValue& value) {
  if (value.json().is_string()) return value.text();
  std::string text;
  for (const FieldValue& part : value.items()) {
    if (!text.empty()) text += "\n";
    text += decision_part_text(part);
  }
  return text;
}

struct DecisionItem {
  std::string type = "message";
  std::string role;
  std::string text;  // of a message, a call or an output
  std::string name;
  std::string call_id;
};

void take_item_content(const FieldValue& value, DecisionItem& item) {
  item.text = read_decision_text(value);
}

constexpr FieldDef<DecisionItem> kDecisionItemFields[] = {
    field("type", word_type(kItemWords),
          "message, function_call, function_call_output, custom_tool_call or "
          "custom_tool_call_output.",
          {.by_default = "message"}, store<&DecisionItem::type>),
    field("role", word_type(kDecisionRoles), "Of a message.", store<&DecisionItem::role>),
    field("content", kDecisionText, "Of a message.", take_item_content),
    field("name", kAnyText, "Of a call.", store<&DecisionItem::name>),
    field("arguments", kAnyText, "Of a function call.", store<&DecisionItem::text>),
    field("input", kAnyText, "Of a custom tool's call.", store<&DecisionItem::text>),
    field("output", kDecisionText, "Of a call.", take_item_content),
    field("call_id", kAnyText, "Of a call and of its output.", store<&DecisionItem::call_id>),
    ignored("status", kAnyText, "Items are complete."),
    ignored("namespace", kAnyText, "Calls are known by their names."),
};

constexpr FieldType kDecisionItem =
    object_type(fields_of<kDecisionItemFields, FieldLevel::message>);
constexpr FieldType kDecisionInput =
    text_or_array_type<kDecisionItem, 1>("a string or an array of items");

constexpr KindNeed kItemNeeds[] = {
    {"message", {"role", "content"}},
    {"function_call", {"name", "call_id", "arguments"}},
    {"custom_tool_call", {"name", "call_id", "input"}},
    {"function_call_output", {"call_id", "output"}},
    {"custom_tool_call_output", {"call_id", "output"}},
};

// One message of a user is its text alone. Other items begin with a line that says whose they are.
// Throws RequestError for an output whose call isn't there.
std::string read_decision_input(const FieldValue& value) {
  if (value.json().is_string()) return value.text();
  const std::vector<FieldValue> items = value.items();
  std::map<std::string, std::string> called;  // names by call_id
  std::string text;
  for (const FieldValue& one : items) {
    const auto item = read_object<kDecisionItemFields, FieldLevel::message>(one);
    require_members(one, *find_need(kItemNeeds, item.type));
    if (items.size() == 1 && item.role == "user") return item.text;
    if (!text.empty()) text += "\n\n";
    if (item.type == "message") {
      text += fmt::format("{}:\n{}", item.role, item.text);
    } else if (item.type.ends_with("_call")) {
      called[item.call_id] = item.name;
      text += fmt::format("assistant calls {}:\n{}", item.name, item.text);
    } else {
      const auto call = called.find(item.call_id);
      if (call == called.end()) {
        throw invalid_field(
            one.path() + ".call_id",
            found_instead(json_quote(item.call_id), "the call_id of an earlier call"));
      }
      text += fmt::format("{} answers:\n{}", call->second, item.text);
    }
  }
  return text;
}

constexpr NumberRange kTemperatures = {0.01, 100};
constexpr FieldType kChoiceValue = one_of_type<kAnyText, kBoolean>("a string or a boolean");

constexpr FieldDef<QuestionOption> kChoiceFields[] = {
    required("value", kChoiceValue, "A string or a boolean; \"true\" and true differ.",
             [](const FieldValue& v, QuestionOption& t) {
               if (v.json().is_bool()) {
                 t.value = v.boolean();
               } else {
                 t.value = v.text();
               }
             }),
    field("description", kAnyText, "When it applies.", store<&QuestionOption::description>),
};
constexpr FieldDef<QuestionOption> kLevelFields[] = {
    required("label", kAnyText, "The level's name.",
             [](const FieldValue& v, QuestionOption& t) { t.value = v.text(); }),
    field("description", kAnyText, "When it applies.", store<&QuestionOption::description>),
};
constexpr FieldType kChoice = object_type(fields_of<kChoiceFields>);
constexpr FieldType kLevel = object_type(fields_of<kLevelFields>);

struct QuestionFields : DecisionQuestion {
  std::optional<std::string> name;
};

// In the order of QuestionKind.
constexpr std::string_view kQuestionTypes[] = {"predicate", "choice", "score"};

constexpr FieldDef<QuestionFields> kQuestionFields[] = {
    required("type", word_type(kQuestionTypes),
             "predicate: whether it is true; choice: one of several values; score: one of several "
             "levels.",
             [](const FieldValue& v, QuestionFields& t) {
               t.kind = v.one_of<QuestionKind>(kQuestionTypes);
             }),
    required(
        "instructions", kDecisionText,
        "What is asked: a string, or parts of type input_text and input_json.",
        [](const FieldValue& v, QuestionFields& t) { t.instructions = read_decision_text(v); }),
    field("name", kAnyText, "Comes back with the answer.", store<&QuestionFields::name>),
    field(
        "choices", array_type(kChoice, 2, kMaxChoiceOptions), "Of a choice: different values.",
        [](const FieldValue& v, QuestionFields& t) { t.options = read_objects<kChoiceFields>(v); }),
    field(
        "levels", array_type(kLevel, 2, kMaxScoreLevels), "Of a score: the lowest first.",
        [](const FieldValue& v, QuestionFields& t) { t.options = read_objects<kLevelFields>(v); }),
};
constexpr FieldType kQuestion = object_type(fields_of<kQuestionFields>);

// The member that the question's type has, and no other.
void check_question_members(const FieldValue& value, QuestionKind kind) {
  constexpr std::pair<std::string_view, QuestionKind> kMembers[] = {
      {"choices", QuestionKind::choice}, {"levels", QuestionKind::score}};
  for (const auto& [member, its_kind] : kMembers) {
    if (kind == its_kind) {
      RequestReader(value).require(member);
    } else if (value.at().contains(member)) {
      throw invalid_field(value.at().name_of(member), "only allowed with type {}",
                          kQuestionTypes[static_cast<size_t>(its_kind)]);
    }
  }
}

void read_questions(const FieldValue& value, DecisionRequest& target) {
  for (const FieldValue& item : value.items()) {
    auto question = read_object<kQuestionFields>(item);
    check_question_members(item, question.kind);
    target.names.push_back(std::move(question.name));
    target.questions.push_back(std::move(question));
  }
}

constexpr FieldDef<DecisionRequest> kDecisionFields[] = {
    required("input", kDecisionInput,
             "A string, or messages, function calls and their outputs, which become one text.",
             [](const FieldValue& v, DecisionRequest& t) { t.input = read_decision_input(v); }),
    required("questions", array_type(kQuestion, 1, kMaxQuestions),
             "1 to 400 questions, answered in this order.", read_questions),
};

// Paceline's own, of both APIs.
constexpr FieldDef<DecisionRequest> kCalibrationFields[] = {
    field("temperature", number_type(kTemperatures),
          "Divides the options' log-probabilities: above 1 answers are less certain.",
          {.by_default = 1.0}, store<&DecisionRequest::temperature>),
    field("content_free_input", kAnyText,
          "A text that says nothing, such as N/A: what the model answers about it is subtracted as "
          "its prior.",
          store<&DecisionRequest::content_free_input>),
};

constexpr std::string_view kSystemOneWords[] = {"noul", "choice", "score"};

// The members of TypeSafe's questions.
struct SystemOneQuestion : DecisionQuestion {
  const Json* criteria = nullptr;
};

constexpr FieldDef<SystemOneQuestion> kSystemOneQuestionFields[] = {
    required("type", only_words_type(kSystemOneWords),
             "noul: yes or no; choice: one of several names; score: one of several levels.",
             [](const FieldValue& v, SystemOneQuestion& t) {
               t.kind = v.one_of<QuestionKind>(kSystemOneWords);
             }),
    field("instructions", kAnyContent, "What is asked.",
          [](const FieldValue& v, SystemOneQuestion& t) {
            t.instructions = read_content_text(v.json());
          }),
    field(
        "criteria", kCriteria,
        "Of a noul {true, false}, what they mean; of a choice an object of names and descriptions, "
        "or null; of a score an array of levels, the lowest first.",
        [](const FieldValue& v, SystemOneQuestion& t) { t.criteria = &v.json(); }),
};

// What criteria are, in the order of QuestionKind.
constexpr std::string_view kCriteriaWords[] = {"an object with true and false",
                                               "an object of 2 to 255 names and descriptions",
                                               "an array of 2 to 10 levels"};

// False when the criteria aren't what the question's kind has.
bool add_criteria(const Json& criteria, DecisionQuestion& question) {
  std::vector<QuestionOption>& options = question.options;
  if (question.kind == QuestionKind::score) {
    if (!criteria.is_array()) return false;
    for (const Json& level : *criteria.array()) {
      options.push_back({.value = read_content_text(level)});
    }
    return options.size() >= 2 && options.size() <= kMaxScoreLevels;
  }
  if (!criteria.is_object()) return false;
  if (question.kind == QuestionKind::choice) {
    for (const auto& [key, description] : *criteria.object()) {
      options.push_back({.value = key, .description = read_content_text(description)});
    }
    return options.size() >= 2 && options.size() <= kMaxChoiceOptions;
  }
  options = {{.value = true}, {.value = false}};
  for (const auto& [key, description] : *criteria.object()) {
    if (key != "true" && key != "false") return false;
    options[key == "true" ? 0 : 1].description = read_content_text(description);
  }
  return true;
}

DecisionQuestion read_system_one_question(const FieldValue& value) {
  auto question = read_object<kSystemOneQuestionFields>(value);
  if (question.criteria == nullptr) {
    if (question.kind != QuestionKind::predicate) RequestReader(value).require("criteria");
  } else if (!add_criteria(*question.criteria, question)) {
    throw invalid_field(value.path() + ".criteria", "expected {}",
                        kCriteriaWords[static_cast<size_t>(question.kind)]);
  }
  const bool is_described =
      std::any_of(question.options.begin(), question.options.end(),
                  [](const QuestionOption& option) { return !option.description.empty(); });
  if (question.kind == QuestionKind::predicate && question.instructions.empty() && !is_described) {
    const std::string missing = value.path() + ".instructions";
    throw RequestError(missing, ErrorReason::missing_parameter,
                       missing + ": missing, and criteria describes neither outcome");
  }
  return question;
}

constexpr FieldType kSystemOneQuestion = object_type(fields_of<kSystemOneQuestionFields>);

void read_system_one_questions(const FieldValue& value, DecisionRequest& target) {
  for (const auto& [name, member] : value.object()) {
    target.questions.push_back(read_system_one_question(value.member(name)));
    target.names.emplace_back(name);
  }
}

constexpr FieldDef<DecisionRequest> kSystemOneFields[] = {
    required(
        "state", kAnyContent,
        "What the questions are about: a string, or JSON, which is written as text.",
        [](const FieldValue& v, DecisionRequest& t) { t.input = read_content_text(v.json()); }),
    required(
        "questions",
        {.kind = FieldKind::object, .min = 1, .max = kMaxQuestions, .item = &kSystemOneQuestion},
        "1 to 400 questions by their names, under which the answers come back.",
        read_system_one_questions),
    refused("assets", "images aren't supported"),
};

}  // namespace

DecisionRequest parse_decision_request(const Json& body, const RequestTerms& terms) {
  return read_common_body<kDecisionFields, kCalibrationFields>(body, terms);
}

DecisionRequest parse_system_one_request(const Json& body, const RequestTerms& terms) {
  auto request = read_common_body<kSystemOneFields, kCalibrationFields>(body, terms);
  request.input_name = "state";
  return request;
}

FieldList decision_request_fields() {
  return common_and_own_fields<kDecisionFields, kCalibrationFields>();
}
FieldList system_one_request_fields() {
  return common_and_own_fields<kSystemOneFields, kCalibrationFields>();
}

DecideOptions decide_options(const DecisionRequest& request) {
  return {.temperature = request.temperature,
          .content_free_input = request.content_free_input,
          .lora = request.common.lora,
          .cache_salt = request.common.cache_salt,
          .priority = request.common.priority,
          .input_name = request.input_name};
}

}  // namespace paceline
