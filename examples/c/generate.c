/* Streams a continuation of a prompt, then classifies and embeds it.
 *
 *   cc generate.c -o generate $(pkg-config --cflags --libs paceline)
 *   ./generate MODEL "It was a dark and stormy night" */
#include <paceline/paceline.h>

#include <stdio.h>
#include <stdlib.h>

static void check(paceline_status status, const char *what) {
  if (status == PACELINE_OK) return;
  fprintf(stderr, "%s: %s: %s\n", what, paceline_status_name(status), paceline_last_error());
  exit(1);
}

static int print_piece(const char *piece, size_t size, void *user) {
  (void)user;
  fwrite(piece, 1, size, stdout);
  fflush(stdout);
  return 0;
}

int main(int argc, char **argv) {
  if (argc != 3) {
    fprintf(stderr, "usage: %s MODEL PROMPT\n", argv[0]);
    return 2;
  }
  paceline_load_options load;
  paceline_load_options_init(&load);
  load.model = argv[1];
  paceline_model *model = NULL;
  check(paceline_load(&load, &model), "load");

  paceline_generate_options options;
  paceline_generate_options_init(&options);
  options.max_tokens = 24;
  options.temperature = 0;
  const paceline_prompt prompt = paceline_text_prompt(argv[2]);
  const paceline_completions *completions = NULL;
  check(paceline_generate_all(model, prompt, &options, print_piece, NULL, &completions), "generate");
  printf("\n%lld tokens\n", (long long)completions->items[0].usage.completion_tokens);
  paceline_free_completions(completions);

  const char *labels[] = {"good", "bad"};
  const paceline_classifications *classes = NULL;
  check(paceline_classify(model, &prompt, 1, labels, 2, NULL, &classes), "classify");
  printf("%s, %.3f of good\n", classes->items[0].label, classes->items[0].scores[0]);
  paceline_free_classifications(classes);

  const paceline_vectors *vectors = NULL;
  check(paceline_embed(model, &prompt, 1, 0, NULL, &vectors), "embed");
  printf("a vector of %zu numbers\n", vectors->items[0].num_values);
  paceline_free_vectors(vectors);
  paceline_free_model(model);
  return 0;
}
