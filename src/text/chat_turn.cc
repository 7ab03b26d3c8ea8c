#include "text/chat_turn.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/json.h"
#include "base/json_writer.h"
#include "base/request_error.h"
#include "engine/engine.h"
#include "grammar/constraint.h"
#include "grammar/constraint_cache.h"
#include "grammar/json_schema.h"
#include "text/chat_prompt.h"
#include "text/chat_turns.h"
#include "text/make_request.h"
#include "tools/arguments_grammar.h"

namespace paceline {
namespace {

// The variables of reasoning_effort, unless the request sets them itself.
void add_effort(const ReasoningFormat& format, const std::string& effort, ChatInput& input) {
  const Json asked = input.kwargs_json.empty()
                         ? Json(Json::Object{})
                         : parse_json(input.kwargs_json, "chat_template_kwargs");
  Json::Object variables = asked.as_object("chat_template_kwargs");
  const Json of_effort = parse_json(format.kwargs_for_effort(effort), "reasoning_effort");
  for (const auto& [name, value] : of_effort.as_object("reasoning_effort")) {
    if (asked.find(name) == nullptr) variables.emplace_back(name, value);
  }
  input.kwargs_json = to_json(Json(std::move(variables)));
}

bool is_switched_off(const ReasoningFormat& format, const ChatInput& input) {
  if (!format.toggle || input.kwargs_json.empty()) return false;
  const Json variables = parse_json(input.kwargs_json, "chat_template_kwargs");
  const Json* const value = variables.find(format.toggle->variable);
  return value != nullptr && to_json(*value) == format.toggle->off;
}

std::vector<std::string> end_texts(const TextModel& model) {
  std::vector<std::string> texts;
  for (const TokenId id : model.generation.eos_tokens) {
    if (id < model.tokenizer->vocab_size()) texts.emplace_back(model.tokenizer->token_bytes(id));
  }
  return texts;
}

std::string key_of(const TurnRequest& asked, const TurnShape& shape,
                   const std::optional<ConstraintSpec>& content) {
  std::string key = fmt::format("turn {} {} {} {} {} {}:{}", shape.reads_calls,
                                shape.format->reasoning.has_value(), shape.begins_in_reasoning,
                                static_cast<int>(asked.tool_choice), asked.parallel_tool_calls,
                                asked.tool_name.size(), asked.tool_name);
  for (const ToolSpec& tool : asked.tools) {
    key += fmt::format(" {} {}:{} {}:{} {}:{}", tool.is_strict, tool.name.size(), tool.name,
                       tool.parameters.size(), tool.parameters, tool.input_grammar.size(),
                       tool.input_grammar);
  }
  if (content) key += " content " + ConstraintCache::key_of(*content);
  return key;
}

// Of tools: those over a limit on their own, then all; then the content's schema, too.
constexpr size_t kMostWidening = 2;

// The schema of an answer at its widest, if it may be widened.
ConstraintSpec widest(const ConstraintSpec& content) {
  ConstraintSpec wider = content;
  if (content.best_effort && !content.strict) wider.text = wider_schemas(content.text).back();
  return wider;
}

std::shared_ptr<Constraint> constrain(const TextModel& model, const TurnRequest& asked,
                                      const TurnShape& shape,
                                      const std::optional<ConstraintSpec>& content) {
  const auto compile = [&](size_t widening) {
    GrammarBuilder builder;
    const std::vector<std::string> ends = end_texts(model);
    TurnGrammarOptions options{
        .choice = shape.reads_calls ? asked.tool_choice : ToolChoice::none,
        .tool_name = asked.tool_name,
        .parallel_calls = asked.parallel_tool_calls,
        .begins_in_reasoning = shape.begins_in_reasoning,
        .special_tokens = model.turns->special_texts(),
        .end_tokens = ends,
        .content = {},
    };
    if (content) {
      options.content = [&](GrammarBuilder& to) {
        return add_constraint(widening < kMostWidening ? *content : widest(*content), to);
      };
    }
    std::optional<ToolSet> wider;
    if (widening > 0 && shape.format->calls) {
      wider = wider_tools(*shape.tools, widening, shape.format->calls->arguments,
                          SpecialText(options.special_tokens));
    }
    const RuleId turn =
        add_turn_grammar(*shape.format, wider ? *wider : *shape.tools, options, builder);
    return std::move(builder).finish(turn);
  };
  return model.constraints->get(key_of(asked, shape, content), [&compile] {
    return compile_within_limits(kMostWidening, compile);
  });
}

// The context begins the prompt, so the template's BOS doesn't.
std::vector<TokenId> after_context(const TextModel& model, const std::vector<TokenId>& context,
                                   std::vector<TokenId> prompt) {
  if (context.empty()) return prompt;
  check_token_ids(context, model.engine.vocab_size(), "context");
  const bool has_bos = !prompt.empty() && prompt.front() == model.tokenizer->bos_token();
  if (has_bos) prompt.erase(prompt.begin());
  prompt.insert(prompt.begin(), context.begin(), context.end());
  return prompt;
}

// Calls are read in what the model writes of its own accord, and nothing keeps it to a grammar.
void check_unconstrained(const TurnRequest& asked) {
  const auto refuse = [](const std::string& field) {
    throw RequestError(field, ErrorReason::unsupported_parameter,
                       field +
                           ": the model's backend can't keep an answer to a grammar, which "
                           "this needs; leave it out, with tool_choice auto or none",
                       ErrorCode::unsupported);
  };
  if (!asked.may_call()) return;
  if (asked.tool_choice != ToolChoice::automatic) refuse("tool_choice");
  for (size_t i = 0; i < asked.tools.size(); ++i) {
    if (asked.tools[i].is_strict) refuse(fmt::format("tools[{}].strict", i));
  }
}

// What can't be done with the tools is the request's mistake.
template <class Call>
auto naming_tools(const Call& call) {
  try {
    return call();
  } catch (const Error& error) {
    throw invalid_field("tools", error.what());
  }
}

}  // namespace

std::string tool_choice_problem(const TurnRequest& asked) {
  if (asked.tool_choice != ToolChoice::required && asked.tool_choice != ToolChoice::named)
    return {};
  if (asked.tools.empty()) return "tool_choice: asks for a call, but there are no tools";
  if (asked.tool_choice == ToolChoice::required) return {};
  const auto is_named = [&](const ToolSpec& tool) { return tool.name == asked.tool_name; };
  if (std::any_of(asked.tools.begin(), asked.tools.end(), is_named)) return {};
  return fmt::format("tool_choice: found \"{}\", expected the name of one of the tools",
                     asked.tool_name);
}

void set_reasoning_effort(const TextModel& model, const std::string& effort, ChatInput& input) {
  if (model.turns == nullptr) return;
  const auto format = model.turns->format();
  if (format->reasoning) add_effort(*format->reasoning, effort, input);
}

ChatTurn prepare_chat_turn(const TextModel& model, const ChatInput& asked_input,
                           const TurnRequest& asked, GenerateOptions& options) {
  if (const std::string problem = tool_choice_problem(asked); !problem.empty()) {
    throw RequestError("tool_choice", ErrorReason::invalid_value, problem);
  }
  ChatInput input = asked_input;
  std::shared_ptr<const TurnFormat> format;
  if (model.turns != nullptr) format = model.turns->format();
  if (asked.reasoning_effort) set_reasoning_effort(model, *asked.reasoning_effort, input);
  const RenderedChat prompt = render_within_context(model, input);
  ChatTurn turn{
      .prompt = after_context(model, asked.context, encode_chat_text(model, prompt, options)),
      .shape = {},
      .constraint = {}};
  const bool begins_anew = !input.continue_final_message && input.add_generation_prompt;
  if (begins_anew && model.engine.keeps_states()) {
    const int64_t of_answer = num_answer_tokens(model, input, prompt);
    if (of_answer > 0) turn.num_before_answer = std::ssize(turn.prompt) - of_answer;
  }
  if (asked.may_call()) {
    if (format == nullptr) throw invalid_field("tools", "the model has no tokenizer");
    if (!begins_anew && asked.tool_choice != ToolChoice::automatic) {
      throw invalid_field("tool_choice", "a call can't continue the final message");
    }
  }
  if (format != nullptr && format->reasoning &&
      (format->reasoning->is_closed_by(prompt.text) ||
       is_switched_off(*format->reasoning, input))) {
    TurnFormat without = *format;
    without.reasoning.reset();
    format = std::make_shared<const TurnFormat>(std::move(without));
  }
  const bool reasons = format != nullptr && format->reasoning.has_value();
  if (!begins_anew || (!asked.may_call() && !reasons)) return turn;
  const auto tools = naming_tools([&] { return std::make_shared<const ToolSet>(asked.tools); });
  turn.shape =
      TurnShape{.format = format,
                .tools = tools,
                .begins_in_reasoning = reasons && format->reasoning->is_opened_by(prompt.text),
                .reads_calls = asked.may_call(),
                .must_call = asked.may_call() && asked.tool_choice != ToolChoice::automatic,
                .make_call_id = asked.make_call_id};
  if (!model.engine.limits().constrains) {
    check_unconstrained(asked);
  } else if (asked.may_call() || options.constraint) {
    find_constraint(model, options);  // else its errors would be those of the tools
    turn.constraint =
        naming_tools([&] { return constrain(model, asked, *turn.shape, options.constraint); });
  }
  return turn;
}

GenerateRequest make_chat_request(const TextModel& model, ChatTurn turn, GenerateOptions options) {
  if (turn.constraint != nullptr) options.constraint.reset();
  GenerateRequest request = make_request(model, std::move(turn.prompt), options);
  if (turn.num_before_answer > 0) request.prefix.shared_lengths.push_back(turn.num_before_answer);
  if (turn.constraint != nullptr) {
    request.constraint = std::move(turn.constraint);
    if (turn.shape && turn.shape->reads_calls) request.constraint_name = "tools";
  }
  if (turn.shape) request.specials = SpecialTokens::shown;  // marks may be special tokens
  return request;
}

}  // namespace paceline
