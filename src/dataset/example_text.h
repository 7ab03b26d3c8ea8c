// ExampleText is an example before it is tokenised.
#pragma once

#include <string>
#include <vector>

#include "dataset/dataset_options.h"
#include "dataset/example.h"

namespace paceline {

struct ExampleText {
  std::string text;
  std::vector<TextSpan>
      learnt;  // ascending bytes of `text`: a token inside one is part of the loss
  std::vector<TextSpan> plain = {};  // bytes where special tokens are text (EncodeOptions)
  // Learnt turns whose prompt ends otherwise here than the server writes it.
  int64_t num_other_prompts = 0;
  int64_t num_silent_thoughts = 0;  // turns whose reasoning the chat template leaves out
  bool is_rendered = false;         // by a chat template, which writes the special tokens itself
};

struct EncodedExample {
  Example example;
  // Tokens with bytes on both sides of the beginning of a learnt part. They aren't part of the
  // loss: where the prompt ends, the model never draws them.
  int64_t num_straddling = 0;
  int64_t num_other_prompts = 0;    // as the text says
  int64_t num_silent_thoughts = 0;  // the same
};

// Tokenises the whole text at once. A text that no template rendered gets the special tokens of the
// tokenizer's post-processor and, unless it ends in it, the end-of-text token, which is part of the
// loss if the end of the text is.
EncodedExample encode_example(const ExampleText& text, const DatasetModel& model);

}  // namespace paceline
