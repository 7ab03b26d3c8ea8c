// Decisions: typed questions about one input, each answered with the probabilities of its options.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <variant>
#include <vector>

#include "paceline/results.h"

namespace paceline {

// Of a choice's option: "true" and true differ.
using ChoiceValue = std::variant<std::string, bool>;

struct QuestionOption {
  ChoiceValue value = {};
  std::string description = {};
};

enum class QuestionKind : uint8_t {
  predicate,  // whether something is true
  choice,     // one of several values
  score,      // one of several levels in ascending order
};

struct DecisionQuestion {
  QuestionKind kind = QuestionKind::predicate;
  std::string instructions = {};  // what is asked; needed where there are no options
  // Of a choice 2 to 255 different values; of a score 2 to 10 levels, the lowest first; of a
  // predicate none, or two whose descriptions say what yes and what no means.
  std::vector<QuestionOption> options = {};
};

constexpr size_t kMaxQuestions = 400;
constexpr size_t kMaxChoiceOptions = 255;
constexpr size_t kMaxScoreLevels = 10;

struct DecideOptions {
  // Divides the options' log-probabilities: above 1 answers are less certain. 0.01 to 100.
  float temperature = 1;
  // A text that says nothing, "N/A". Each question is asked about it, too, and the
  // log-probabilities found there are subtracted: what the model prefers whatever the input is
  // (Zhao et al., "Calibrate Before Use", 2021).
  std::optional<std::string> content_free_input = {};
  std::string lora = {};             // as GenerateOptions::lora
  std::string cache_salt = {};       // as GenerateOptions::cache_salt
  int32_t priority = 0;              // smaller is served first
  std::string input_name = "input";  // in messages
  std::stop_token cancelled = {};    // takes effect within one step: Error cancelled
};

struct DecisionAnswer {
  // Of the options in their order, sum 1; of a predicate those of yes and of no.
  std::vector<float> probabilities;
  size_t best = 0;  // the likeliest option; the first one of equals
  // The expected level, counted from 0; of a predicate and a choice 0.
  float score = 0;
  // (n * p - 1) / (n - 1) of n options, the likeliest of probability p: 0 where all are equally
  // likely, 1 where one is certain.
  float confidence = 0;
  // As the model has them, before calibration; those of a label's tokens are summed.
  std::vector<float> logprobs;
  float label_mass = 0;          // the probability that the model's answer is one of the labels
  bool argmax_is_label = false;  // whether its likeliest answer, token by token, is one of them
};

struct Decisions {
  std::vector<DecisionAnswer> answers;  // in the order of the questions
  // The input counts once, and so does every question.
  Usage usage;
};

}  // namespace paceline
