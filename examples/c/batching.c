/* Continuous batching by the caller: sequences join a batch and leave it, one step at a time.
 *
 *   cc batching.c -o batching $(pkg-config --cflags --libs paceline)
 *   ./batching MODEL */
#include <paceline/paceline.h>

#include <stdio.h>
#include <stdlib.h>

enum { kSequences = 3, kTokens = 12 };

static void check(paceline_status status, const char *what) {
  if (status == PACELINE_OK) return;
  fprintf(stderr, "%s: %s: %s\n", what, paceline_status_name(status), paceline_last_error());
  exit(1);
}

static int32_t likeliest(const float *logits, int64_t count) {
  int64_t best = 0;
  for (int64_t i = 1; i < count; ++i) {
    if (logits[i] > logits[best]) best = i;
  }
  return (int32_t)best;
}

int main(int argc, char **argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: %s MODEL\n", argv[0]);
    return 2;
  }
  paceline_load_options load;
  paceline_load_options_init(&load);
  load.model = argv[1];
  paceline_context *context = NULL;
  check(paceline_new_context(&load, 1024, &context), "context");
  const int64_t vocab = paceline_context_vocab_size(context);
  float *logits = malloc(sizeof(float) * (size_t)(kSequences * vocab));

  /* A sequence joins in each step, while those before it decode; each leaves after kTokens. */
  paceline_decode_entry batch[kSequences];
  int32_t written[kSequences][kTokens];
  int left[kSequences] = {kTokens, kTokens, kTokens};
  int joined = 0;
  for (int busy = 1; busy;) {
    if (joined < kSequences) {
      const int32_t prompt[] = {10 + joined, 20, 30 + joined};
      int32_t sequence;
      check(paceline_new_sequence(context, 0, &sequence), "sequence");
      check(paceline_prefill(context, sequence, prompt, 3, 0, NULL, 0, logits), "prefill");
      batch[joined].sequence = sequence;
      batch[joined].token = likeliest(logits, vocab);
      ++joined;
    }
    paceline_decode_entry step[kSequences];
    int row_of[kSequences];
    int rows = 0;
    for (int i = 0; i < joined; ++i) {
      if (left[i] == 0) continue;
      written[i][kTokens - left[i]--] = batch[i].token;
      if (left[i] == 0) {
        check(paceline_free_sequence(context, batch[i].sequence), "free");
        continue;
      }
      row_of[rows] = i;
      step[rows++] = batch[i];
    }
    check(paceline_decode_batch(context, step, (size_t)rows, logits), "decode");
    for (int row = 0; row < rows; ++row) {
      batch[row_of[row]].token = likeliest(logits + row * vocab, vocab);
    }
    busy = rows > 0 || joined < kSequences;
  }
  for (int i = 0; i < kSequences; ++i) {
    for (int k = 0; k < kTokens; ++k) printf("%d%c", written[i][k], k + 1 < kTokens ? ' ' : '\n');
  }
  free(logits);
  paceline_free_context(context);
  return 0;
}
