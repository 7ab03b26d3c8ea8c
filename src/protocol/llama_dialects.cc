// POST /completion and POST /infill, llama.cpp's.
#include "protocol/event_writer.h"
#include "protocol/llama_request.h"
#include "protocol/llama_response.h"

namespace paceline {
namespace {

class LlamaWriter : public EventWriter {
 public:
  explicit LlamaWriter(const LlamaRequest& request) : EventWriter(kCompletionIdPrefix, {}) {
    llama_style_ = {.returns_tokens = request.returns_tokens,
                    .has_probabilities = request.as_probabilities,
                    .num_probs = request.logprobs.value_or(0),
                    .is_streamed = request.generation.streaming.stream,
                    .naming = naming_of(request.generation)};
  }

  void see_prompts(const PromptFacts& facts) override {
    llama_style_.model = facts.model;
    llama_style_.context = facts.context;
    llama_style_.max_drafted = facts.max_drafted;
    for (const GenerateRequest* request : facts.requests) {
      prompts_.push_back({.text = facts.names.decode_known(request->prompt),
                          .settings_json = llama_settings_json(*request, llama_style_)});
      n_ = request->n;
    }
  }

  std::string whole(const ChoicesResponse& answer) override {
    return llama_response_json(answer.choices, prompts_, llama_style_);
  }

  void chunk(const ResponseChunk& chunk, std::string& out) override {
    const LlamaPrompt& prompt = prompts_[static_cast<size_t>(chunk.index / n_)];
    for (const std::string& event : llama_chunk_jsons(chunk, prompt, llama_style_)) {
      append_event(event, out);
    }
  }

  void end(const ResponseUsage& /*usage*/, std::string& /*out*/) override {}

 private:
  LlamaStyle llama_style_;
  std::vector<LlamaPrompt> prompts_;
  int64_t n_ = 1;  // choices of a prompt
};

template <LlamaRequest (*parse_request)(const Json&, const RequestTerms&)>
Call parse_llama_call(const Json& body, const CallTerms& terms) {
  LlamaRequest request = parse_request(body, terms.limits);
  auto writer = std::make_unique<LlamaWriter>(request);
  return GenerationCall{.request = CompletionRequest(std::move(request)),
                        .writer = std::move(writer)};
}

}  // namespace

const Dialect kLlamaDialect = {.fields = llama_request_fields,
                               .parse = parse_llama_call<parse_llama_request>};
const Dialect kInfillDialect = {.fields = infill_request_fields,
                                .parse = parse_llama_call<parse_infill_request>};

}  // namespace paceline
