// Makes a tokenizer.json of the other files that tokenizers are published in.
#pragma once

#include <string>
#include <string_view>

#include "base/model_files.h"
#include "tokenizer/sentence_piece_file.h"
#include "tokenizer/tokenizer_config.h"

namespace paceline {

// The same files, with a tokenizer.json where there is none but one can be made: of tekken.json,
// else of tokenizer.model, else of vocab.json and merges.txt, else of vocab.txt. It is made when it
// is read, which throws the errors below. A tokenizer_config.json that is absent names the file's
// own tokens.
ModelFiles with_tokenizer_json(ModelFiles files);

// `config` is read from the files beside it; `where` names the file in errors. Throws Error corrupt
// naming the place that is wrong, unsupported naming what can't be followed, with the command that
// makes a tokenizer.json in Python.

// Of sentencepiece's models: BPE with merges made from the scores, or Unigram.
std::string sentence_piece_json(const SentencePieceFile& file, const TokenizerConfig& config,
                                std::string_view where);
// Of Mistral's tekken.json: ranks of byte strings, as tiktoken has them.
std::string tekken_json(std::string text, const TokenizerConfig& config, std::string_view where);
// Of GPT-2's vocab.json and merges.txt, for the classes GPT2Tokenizer and Qwen2Tokenizer of
// transformers.
std::string vocab_and_merges_json(std::string vocab, std::string_view merges,
                                  const TokenizerConfig& config, std::string_view where);
// Of BERT's vocab.txt, a token a line, for the classes BertTokenizer and DistilBertTokenizer of
// transformers (5.24, which ignores never_split).
std::string vocab_txt_json(std::string_view text, const TokenizerConfig& config,
                           std::string_view where);

// Error unsupported "WHERE: WHAT isn't supported; ..." with that command.
[[noreturn]] void refuse_to_make(std::string_view where, std::string_view what);

}  // namespace paceline
