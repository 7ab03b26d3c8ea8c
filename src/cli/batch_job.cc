#include "cli/batch_job.h"

#include "cli/model_opening.h"
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

  void operator()(const GenerationCall& call) const { std::visit(*this, call.request); }
  void operator()(const ItemCall& call) const { std::visit(*this, call.request); }

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

  template <class Other>
  void operator()(const Other& /*request*/) const {
    PL_CHECK(false, "a batch has no URL of such calls");
  }
};

struct Answering {
  const BatchJob& job;
  BatchTokenNames& names;
  ResponseHead head;

  BatchResponse operator()(const GenerationCall& call) {
    head.id = random_id(call.writer->id_prefix());
    const TokenNames& of_tokens = names.get_if(
        std::visit([](const auto& request) { return names_tokens(request); }, call.request));
    const auto* chat = std::get_if<ChatRequest>(&call.request);
    const ChoicesResponse answer =
        chat != nullptr ? completed_response(*chat, job.parts[0], of_tokens, head)
                        : completed_response(std::get<CompletionRequest>(call.request), job.parts,
                                             of_tokens, head);
    return {call.writer->whole(answer), answer.usage};
  }

  BatchResponse operator()(const ItemCall& call) {
    head.id = random_id(call.id_prefix);
    ItemAnswer answer{.head = head, .classified = job.parts};
    for (const CompletedPart& part : job.parts) {
      answer.usage.prompt_tokens += part.prompt_tokens;
      answer.embeddings.push_back(part.embedding);
    }
    const ResponseUsage usage = answer.usage;
    return {call.write(call.request, std::move(answer), names.get_if(false)), usage};
  }

  BatchResponse operator()(const CountCall& /*call*/) { return {}; }
  BatchResponse operator()(const LoadCall& /*call*/) { return {}; }
};

}  // namespace

Call parse_batch_call(const Dialect& dialect, const Json& body) {
  const RequestTerms limits;
  Call call = dialect.parse(body, {.limits = limits});
  const auto* generation = std::get_if<GenerationCall>(&call);
  if (generation == nullptr) return call;
  if (std::visit([](const auto& r) { return r.generation.streaming.stream; },
                 generation->request)) {
    throw RequestError("stream", ErrorReason::unsupported_parameter,
                       "stream: found true, only false is supported in a batch");
  }
  const auto* completion = std::get_if<CompletionRequest>(&generation->request);
  if (completion != nullptr && !completion->suffix.empty()) {
    throw RequestError("suffix", ErrorReason::unsupported_parameter,
                       "suffix: not supported in a batch");
  }
  return call;
}

size_t num_parts(const Call& call) {
  if (const auto* generation = std::get_if<GenerationCall>(&call)) {
    const auto* completion = std::get_if<CompletionRequest>(&generation->request);
    return completion == nullptr ? 1 : completion->prompt.prompts.size();
  }
  const auto* items = std::get_if<ItemCall>(&call);
  if (items == nullptr) return 1;
  if (const auto* classification = std::get_if<ClassificationRequest>(&items->request)) {
    return classification->input.prompts.size();
  }
  const auto* embedding = std::get_if<EmbeddingRequest>(&items->request);
  return embedding == nullptr ? 1 : embedding->input.prompts.size();
}

void submit_part(RequestPool& pool, LLM& llm, int64_t tag, BatchJob& job, size_t index,
                 std::optional<uint64_t> default_seed) {
  std::visit(Submission{pool, llm, tag, job, index, default_seed}, job.call);
}

const TokenNames& BatchTokenNames::get_if(bool is_needed) {
  static const TokenNames no_names(nullptr);
  if (!is_needed) return no_names;
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
  return std::visit(Answering{job, names, new_head("", model)}, job.call);
}

}  // namespace paceline
