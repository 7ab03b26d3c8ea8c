// Trains a LoRA adapter on a file of examples, then answers with it.
// train_lora MODEL DATA DIR PROMPT
#include <paceline/llm.h>
#include <paceline/training.h>

#include <iostream>

namespace {

void train(const std::string& model, const std::string& data, const std::string& directory) {
  paceline::Training training =
      paceline::Training::open({.model = {.model = model},
                                .output = directory,
                                .data = data,
                                .loss_tokens = paceline::LossTokens::completion,
                                .max_seq_length = 64,
                                .rank = 4,
                                .num_steps = 20,
                                .batch_size = 2,
                                .learning_rate = 2e-3});
  const paceline::TrainingPlan& plan = training.plan();
  std::cerr << plan.num_examples << " examples, " << plan.num_parameters << " parameters\n";
  training.run([](const paceline::TrainingPoint& point) {
    if (point.loss) std::cerr << "step " << point.step << ", loss " << *point.loss << "\n";
  });
}

std::string answer(const std::string& model, const std::string& directory,
                   const std::string& prompt) {
  paceline::LLM llm = paceline::LLM::load({.model = model, .enable_lora = true});
  llm.load_lora({.name = "mine", .path = directory});
  return llm.generate(prompt, {.max_tokens = 16, .temperature = 0, .lora = "mine"})
      .completion()
      .text.value();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    std::cerr << "usage: train_lora MODEL DATA DIR PROMPT\n";
    return 2;
  }
  try {
    train(argv[1], argv[2], argv[3]);
    std::cout << answer(argv[1], argv[3], argv[4]) << "\n";
  } catch (const paceline::Error& error) {
    std::cerr << error_code_name(error.code()) << ": " << error.what() << "\n";
    return 1;
  }
}
