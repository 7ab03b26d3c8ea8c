#include "protocol/decision_request.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/request_error.h"
#include "protocol/client_fields.h"
#include "protocol/decision_input.h"

namespace paceline {
namespace {

constexpr NumberRange kTemperatures = {0.01, 100};
constexpr FieldType kChoiceValueKinds[] = {kAnyText, kBoolean};
constexpr FieldType kChoiceValue = one_of_type(kChoiceValueKinds, "a string or a boolean");

struct OptionFields {
  QuestionOption option;
};

constexpr FieldDef<OptionFields> kChoiceFields[] = {
    {.name = "value",
     .type = kChoiceValue,
     .is_required = true,
     .help = "A string or a boolean; \"true\" and true differ.",
     .read =
         [](const FieldValue& v, OptionFields& t) {
           if (v.json().is_bool()) {
             t.option.value = v.boolean();
           } else {
             t.option.value = v.text();
           }
         }},
    {.name = "description",
     .type = kAnyText,
     .help = "When it applies.",
     .read = [](const FieldValue& v, OptionFields& t) { t.option.description = v.text(); }},
};
constexpr FieldDef<OptionFields> kLevelFields[] = {
    {.name = "label",
     .type = kAnyText,
     .is_required = true,
     .help = "The level's name.",
     .read = [](const FieldValue& v, OptionFields& t) { t.option.value = v.text(); }},
    {.name = "description",
     .type = kAnyText,
     .help = "When it applies.",
     .read = [](const FieldValue& v, OptionFields& t) { t.option.description = v.text(); }},
};
FieldList choice_fields() { return list_fields<OptionFields>(kChoiceFields); }
FieldList level_fields() { return list_fields<OptionFields>(kLevelFields); }
constexpr FieldType kChoice = object_type(choice_fields);
constexpr FieldType kLevel = object_type(level_fields);

struct QuestionFields {
  std::optional<std::string> name;
  DecisionQuestion question;
};

template <const FieldDef<OptionFields> (&kFields)[2]>
void read_options(const FieldValue& value, QuestionFields& target) {
  for (const FieldValue& item : value.items()) {
    OptionFields fields;
    RequestReader reader(item);
    reader.read<OptionFields>(kFields, fields);
    reader.finish();
    target.question.options.push_back(std::move(fields.option));
  }
}

// In the order of QuestionKind.
constexpr std::string_view kQuestionTypes[] = {"predicate", "choice", "score"};

constexpr FieldDef<QuestionFields> kQuestionFields[] = {
    {.name = "type",
     .type = word_type(kQuestionTypes),
     .is_required = true,
     .help = "predicate: whether it is true; choice: one of several values; score: one of several "
             "levels.",
     .read =
         [](const FieldValue& v, QuestionFields& t) {
           t.question.kind = static_cast<QuestionKind>(
               std::find(std::begin(kQuestionTypes), std::end(kQuestionTypes), v.text()) -
               std::begin(kQuestionTypes));
         }},
    {.name = "instructions",
     .type = kDecisionText,
     .is_required = true,
     .help = "What is asked: a string, or parts of type input_text and input_json.",
     .read = [](const FieldValue& v,
                QuestionFields& t) { t.question.instructions = read_decision_text(v); }},
    {.name = "name",
     .type = kAnyText,
     .help = "Comes back with the answer.",
     .read = [](const FieldValue& v, QuestionFields& t) { t.name = v.text(); }},
    {.name = "choices",
     .type = array_type(kChoice, 2, kMaxChoiceOptions),
     .help = "Of a choice: different values.",
     .read = read_options<kChoiceFields>},
    {.name = "levels",
     .type = array_type(kLevel, 2, kMaxScoreLevels),
     .help = "Of a score: the lowest first.",
     .read = read_options<kLevelFields>},
};
FieldList question_fields() { return list_fields<QuestionFields>(kQuestionFields); }
constexpr FieldType kQuestion = object_type(question_fields);

// The member that the question's type has, and no other.
void check_question_members(const FieldValue& value, QuestionKind kind) {
  constexpr std::pair<std::string_view, QuestionKind> kMembers[] = {
      {"choices", QuestionKind::choice}, {"levels", QuestionKind::score}};
  for (const auto& [member, its_kind] : kMembers) {
    const std::string path = fmt::format("{}.{}", value.path(), member);
    const bool is_there = value.at().find(member).has_value();
    if (is_there && kind != its_kind) {
      throw RequestError(path, ErrorReason::invalid_value,
                         fmt::format("{}: only allowed with type {}", path,
                                     kQuestionTypes[static_cast<size_t>(its_kind)]));
    }
    if (!is_there && kind == its_kind) {
      throw RequestError(path, ErrorReason::missing_parameter, path + ": missing");
    }
  }
}

void read_questions(const FieldValue& value, DecisionRequest& target) {
  for (const FieldValue& item : value.items()) {
    QuestionFields fields;
    RequestReader reader(item);
    reader.read<QuestionFields>(kQuestionFields, fields);
    reader.finish();
    check_question_members(item, fields.question.kind);
    target.questions.push_back(std::move(fields.question));
    target.names.push_back(std::move(fields.name));
  }
}

constexpr FieldDef<DecisionRequest> kDecisionFields[] = {
    {.name = "input",
     .type = kDecisionInput,
     .is_required = true,
     .help = "A string, or messages, function calls and their outputs, which become one text.",
     .read = [](const FieldValue& v, DecisionRequest& t) { t.input = read_decision_input(v); }},
    {.name = "questions",
     .type = array_type(kQuestion, 1, kMaxQuestions),
     .is_required = true,
     .help = "1 to 400 questions, answered in this order.",
     .read = read_questions},
};

// Paceline's own, of both APIs.
constexpr FieldDef<DecisionRequest> kCalibrationFields[] = {
    {.name = "temperature",
     .type = number_type(kTemperatures),
     .by_default = 1.0,
     .help = "Divides the options' log-probabilities: above 1 answers are less certain.",
     .read = [](const FieldValue& v, DecisionRequest& t) { t.temperature = v.number(); }},
    {.name = "content_free_input",
     .type = kAnyText,
     .help = "A text that says nothing, such as N/A: what the model answers about it is subtracted "
             "as its prior.",
     .read = [](const FieldValue& v, DecisionRequest& t) { t.content_free_input = v.text(); }},
};

constexpr std::string_view kSystemOneWords[] = {"noul", "choice", "score"};

// The members of TypeSafe's questions.
struct SystemOneQuestion {
  DecisionQuestion question;
  const Json* criteria = nullptr;
};

constexpr FieldDef<SystemOneQuestion> kSystemOneQuestionFields[] = {
    {.name = "type",
     .type = only_words_type(kSystemOneWords),
     .is_required = true,
     .help = "noul: yes or no; choice: one of several names; score: one of several levels.",
     .read =
         [](const FieldValue& v, SystemOneQuestion& t) {
           t.question.kind = static_cast<QuestionKind>(
               std::find(std::begin(kSystemOneWords), std::end(kSystemOneWords), v.text()) -
               std::begin(kSystemOneWords));
         }},
    {.name = "instructions",
     .type = kAnyContent,
     .help = "What is asked.",
     .read = [](const FieldValue& v,
                SystemOneQuestion& t) { t.question.instructions = read_content_text(v.json()); }},
    {.name = "criteria",
     .type = kCriteria,
     .help = "Of a noul {true, false}, what they mean; of a choice an object of names and "
             "descriptions, or null; of a score an array of levels, the lowest first.",
     .read = [](const FieldValue& v, SystemOneQuestion& t) { t.criteria = &v.json(); }},
};

[[noreturn]] void refuse_criteria(const std::string& path, std::string_view expected) {
  throw RequestError(path, ErrorReason::invalid_value,
                     fmt::format("{}: expected {}", path, expected));
}

void add_noul_criteria(const Json& criteria, const std::string& path, DecisionQuestion& question) {
  if (!criteria.is_object()) refuse_criteria(path, "an object with true and false");
  question.options = {{.value = true}, {.value = false}};
  for (const auto& [key, description] : *criteria.object()) {
    if (key != "true" && key != "false") refuse_criteria(path, "an object with true and false");
    question.options[key == "true" ? 0 : 1].description = read_content_text(description);
  }
}

void add_choice_criteria(const Json& criteria, const std::string& path,
                         DecisionQuestion& question) {
  constexpr std::string_view kExpected = "an object of 2 to 255 names and descriptions";
  if (!criteria.is_object()) refuse_criteria(path, kExpected);
  for (const auto& [key, description] : *criteria.object()) {
    question.options.push_back({.value = key, .description = read_content_text(description)});
  }
  if (question.options.size() < 2 || question.options.size() > kMaxChoiceOptions) {
    refuse_criteria(path, kExpected);
  }
}

void add_score_criteria(const Json& criteria, const std::string& path, DecisionQuestion& question) {
  constexpr std::string_view kExpected = "an array of 2 to 10 levels";
  if (!criteria.is_array()) refuse_criteria(path, kExpected);
  for (const Json& level : *criteria.array()) {
    question.options.push_back({.value = read_content_text(level)});
  }
  if (question.options.size() < 2 || question.options.size() > kMaxScoreLevels) {
    refuse_criteria(path, kExpected);
  }
}

DecisionQuestion read_system_one_question(const FieldValue& value) {
  SystemOneQuestion fields;
  RequestReader reader(value);
  reader.read<SystemOneQuestion>(kSystemOneQuestionFields, fields);
  reader.finish();
  DecisionQuestion& question = fields.question;
  const std::string path = value.path() + ".criteria";
  if (fields.criteria == nullptr) {
    if (question.kind != QuestionKind::predicate) {
      throw RequestError(path, ErrorReason::missing_parameter, path + ": missing");
    }
  } else if (question.kind == QuestionKind::predicate) {
    add_noul_criteria(*fields.criteria, path, question);
  } else if (question.kind == QuestionKind::choice) {
    add_choice_criteria(*fields.criteria, path, question);
  } else {
    add_score_criteria(*fields.criteria, path, question);
  }
  const bool is_described =
      std::any_of(question.options.begin(), question.options.end(),
                  [](const QuestionOption& option) { return !option.description.empty(); });
  if (question.kind == QuestionKind::predicate && question.instructions.empty() && !is_described) {
    const std::string missing = value.path() + ".instructions";
    throw RequestError(missing, ErrorReason::missing_parameter,
                       missing + ": missing, and criteria describes neither outcome");
  }
  return std::move(question);
}
FieldList system_one_question_fields() {
  return list_fields<SystemOneQuestion>(kSystemOneQuestionFields);
}
constexpr FieldType kSystemOneQuestion = object_type(system_one_question_fields);

void read_system_one_questions(const FieldValue& value, DecisionRequest& target) {
  for (const auto& [name, member] : value.object()) {
    const FieldValue question(value.at().at(name), value.terms());
    question.check(kSystemOneQuestion);
    target.questions.push_back(read_system_one_question(question));
    target.names.emplace_back(name);
  }
}

constexpr FieldDef<DecisionRequest> kSystemOneFields[] = {
    {.name = "state",
     .type = kAnyContent,
     .is_required = true,
     .help = "What the questions are about: a string, or JSON, which is written as text.",
     .read = [](const FieldValue& v,
                DecisionRequest& t) { t.input = read_content_text(v.json()); }},
    {.name = "questions",
     .type =
         {.kind = FieldKind::object, .min = 1, .max = kMaxQuestions, .item = &kSystemOneQuestion},
     .is_required = true,
     .help = "1 to 400 questions by their names, under which the answers come back.",
     .read = read_system_one_questions},
    {.name = "assets", .use = FieldUse::refused, .help = "images aren't supported"},
};

DecisionRequest parse_decisions(FieldTable<DecisionRequest> fields, const Json& body,
                                const RequestTerms& terms) {
  DecisionRequest request;
  RequestReader reader(body, terms);
  reader.read(common_fields(), request.common);
  read_client_fields(FieldLevel::request, reader);
  reader.read(fields, request);
  reader.read<DecisionRequest>(kCalibrationFields, request);
  reader.finish();
  return request;
}

FieldList listed_decisions(FieldTable<DecisionRequest> fields) {
  FieldList list;
  append_fields(common_fields(), list);
  append_client_fields(FieldLevel::request, list);
  append_fields(fields, list);
  append_fields<DecisionRequest>(kCalibrationFields, list);
  return list;
}

}  // namespace

DecisionRequest parse_decision_request(const Json& body, const RequestTerms& terms) {
  return parse_decisions(kDecisionFields, body, terms);
}

DecisionRequest parse_system_one_request(const Json& body, const RequestTerms& terms) {
  DecisionRequest request = parse_decisions(kSystemOneFields, body, terms);
  request.input_name = "state";
  return request;
}

FieldList decision_request_fields() { return listed_decisions(kDecisionFields); }
FieldList system_one_request_fields() { return listed_decisions(kSystemOneFields); }

DecideOptions decide_options(const DecisionRequest& request) {
  return {.temperature = request.temperature,
          .content_free_input = request.content_free_input,
          .lora = request.common.lora,
          .cache_salt = request.common.cache_salt,
          .priority = request.common.priority,
          .input_name = request.input_name,
          .cancelled = {}};
}

}  // namespace paceline
