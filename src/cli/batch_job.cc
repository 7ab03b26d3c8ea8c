#include "cli/batch_job.h"

#include "cli/model_opening.h"
#include "protocol/completed_responses.h"
#include "protocol/request_options.h"

namespace paceline {
namespace {

struct Submission {
  RequestPool& pool;
  LLM& llm;
  int64_t tag;
  BatchJob& job;
  size_t index;
  std::optional<uint64_t> default_seed;

  void operator()(const CompletionRequest& request) const {
    pool.generate(tag, request.prompt.prompts[index],
                  completion_options(request, index, default_seed, job.stop.get_token()),
                  request.num_candidates());
  }

  void operator()(const ChatRequest& request) const {
    pool.chat(tag, request.input, chat_options(request, default_seed, job.stop.get_token()),
              request.generation.n, request.turn);
  }

  void operator()(const ClassificationRequest& request) const {
    // Encoded here, because a classification's result doesn't have the prompt's token count.
    Prompt prompt = request.input.prompts[index];
    if (const auto* text = std::get_if<std::string>(&prompt)) {
      prompt = llm.tokenize(*text, request.options.add_special_tokens);
    }
    job.parts[index].prompt_tokens =
        static_cast<int64_t>(std::get<std::vector<int32_t>>(prompt).size());
    pool.classify(tag, prompt,
                  classification_options(request, index, default_seed, job.stop.get_token()));
  }

  void operator()(const EmbeddingRequest& request) const {
    pool.embed(tag, request.input.prompts[index],
               embedding_options(request, index, job.stop.get_token()));
  }
};

void refuse_stream(const GenerationFields& fields) {
  if (fields.streaming.stream) {
    throw RequestError("stream", ErrorReason::unsupported_parameter,
                       "stream: found true, only false is supported in a batch");
  }
}

struct Answering {
  const BatchJob& job;
  const std::string& model;
  const TokenNames& names;

  BatchResponse operator()(const CompletionRequest& request) const {
    const CompletionResponse answer =
        completed_response(request, job.parts, names, new_head(kCompletionIdPrefix, model));
    return {completion_response_json(answer), answer.usage};
  }

  BatchResponse operator()(const ChatRequest& request) const {
    const ChatResponse answer =
        completed_response(request, job.parts[0], names, new_head(kChatIdPrefix, model));
    return {chat_response_json(answer), answer.usage};
  }

  BatchResponse operator()(const ClassificationRequest& request) const {
    const ClassificationResponse answer =
        completed_response(request, job.parts, new_head(kClassificationIdPrefix, model));
    return {classification_response_json(answer), answer.usage};
  }

  BatchResponse operator()(const EmbeddingRequest& request) const {
    ResponseUsage usage;
    std::vector<std::vector<float>> embeddings;
    for (const CompletedPart& part : job.parts) {
      usage.prompt_tokens += part.prompt_tokens;
      embeddings.push_back(part.embedding);
    }
    return {
        embedding_response_json(request, new_head(kEmbeddingIdPrefix, model), embeddings, usage),
        usage};
  }
};

}  // namespace

ApiRequest parse_api_request(BatchUrl url, const Json& body) {
  if (url == BatchUrl::classify) return parse_classification_request(body);
  if (url == BatchUrl::embeddings) return parse_embedding_request(body);
  if (url == BatchUrl::chat_completions) {
    ChatRequest request = parse_chat_request(body);
    refuse_stream(request.generation);
    return request;
  }
  CompletionRequest request = parse_completion_request(body);
  refuse_stream(request.generation);
  if (!request.suffix.empty()) {
    throw RequestError("suffix", ErrorReason::unsupported_parameter,
                       "suffix: not supported in a batch");
  }
  return request;
}

void submit_part(RequestPool& pool, LLM& llm, int64_t tag, BatchJob& job, size_t index,
                 std::optional<uint64_t> default_seed) {
  std::visit(Submission{pool, llm, tag, job, index, default_seed}, job.request);
}

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

BatchResponse respond_to(const BatchJob& job, const std::string& model, BatchTokenNames& names) {
  static const TokenNames no_names(nullptr);
  const TokenNames& of_tokens = names_tokens(job.request) ? names.get() : no_names;
  return std::visit(Answering{job, model, of_tokens}, job.request);
}

}  // namespace paceline
