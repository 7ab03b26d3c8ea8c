// The answers of POST /completion and POST /infill, llama.cpp's.
#include "base/json_writer.h"
#include "protocol/event_writer.h"
#include "protocol/llama_request.h"
#include "protocol/logprobs_json.h"

namespace paceline {
namespace {

constexpr int64_t kNoSlot = -1;

void write_probabilities_of(JsonWriter& writer, const std::vector<ReportedToken>& tokens,
                            const LlamaStyle& style) {
  writer.key("completion_probabilities");
  write_probabilities(writer, tokens, style.naming);
}

std::string_view stop_type(const ResponseChoice& choice) {
  if (choice.finish_reason == "length") return "limit";
  const bool is_word =
      choice.stop_reason && std::holds_alternative<std::string>(*choice.stop_reason);
  return is_word ? "word" : "eos";
}

// A result without its text and tokens.
void write_result(JsonWriter& writer, const ResponseChoice& choice, const LlamaPrompt& prompt,
                  const LlamaStyle& style) {
  const Usage usage = choice.timings ? choice.timings->tokens : Usage{};
  const std::string_view type = stop_type(choice);
  const bool is_full = usage.prompt_tokens + usage.completion_tokens >= style.context;
  writer.member("id_slot", kNoSlot).member("stop", true).member("model", style.model);
  writer.member("tokens_predicted", usage.completion_tokens);
  writer.member("tokens_evaluated", usage.prompt_tokens);
  writer.member("tokens_cached", usage.cached_tokens);
  writer.key("generation_settings").raw(prompt.settings_json);
  writer.member("prompt", prompt.text);
  writer.member("truncated", type == "limit" && is_full).member("stop_type", type);
  writer.key("stopping_word");
  writer.string(type == "word" ? std::get<std::string>(*choice.stop_reason) : std::string());
  write_seed(writer, choice);
  if (choice.timings) write_timings(writer, *choice.timings);
}

// `content` is the choice's text, or the part that no earlier event had.
void write_one(JsonWriter& writer, const ResponseChoice& choice, std::string_view content,
               const LlamaPrompt& prompt, const LlamaStyle& style) {
  const std::string_view text = choice.text ? std::string_view(*choice.text) : std::string_view();
  writer.begin_object().member("index", choice.index).member("content", content);
  writer.member("tokens", style.returns_tokens ? choice.token_ids.value_or(std::vector<int32_t>())
                                               : std::vector<int32_t>());
  writer.member("has_new_line", text.find('\n') != std::string::npos);
  write_result(writer, choice, prompt, style);
  if (choice.prompt_logprobs) {
    writer.key("prompt_logprobs");
    write_prompt_logprobs(writer, *choice.prompt_logprobs);
  }
  if (style.has_probabilities && choice.logprobs) {
    write_probabilities_of(writer, *choice.logprobs, style);
  }
  writer.end_object();
}

std::string piece_json(const ResponseChunk& chunk, const LlamaStyle& style) {
  return object_json([&](JsonWriter& writer) {
    writer.member("index", chunk.index).member("content", chunk.text.value_or(""));
    if (chunk.token_ids) writer.member("tokens", *chunk.token_ids);
    writer.member("stop", false);
    if (chunk.logprobs) write_probabilities_of(writer, *chunk.logprobs, style);
  });
}

void write_sampling(JsonWriter& writer, const SamplingOptions& sampling) {
  writer.member("seed", sampling.seed).member("temperature", sampling.temperature);
  writer.member("dynatemp_range", 0).member("dynatemp_exponent", 1);
  writer.member("top_k", sampling.top_k).member("top_p", sampling.top_p);
  writer.member("min_p", sampling.min_p).member("xtc_probability", 0);
  writer.member("typical_p", sampling.typical_p).member("top_n_sigma", sampling.top_n_sigma);
  writer.member("repeat_last_n", -1).member("repeat_penalty", sampling.repetition_penalty);
  writer.member("presence_penalty", sampling.presence_penalty);
  writer.member("frequency_penalty", sampling.frequency_penalty);
  writer.member("dry_multiplier", 0).member("mirostat", 0);
  writer.key("samplers").begin_array();
  const bool is_mlx = sampling.order == SamplerOrder::mlx;
  for (const char* name : {"penalties", is_mlx ? "top_p" : "temperature", "min_p", "top_k",
                           is_mlx ? "temperature" : "top_p"}) {
    writer.string(name);
  }
  writer.end_array();
}

}  // namespace

std::string llama_settings_json(const GenerateRequest& request, const LlamaStyle& style) {
  return object_json([&](JsonWriter& writer) {
    writer.member("n_ctx", style.context).member("model", style.model);
    writer.member("n_predict", request.max_tokens).member("max_tokens", request.max_tokens);
    write_sampling(writer, request.sampling);
    writer.member("stop", request.stop_strings).member("ignore_eos", request.ignore_eos);
    writer.member("n_keep", 0).member("n_discard", 0).member("min_keep", 0);
    writer.member("n_probs", style.num_probs).member("grammar", "");
    writer.member("stream", style.is_streamed);
    writer.member("timings_per_token", false).member("post_sampling_probs", false);
    writer.member("speculative.n_max", request.speculation ? style.max_drafted : 0);
    writer.member("speculative.n_min", 0);
  });
}

std::string llama_response_json(const std::vector<ResponseChoice>& choices,
                                const std::vector<LlamaPrompt>& prompts, const LlamaStyle& style) {
  const size_t per_prompt = choices.size() / prompts.size();
  std::string json;
  JsonWriter writer(json);
  if (choices.size() > 1) writer.begin_array();
  for (size_t i = 0; i < choices.size(); ++i) {
    write_one(writer, choices[i], choices[i].text.value_or(""), prompts[i / per_prompt], style);
  }
  if (choices.size() > 1) writer.end_array();
  return json;
}

std::vector<std::string> llama_chunk_jsons(const ResponseChunk& chunk, const LlamaPrompt& prompt,
                                           const LlamaStyle& style) {
  std::vector<std::string> events;
  const bool has_text = chunk.text && !chunk.text->empty();
  const bool has_tokens = chunk.token_ids && !chunk.token_ids->empty();
  if (has_text || has_tokens) events.push_back(piece_json(chunk, style));
  if (chunk.ending == nullptr) return events;
  ResponseChoice ending = *chunk.ending;
  ending.index = chunk.index;
  ending.token_ids.reset();
  ending.logprobs.reset();
  JsonWriter writer(events.emplace_back());
  write_one(writer, ending, "", prompt, style);
  return events;
}

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
