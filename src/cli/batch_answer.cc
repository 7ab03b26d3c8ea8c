#include "cli/batch_answer.h"

#include <algorithm>
#include <chrono>

#include "cli/model_opening.h"
#include "protocol/chat_answer.h"
#include "protocol/classification_answer.h"
#include "protocol/completion_answer.h"

namespace paceline {
namespace {

int64_t unix_time() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

// The first `num_top` alternatives of each token; `text_bytes` says how much text is a token's.
template <class TextBytes>
std::vector<ReportedToken> report(const std::vector<Logprob>& tokens, int32_t num_top,
                                  const TokenNames& names, TextBytes&& text_bytes) {
  std::vector<ReportedToken> reported;
  reported.reserve(tokens.size());
  for (const Logprob& token : tokens) {
    ReportedToken one{.token = names.named(token.id), .logprob = token.logprob, .top = {}};
    const size_t count = std::min(token.top.size(), static_cast<size_t>(num_top));
    for (size_t i = 0; i < count; ++i) {
      one.top.push_back({names.named(token.top[i].id), token.top[i].logprob});
    }
    one.text_bytes = text_bytes(reported.size(), token.id);
    reported.push_back(std::move(one));
  }
  return reported;
}

struct Answering {
  const BatchJob& job;
  const LLM& llm;
  AnswerHead head;
  BatchTokenNames& names;

  AnswerChoice choice(const Completion& completion, const GenerationFields& fields) const {
    AnswerChoice choice{.text = completion.text,
                        .finish_reason = completion.finish_reason,
                        .stop_reason = completion.stop_reason,
                        .logprobs = {},
                        .prompt_logprobs = {},
                        .token_ids = {},
                        .seed = completion.seed};
    if (fields.prompt_logprobs) {
      choice.prompt_logprobs = report(completion.prompt_logprobs, *fields.prompt_logprobs,
                                      names.get(), [](size_t, int32_t) { return size_t{0}; });
    }
    if (fields.return_token_ids || !completion.text) choice.token_ids = completion.token_ids;
    return choice;
  }

  void add_logprobs(const Completion& completion, int32_t num_top, AnswerChoice& choice) const {
    const TokenNames& of_tokens = names.get();
    choice.logprobs = report(completion.logprobs, num_top, of_tokens,
                             [&](size_t, int32_t id) { return of_tokens.bytes_in_answer(id); });
  }

  // The prompt's text and tokens in front of the answer's.
  void add_echo(const CompletionRequest& request, size_t part, const Completion& completion,
                AnswerChoice& choice) const {
    const PromptText& prompt = request.prompt.prompts[part];
    const auto* text = std::get_if<std::string>(&prompt);
    if (choice.text) {
      const auto* ids = std::get_if<std::vector<int32_t>>(&prompt);
      choice.text->insert(0, text != nullptr ? *text : llm.detokenize(*ids));
    }
    if (!choice.logprobs) return;
    const TokenNames& of_tokens = names.get();
    std::vector<size_t> sizes;
    if (text != nullptr) sizes = of_tokens.bytes_in_prompt(*text, request.add_special_tokens);
    auto tokens = report(completion.prompt_logprobs, *request.logprobs, of_tokens,
                         [&](size_t index, int32_t id) {
                           if (text != nullptr) return index < sizes.size() ? sizes[index] : 0;
                           return of_tokens.named(id).bytes.value_or("").size();
                         });
    choice.logprobs->insert(choice.logprobs->begin(), std::make_move_iterator(tokens.begin()),
                            std::make_move_iterator(tokens.end()));
  }

  // Every sample of a part has the same prompt, which counts once.
  static void add_usage(const BatchPart& part, AnswerUsage& usage) {
    const Usage& of_first = part.choices.front().usage;
    usage.prompt_tokens += of_first.prompt_tokens;
    usage.cached_tokens = usage.cached_tokens.value_or(0) + of_first.cached_tokens;
    for (const Completion& completion : part.choices) {
      usage.completion_tokens += completion.usage.completion_tokens;
    }
  }

  BatchAnswer operator()(const CompletionRequest& request) {
    CompletionAnswer answer{.head = std::move(head), .choices = {}, .usage = {}};
    answer.head.id = random_id("cmpl-");
    const GenerationFields& fields = request.generation;
    if (fields.return_tokens_as_token_ids) answer.naming = TokenNaming::id;
    for (size_t part = 0; part < job.parts.size(); ++part) {
      for (const Completion& completion : job.parts[part].choices) {
        AnswerChoice one = choice(completion, fields);
        if (request.logprobs) add_logprobs(completion, *request.logprobs, one);
        one.index = static_cast<int64_t>(answer.choices.size());
        if (request.echo) add_echo(request, part, completion, one);
        answer.choices.push_back(std::move(one));
      }
      add_usage(job.parts[part], answer.usage);
    }
    return {completion_answer_json(answer), answer.usage};
  }

  BatchAnswer operator()(const ChatRequest& request) {
    ChatAnswer answer{.head = std::move(head), .choices = {}, .usage = {}};
    answer.head.id = random_id("chatcmpl-");
    const GenerationFields& fields = request.generation;
    if (fields.return_tokens_as_token_ids) answer.naming = TokenNaming::id;
    for (const Completion& completion : job.parts[0].choices) {
      AnswerChoice one = choice(completion, fields);
      if (request.logprobs) add_logprobs(completion, request.top_logprobs, one);
      one.index = static_cast<int64_t>(answer.choices.size());
      answer.choices.push_back(std::move(one));
    }
    add_usage(job.parts[0], answer.usage);
    return {chat_answer_json(answer), answer.usage};
  }

  BatchAnswer operator()(const ClassificationRequest& request) {
    ClassificationAnswer answer{.head = std::move(head), .inputs = {}, .usage = {}};
    answer.head.id = random_id("classify-");
    for (const BatchPart& part : job.parts) {
      const Classification& result = part.classification;
      ClassifiedInput input{
          .token = {}, .label = result.label, .scores = result.scores, .logits = {}};
      if (result.token_id) {
        input.token = NamedToken{.id = *result.token_id, .bytes = {}};
        if (!result.token.empty()) input.token->bytes = result.token;
      }
      if (request.with_logits) input.logits = result.logits;
      answer.inputs.push_back(std::move(input));
      answer.usage.prompt_tokens += part.prompt_tokens;
    }
    return {classification_answer_json(answer), answer.usage};
  }
};

}  // namespace

const TokenNames& BatchTokenNames::get() {
  if (!names_) {
    try {
      tokenizer_ = open_tokenizer(settings_);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::not_found) throw;
    }
    names_.emplace(tokenizer_ ? &*tokenizer_ : nullptr);
  }
  return *names_;
}

BatchAnswer answer_job(const BatchJob& job, const LLM& llm, const std::string& model,
                       BatchTokenNames& names) {
  AnswerHead head{.id = {}, .created = unix_time(), .model = model, .system_fingerprint = {}};
  return std::visit(Answering{job, llm, std::move(head), names}, job.request);
}

}  // namespace paceline
