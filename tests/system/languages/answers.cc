// Answers the requests on standard input through the library in C++: a line each, as
// languages_test.py says.
#include <paceline/llm.h>

#include <cstdio>
#include <iostream>
#include <string>
#include <vector>

using namespace paceline;

namespace {

std::vector<std::string> fields_of(const std::string& line) {
  std::vector<std::string> fields(1);
  for (const char c : line) {
    if (c == '\t') {
      fields.emplace_back();
    } else {
      fields.back() += c;
    }
  }
  return fields;
}

void print_ids(const Completion& completion) {
  for (const int32_t id : completion.token_ids) std::printf("%d ", id);
  std::puts("");
}

void print_numbers(const std::vector<float>& numbers) {
  for (const float number : numbers) std::printf("%.9g ", static_cast<double>(number));
}

GenerateOptions options_of(const std::vector<std::string>& fields) {
  GenerateOptions options{.max_tokens = std::stoll(fields[1]), .temperature = std::stof(fields[2])};
  options.seed = std::stoull(fields[3]);
  return options;
}

void generate(LLM& llm, const std::vector<std::string>& fields) {
  print_ids(llm.generate(fields[4], options_of(fields)).completion());
}

void chat(LLM& llm, const std::vector<std::string>& fields) {
  print_ids(llm.chat({.messages = {{.role = "user", .content = fields[4]}}}, options_of(fields))
                .completion());
}

void batch(LLM& llm, const std::vector<std::string>& fields) {
  std::vector<LLM::Request> requests;
  for (size_t i = 4; i < fields.size(); ++i) requests.push_back({fields[i], options_of(fields)});
  for (const auto& result : llm.batch_generate(requests)) print_ids(std::get<Completion>(result));
}

void classify(LLM& llm, const std::vector<std::string>& fields) {
  const auto found = llm.classify(fields[1], {.labels = {fields.begin() + 2, fields.end()}});
  std::printf("%s ", found.label->c_str());
  print_numbers(found.scores);
  std::puts("");
}

void decide(LLM& llm, const std::vector<std::string>& fields) {
  DecisionQuestion choice{.kind = QuestionKind::choice, .instructions = fields[3]};
  for (size_t i = 4; i < fields.size(); ++i) choice.options.push_back({.value = fields[i]});
  const std::vector<DecisionQuestion> questions = {{.instructions = fields[2]}, choice};
  for (const DecisionAnswer& answer : llm.decide(fields[1], questions).answers) {
    print_numbers(answer.probabilities);
  }
  std::puts("");
}

void score(LLM& llm, const std::vector<std::string>& fields) {
  for (const Logprob& token : llm.score(fields[1])) {
    std::printf("%d:%.9g ", token.id, static_cast<double>(token.logprob.value_or(0)));
  }
  std::puts("");
}

void embed(LLM& llm, const std::vector<std::string>& fields) {
  const std::vector<Prompt> prompts(fields.begin() + 1, fields.end());
  for (const auto& result : llm.embed(prompts)) {
    print_numbers(std::get<Embedding>(result).values);
    std::puts("");
  }
}

}  // namespace

int main(int, char** argv) {
  try {
    LLM llm = LLM::load({.model = argv[1]});
    for (std::string line; std::getline(std::cin, line);) {
      const std::vector<std::string> fields = fields_of(line);
      if (fields[0] == "generate") generate(llm, fields);
      if (fields[0] == "chat") chat(llm, fields);
      if (fields[0] == "batch") batch(llm, fields);
      if (fields[0] == "classify") classify(llm, fields);
      if (fields[0] == "decide") decide(llm, fields);
      if (fields[0] == "score") score(llm, fields);
      if (fields[0] == "embed") embed(llm, fields);
    }
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
