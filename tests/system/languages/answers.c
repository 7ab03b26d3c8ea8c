/* Answers the requests on standard input through the library in C: a line each, as languages_test.py says. */
#include <paceline/paceline.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_FIELDS 16

static paceline_model *model;

static void check(paceline_status status, const char *what) {
  if (status == PACELINE_OK) return;
  fprintf(stderr, "%s: %s: %s\n", what, paceline_status_name(status), paceline_last_error());
  exit(1);
}

static void print_ids(const paceline_completion *completion) {
  check(completion->status, completion->error);
  for (size_t i = 0; i < completion->num_token_ids; ++i) printf("%d ", completion->token_ids[i]);
  puts("");
}

static void print_numbers(const float *numbers, size_t count) {
  for (size_t i = 0; i < count; ++i) printf("%.9g ", numbers[i]);
}

static paceline_generate_options options_of(char **fields) {
  paceline_generate_options options;
  paceline_generate_options_init(&options);
  options.max_tokens = atoll(fields[1]);
  options.temperature = strtof(fields[2], NULL);
  options.seed = atoll(fields[3]);
  return options;
}

static void generate(char **fields) {
  const paceline_generate_options options = options_of(fields);
  const paceline_completions *found;
  check(paceline_generate_all(model, paceline_text_prompt(fields[4]), &options, NULL, NULL, &found), "generate");
  print_ids(&found->items[0]);
  paceline_free_completions(found);
}

static void chat(char **fields) {
  const paceline_generate_options options = options_of(fields);
  char messages[1024];
  snprintf(messages, sizeof messages, "[{\"role\": \"user\", \"content\": \"%s\"}]", fields[4]);
  paceline_generation *generation;
  const paceline_completion *found;
  check(paceline_chat(model, messages, NULL, &options, &generation), "chat");
  check(paceline_finish_generation(generation, &found), "chat");
  print_ids(found);
  paceline_free_generation(generation);
}

static void batch(char **fields, size_t count) {
  const paceline_generate_options options = options_of(fields);
  const paceline_generate_options *each[MOST_FIELDS];
  paceline_prompt prompts[MOST_FIELDS];
  for (size_t i = 4; i < count; ++i) {
    prompts[i - 4] = paceline_text_prompt(fields[i]);
    each[i - 4] = &options;
  }
  const paceline_completions *found;
  check(paceline_batch_generate(model, prompts, count - 4, each, &found), "batch");
  for (size_t i = 0; i < found->count; ++i) print_ids(&found->items[i]);
  paceline_free_completions(found);
}

static void classify(char **fields, size_t count) {
  const paceline_prompt prompt = paceline_text_prompt(fields[1]);
  const paceline_classifications *found;
  check(paceline_classify(model, &prompt, 1, (const char *const *)(fields + 2), count - 2, NULL, &found), "classify");
  printf("%s ", found->items[0].label);
  print_numbers(found->items[0].scores, found->items[0].num_scores);
  puts("");
  paceline_free_classifications(found);
}

static void decide(char **fields, size_t count) {
  const paceline_question questions[] = {
      {.kind = PACELINE_PREDICATE, .instructions = fields[2]},
      {.kind = PACELINE_QUESTION_CHOICE, .instructions = fields[3], .values = (const char *const *)(fields + 4), .num_values = count - 4}};
  const char *input = fields[1];
  const paceline_decisions *found;
  check(paceline_decide(model, &input, 1, questions, 2, 1, NULL, &found), "decide");
  for (size_t i = 0; i < found->items[0].num_answers; ++i) {
    print_numbers(found->items[0].answers[i].probabilities, found->items[0].answers[i].num_probabilities);
  }
  puts("");
  paceline_free_decisions(found);
}

static void score(char **fields) {
  const paceline_logprobs *found;
  check(paceline_score(model, paceline_text_prompt(fields[1]), 0, NULL, &found), "score");
  for (size_t i = 0; i < found->count; ++i) {
    printf("%d:%.9g ", found->items[i].id, found->items[i].has_logprob ? found->items[i].logprob : 0);
  }
  puts("");
  paceline_free_logprobs(found);
}

static void embed(char **fields, size_t count) {
  paceline_prompt prompts[MOST_FIELDS];
  for (size_t i = 1; i < count; ++i) prompts[i - 1] = paceline_text_prompt(fields[i]);
  const paceline_vectors *found;
  check(paceline_embed(model, prompts, count - 1, 0, NULL, &found), "embed");
  for (size_t i = 0; i < found->count; ++i) {
    print_numbers(found->items[i].values, found->items[i].num_values);
    puts("");
  }
  paceline_free_vectors(found);
}

int main(int argc, char **argv) {
  if (argc != 2) return 2;
  paceline_load_options load;
  paceline_load_options_init(&load);
  load.model = argv[1];
  check(paceline_load(&load, &model), "load");
  char line[4096];
  while (fgets(line, sizeof line, stdin) != NULL) {
    line[strcspn(line, "\n")] = '\0';
    char *fields[MOST_FIELDS];
    size_t count = 0;
    for (char *field = strtok(line, "\t"); field != NULL && count < MOST_FIELDS; field = strtok(NULL, "\t")) fields[count++] = field;
    if (strcmp(fields[0], "generate") == 0) generate(fields);
    if (strcmp(fields[0], "chat") == 0) chat(fields);
    if (strcmp(fields[0], "batch") == 0) batch(fields, count);
    if (strcmp(fields[0], "classify") == 0) classify(fields, count);
    if (strcmp(fields[0], "decide") == 0) decide(fields, count);
    if (strcmp(fields[0], "score") == 0) score(fields);
    if (strcmp(fields[0], "embed") == 0) embed(fields, count);
  }
  paceline_free_model(model);
  return 0;
}
