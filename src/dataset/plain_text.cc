#include "dataset/plain_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/mapped_file.h"
#include "dataset/data_file_kind.h"
#include "dataset/dataset_builder.h"
#include "dataset/text_encoding.h"

namespace paceline {
namespace {

std::string with_line_feeds(std::string text) {
  size_t to = 0;
  for (size_t from = 0; from < text.size(); ++from) {
    if (text[from] == '\r' && from + 1 < text.size() && text[from + 1] == '\n') continue;
    text[to++] = text[from];
  }
  text.resize(to);
  return text;
}

}  // namespace

Dataset read_plain_text(const std::string& file, const DatasetModel& model,
                        const DatasetOptions& options) {
  if (options.loss_tokens != LossTokens::all) {
    throw Error(
        ErrorCode::unsupported,
        file +
            ": a plain text has no prompt that --mask-prompt or --loss-on could mask; "
            "learn all tokens, or write JSON Lines of messages, or of prompt and completion");
  }
  std::string text = read_text_file(file, options.max_text_bytes);
  skip_byte_order_mark(text);
  check_plain_text(file, text);
  check_text_encoding(text, file);
  text = with_line_feeds(std::move(text));
  if (text.empty()) throw Error(ErrorCode::invalid, file + ": found no text, expected some");
  ExampleText whole{.text = std::move(text), .learnt = {}};
  whole.learnt = {{.begin = 0, .end = whole.text.size()}};
  Example stream = encode_example(whole, model).example;
  if (options.first_token) {  // which nothing predicts, in every example
    stream.tokens.insert(stream.tokens.begin(), *options.first_token);
    stream.counts.insert(stream.counts.begin(), 0);
    stream.counts[1] = 1;
  }

  DatasetBuilder builder(file, "plain text", options);
  for (int64_t begin = 0; begin == 0 || begin + 1 < stream.num_tokens();
       begin += options.max_seq_length - 1) {
    const int64_t end = std::min(begin + options.max_seq_length, stream.num_tokens());
    EncodedExample part;
    part.example.tokens.assign(stream.tokens.begin() + begin, stream.tokens.begin() + end);
    part.example.counts.assign(stream.counts.begin() + begin, stream.counts.begin() + end);
    if (!part.example.counts.empty()) part.example.counts[0] = 0;
    if (begin > 0 && options.first_token) part.example.tokens[0] = *options.first_token;
    builder.add(std::move(part), file);
  }
  return builder.finish();
}

}  // namespace paceline
