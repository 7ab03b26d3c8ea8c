// Classifications, embeddings, scores and decisions of many items.
#include <fmt/format.h>

#include "capi/call_status.h"
#include "capi/completion.h"
#include "capi/handles.h"
#include "capi/item_list.h"
#include "capi/requests.h"

namespace paceline::capi {
namespace {

paceline_classification c_classification(const Classification& from, ResultStore& store) {
  paceline_classification to = {};
  to.token_id = from.token_id ? *from.token_id : -1;
  if (from.label) to.label = store.keep(*from.label);
  to.scores = store.keep(from.scores);
  to.num_scores = from.scores.size();
  to.labels = store.keep_texts(from.labels);
  to.num_labels = from.labels.size();
  return to;
}

paceline_vector c_vector(const std::vector<float>& values, const Usage& usage, ResultStore& store) {
  paceline_vector to = {};
  to.values = store.keep(values);
  to.num_values = values.size();
  to.prompt_tokens = usage.prompt_tokens;
  return to;
}

paceline_decision c_decision(const Decisions& from, ResultStore& store) {
  std::vector<paceline_answer> answers;
  for (const DecisionAnswer& answer : from.answers) {
    answers.push_back({.probabilities = store.keep(answer.probabilities),
                       .num_probabilities = answer.probabilities.size(),
                       .best = answer.best,
                       .score = answer.score,
                       .confidence = answer.confidence});
  }
  paceline_decision to = {};
  to.num_answers = answers.size();
  to.answers = store.keep(std::move(answers));
  return to;
}

QuestionKind kind_of(const paceline_question& question, size_t index) {
  switch (question.kind) {
    case PACELINE_PREDICATE:
      return QuestionKind::predicate;
    case PACELINE_QUESTION_CHOICE:
      return QuestionKind::choice;
    case PACELINE_QUESTION_SCORE:
      return QuestionKind::score;
  }
  throw Error(ErrorCode::invalid,
              fmt::format("questions[{}].kind: found {}, expected 0 to 2", index, question.kind));
}

std::vector<DecisionQuestion> questions_of(const paceline_question* given, size_t count) {
  if (count > 0) check_given(given, "questions");
  std::vector<DecisionQuestion> questions;
  for (size_t i = 0; i < count; ++i) {
    const paceline_question& from = given[i];
    DecisionQuestion& to = questions.emplace_back();
    to.kind = kind_of(from, i);
    if (from.instructions != nullptr) to.instructions = from.instructions;
    const auto values = texts_of(from.values, from.num_values, "question.values");
    for (size_t k = 0; k < values.size(); ++k) {
      const bool is_described = from.descriptions != nullptr && from.descriptions[k] != nullptr;
      to.options.push_back(
          {.value = values[k], .description = is_described ? from.descriptions[k] : std::string()});
    }
  }
  return questions;
}

}  // namespace
}  // namespace paceline::capi

using namespace paceline;
using namespace paceline::capi;

paceline_status paceline_classify(paceline_model* model, const paceline_prompt* prompts,
                                  size_t count, const char* const* labels, size_t num_labels,
                                  const paceline_request_options* options,
                                  const paceline_classifications** classifications) {
  return guarded([&] {
    begin_result(classifications, "classifications");
    LLM& llm = llm_of(model);
    ClassifyOptions asked{.labels = texts_of(labels, num_labels, "labels"),
                          .want_token_id = num_labels == 0};
    take_request_options(request_options(options), asked.sampling);
    asked.sampling.temperature = 0.0F;
    *classifications = item_list<paceline_classifications, paceline_classification>(
        llm.classify(prompts_of(prompts, count), asked), c_classification);
  });
}

void paceline_free_classifications(const paceline_classifications* classifications) {
  free_owned(classifications);
}

paceline_status paceline_embed(paceline_model* model, const paceline_prompt* prompts, size_t count,
                               int64_t dimensions, const paceline_request_options* options,
                               const paceline_vectors** vectors) {
  return guarded([&] {
    begin_result(vectors, "vectors");
    LLM& llm = llm_of(model);
    EmbedOptions asked;
    take_request_options(request_options(options), asked);
    if (dimensions != 0) asked.dimensions = dimensions;
    *vectors = item_list<paceline_vectors, paceline_vector>(
        llm.embed(prompts_of(prompts, count), asked),
        [](const Embedding& found, ResultStore& store) {
          return c_vector(found.values, found.usage, store);
        });
  });
}

paceline_status paceline_score_pairs(paceline_model* model, const char* query,
                                     const char* const* documents, size_t count,
                                     const paceline_request_options* options,
                                     const paceline_vectors** scores) {
  return guarded([&] {
    begin_result(scores, "scores");
    LLM& llm = llm_of(model);
    check_given(query, "query");
    std::vector<TextPair> pairs;
    for (std::string& document : texts_of(documents, count, "documents")) {
      pairs.push_back({.first = query,
                       .second = std::move(document),
                       .name = fmt::format("documents[{}]", pairs.size())});
    }
    PairOptions asked;
    take_request_options(request_options(options), asked);
    const PairScores found = llm.score_pairs(pairs, asked);
    auto list = std::make_unique<Owned<paceline_vectors>>();
    std::vector<paceline_vector> items = {c_vector(found.values, found.usage, list->store)};
    *scores = new_list(std::move(items), std::move(list));
  });
}

void paceline_free_vectors(const paceline_vectors* vectors) { free_owned(vectors); }

paceline_status paceline_score(paceline_model* model, paceline_prompt prompt,
                               int32_t num_top_logprobs, const paceline_request_options* options,
                               const paceline_logprobs** logprobs) {
  return guarded([&] {
    begin_result(logprobs, "logprobs");
    LLM& llm = llm_of(model);
    ScoreOptions asked{.num_top_logprobs = num_top_logprobs};
    take_request_options(request_options(options), asked);
    const auto found = llm.score(prompt_of(prompt), asked);
    auto list = std::make_unique<Owned<paceline_logprobs>>();
    list->count = found.size();
    list->items = c_logprobs(found, list->store);
    *logprobs = list.release();
  });
}

void paceline_free_logprobs(const paceline_logprobs* logprobs) { free_owned(logprobs); }

paceline_status paceline_decide(paceline_model* model, const char* const* inputs, size_t count,
                                const paceline_question* questions, size_t num_questions,
                                float temperature, const paceline_request_options* options,
                                const paceline_decisions** decisions) {
  return guarded([&] {
    begin_result(decisions, "decisions");
    LLM& llm = llm_of(model);
    DecideOptions asked{.temperature = temperature};
    take_request_options(request_options(options), asked);
    *decisions = item_list<paceline_decisions, paceline_decision>(
        llm.decide(texts_of(inputs, count, "inputs"), questions_of(questions, num_questions),
                   asked),
        c_decision);
  });
}

void paceline_free_decisions(const paceline_decisions* decisions) { free_owned(decisions); }
