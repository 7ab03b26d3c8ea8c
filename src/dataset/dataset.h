// Dataset is the examples of a file of training data, checked and tokenised.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "dataset/dataset_options.h"
#include "dataset/example.h"

namespace paceline {

struct DatasetReport {
  std::string file;
  std::string format;               // "chats", "prompts and completions", "plain text", ...
  std::string now;                  // the clock that chat templates saw
  int64_t max_seq_length = 0;       // as the options say
  int64_t num_examples = 0;         // kept
  int64_t num_tokens = 0;           // of these
  int64_t num_counted = 0;          // of these tokens, part of the loss
  int64_t longest = 0;              // tokens of the longest example before it was cut
  int64_t num_truncated = 0;        // kept, but cut to max_seq_length
  int64_t num_dropped = 0;          // not kept: nothing to learn was left after the cut
  int64_t num_straddling = 0;       // tokens on the border of a prompt; not part of the loss
  int64_t num_other_prompts = 0;    // turns after a prompt that ends otherwise than the server's
  int64_t num_silent_thoughts = 0;  // turns whose reasoning the chat template leaves out
  int64_t memory_bytes = 0;         // of the examples
};

struct Dataset {
  std::vector<Example> examples;  // in the file's order
  DatasetReport report;
};

// What a person should read before training: examples cut or dropped, tokens on a border. A
// sentence each.
std::vector<std::string> dataset_warnings(const DatasetReport& report);

// Reads .jsonl, .ndjson and .json as JSON Lines, or as an array of examples, whose format the first
// one's keys decide (line_format.h), and any other file that isn't a table or an archive as one
// text, which is cut into examples of max_seq_length tokens. A byte order mark is skipped, CRLF is
// read as LF, blank lines are skipped. Every example is checked: throws Error invalid "FILE:LINE:
// FIELD: found ..., expected ..." ("FILE[INDEX]: ..." of an array), of several at fault the first
// 20; unsupported when the model or the options don't go with the format, or when rows hold judged
// answers (KTO, DPO); exhausted beyond the limits of `options`; not_found.
Dataset read_dataset(const std::filesystem::path& file, const DatasetModel& model,
                     const DatasetOptions& options);

}  // namespace paceline
