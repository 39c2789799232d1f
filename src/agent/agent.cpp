// SPDX-License-Identifier: Apache-2.0
// See agent.h.
#include "agent/agent.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "agent/agent_turn.h"
#include "agent/read_calls.h"
#include "base/utf8.h"
#include "calls/format_table.h"
#include "generate/answer/answer_form.h"

namespace gen::agent {
namespace {

using chat::ChatMessage;
using generate::AnswerRules;

constexpr const char* kBudgetSpent = "the budget of tokens is spent";

void demand(const std::string& choice, AnswerRules* rules) {
  rules->tool.clear();
  if (choice == "auto") {
    rules->calls = AnswerRules::Calls::kAuto;
  } else if (choice == "none") {
    rules->calls = AnswerRules::Calls::kNone;
  } else if (choice == "required") {
    rules->calls = AnswerRules::Calls::kRequired;
  } else {
    rules->calls = AnswerRules::Calls::kNamed;
    rules->tool = choice;
  }
}

std::vector<ChatMessage> first_messages(const AgentOptions& options) {
  std::vector<ChatMessage> messages;
  if (!options.system.empty()) messages.push_back({"system", options.system});
  return messages;
}

}  // namespace

generate::CallParams AgentOptions::default_call() {
  generate::CallParams call;
  call.stops.max_new_tokens = kDefaultMaxNewTokens;
  return call;
}

Agent::Agent(std::shared_ptr<ToolRegistry> registry, AgentOptions options)
    : registry_(std::move(registry)), options_(std::move(options)) {
  if (options_.max_steps <= 0) options_.max_steps = kDefaultMaxSteps;
  chat_->conversation.messages = first_messages(options_);
  if (options_.call_format != "auto") chat_->rules.format = options_.call_format;
}

Result<std::shared_ptr<Agent>> Agent::create(
    const std::shared_ptr<const generate::Generator>& generator,
    std::shared_ptr<ToolRegistry> registry, AgentOptions options) {
  std::shared_ptr<Agent> made(new Agent(std::move(registry), std::move(options)));
  if (generator == nullptr) return made;
  made->generator_ = generator;
  GEN_ASSIGN(made->session_, generate::ChatSession::create(generator, made->work_));
  return made;
}

int64_t Agent::tokens_left(const Turn& turn) const noexcept {
  int64_t left = std::numeric_limits<int64_t>::max();
  if (options_.max_tokens > 0) {
    left = options_.max_tokens - (turn.fresh() ? 0 : record_.total_tokens);
  }
  return turn.budget() != nullptr ? std::min(left, turn.budget()->left()) : left;
}

Status Agent::stopped(Turn* turn) noexcept {
  if (!turn->thrown().ok()) return turn->thrown();
  own_cancel_->reset();
  if (turn->fresh()) record_ = AgentRecord();
  turn->note_kept();
  record_.stop = StopReason::kCancelled;
  return {Code::kCancelled,
          turn->stopped() ? "the callback stopped the agent" : "the agent was cancelled"};
}

Status Agent::run(std::optional<std::string_view> task, const RunFrame& frame,
                  AgentCallback callback, void* user, std::optional<generate::GenResult>* result) {
  result->reset();
  const InUseGuard in_use(&in_use_);
  GEN_TRY(in_use.entered("the agent"));
  if (session_ == nullptr) {
    return {Code::kState, "the agent has no generator: give each step the model's output"};
  }
  const InUseGuard held(&chat_->in_use);
  GEN_TRY(held.entered("the conversation"));
  return run_held(task, frame, callback, user, result);
}

Status Agent::run_alone(std::string_view task, const RunFrame& frame, AgentCallback callback,
                        void* user, AgentRecord* record) {
  const InUseGuard in_use(&in_use_);
  GEN_TRY(in_use.entered("the agent"));
  const InUseGuard held(&chat_->in_use);
  GEN_TRY(held.entered("the conversation"));
  chat_->conversation.messages = first_messages(options_);
  record_ = AgentRecord();
  std::optional<generate::GenResult> result;
  GEN_TRY(run_held(task, frame, callback, user, &result));
  *record = record_;
  return {};
}

Status Agent::run_held(std::optional<std::string_view> task, const RunFrame& frame,
                       AgentCallback callback, void* user,
                       std::optional<generate::GenResult>* result) {
  Turn turn(*this, frame, callback, user, true);
  for (;;) {
    if (turn.cancelled() || turn.stopped()) return stopped(&turn);
    if (tokens_left(turn) <= 0) {
      if (turn.fresh()) record_ = AgentRecord();
      record_.stop = StopReason::kMaxTokens;
      return {};
    }
    auto ended = generated_step(task, &turn, result);
    if (!ended.ok()) {
      if (ended.status().code() == Code::kCancelled) return stopped(&turn);
      return ended.status();
    }
    if (*ended) return {};
    task.reset();
  }
}

Status Agent::step(std::optional<std::string_view> output, AgentCallback callback, void* user,
                   bool* finished) {
  *finished = false;
  const InUseGuard in_use(&in_use_);
  GEN_TRY(in_use.entered("the agent"));
  if (!output.has_value() && session_ == nullptr) {
    return {Code::kState, "the agent has no generator: give the step the model's output"};
  }
  if (output.has_value() && !utf8_valid(*output)) {
    return {Code::kInvalidArgument, "the model's output is not UTF-8"};
  }
  const InUseGuard held(&chat_->in_use);
  GEN_TRY(held.entered("the conversation"));
  const RunFrame frame;
  Turn turn(*this, frame, callback, user,
            record_.steps.empty() || record_.stop != StopReason::kNone);
  if (turn.cancelled()) return stopped(&turn);
  std::optional<generate::GenResult> result;
  auto ended = output.has_value() ? given_step(*output, &turn)
                                  : generated_step(std::nullopt, &turn, &result);
  if (ended.ok()) {
    *finished = *ended;
    return {};
  }
  return ended.status().code() == Code::kCancelled ? stopped(&turn) : ended.status();
}

Result<bool> Agent::generated_step(std::optional<std::string_view> task, Turn* turn,
                                   std::optional<generate::GenResult>* result) {
  chat::Conversation& conversation = work_->conversation;
  conversation = chat_->conversation;
  GEN_ASSIGN(conversation.tools, turn->descriptions());
  work_->rules = chat_->rules;
  if (turn->fresh() && !options_.tool_choice.empty()) demand(options_.tool_choice, &work_->rules);
  generate::CallParams params = options_.call;
  params.cancel = turn->cancel();
  const int64_t left = tokens_left(*turn);
  const bool capped = left < params.stops.effective_max_new_tokens();
  if (capped) params.stops.max_new_tokens = static_cast<int32_t>(std::max<int64_t>(left, 1));

  turn->begin_step();
  if (turn->stopped()) return Status(Code::kCancelled, "");
  GEN_TRY(session_->send(task, params, Turn::take_event, turn, result));
  if (turn->stopped()) return Status(Code::kCancelled, "");
  const generate::GenResult& answer = **result;
  const ChatMessage& message = conversation.messages.back();
  AgentStep step;
  step.number = turn->number();
  step.output = answer.text;
  step.text = message.content;
  step.reasoning = message.reasoning;
  step.calls = message.tool_calls;
  if (answer.answer != nullptr) step.faults = answer.answer->faults;
  step.tokens = answer.usage.completion;
  // A call that fits into the sampling's own limit, or the context, is complete, and is run.
  const bool full = answer.finish_reason == generate::FinishReason::kContextFull;
  const bool length = answer.finish_reason == generate::FinishReason::kLength;
  const bool cut = (length && capped) || ((length || full) && step.calls.empty());
  return finish_step(std::move(step), cut, turn);
}

Result<std::shared_ptr<const calls::CallFormat>> Agent::format_of_given() {
  if (options_.call_format != "auto") return call_format(options_.call_format);
  if (generator_ == nullptr) return calls::generic_format();
  GEN_ASSIGN(auto form, generate::answer_form(*generator_->tokenizer(), work_->conversation,
                                              work_->rules, &derived_));
  return form.format != nullptr && form.tools != nullptr ? form.format : calls::generic_format();
}

Result<bool> Agent::given_step(std::string_view output, Turn* turn) {
  chat::Conversation& conversation = work_->conversation;
  conversation = chat_->conversation;
  GEN_ASSIGN(conversation.tools, turn->descriptions());
  work_->rules = chat_->rules;
  GEN_ASSIGN(const auto format, format_of_given());
  turn->begin_step();
  if (turn->stopped()) return Status(Code::kCancelled, "");
  const calls::Answer answer = calls::parse_answer(format, nullptr, output);
  conversation.messages.push_back(answer_message(answer, *format, conversation));
  const ChatMessage& message = conversation.messages.back();
  AgentStep step;
  step.number = turn->number();
  step.output = output;
  step.text = message.content;
  step.reasoning = message.reasoning;
  step.calls = message.tool_calls;
  step.faults = answer.faults;
  step.tokens = static_cast<int64_t>(output.size());
  if (generator_ != nullptr) {
    std::vector<int32_t> ids;
    const Status encoded = generator_->tokenizer()->encode(output, 0, &ids);
    if (encoded.ok()) {
      step.tokens = static_cast<int64_t>(ids.size());
    } else if (encoded.code() != Code::kTokenizer) {  // what cannot be encoded counts as bytes
      return encoded;
    }
  }
  return finish_step(std::move(step), false, turn);
}

// Runs the calls, unless the budget is spent, and keeps the step.
Result<bool> Agent::finish_step(AgentStep step, bool over, Turn* turn) {
  over = over || tokens_left(*turn) < step.tokens;
  if (turn->budget() != nullptr) {
    turn->budget()->spent.fetch_add(step.tokens, std::memory_order_relaxed);
  }
  std::vector<ReadyCall> ready;
  for (const chat::ToolCall& call : step.calls) {
    ready.push_back({call, turn->tool(call.name)});
    if (over) step.results.push_back(not_run(call, kBudgetSpent));
  }
  StopReason stop = StopReason::kNone;
  if (over) {
    stop = StopReason::kMaxTokens;
  } else if (step.calls.empty()) {
    stop = StopReason::kNoTools;
  } else {
    turn->set_calls(&step.calls);
    const RunnerOptions runner{options_.tool_threads, options_.tool_timeout_ms,
                               options_.check_arguments};
    GEN_TRY(run_calls(ready, runner, turn->cancel(), turn, &step.results));
    const bool failed = std::any_of(step.results.begin(), step.results.end(),
                                    [](const ToolResult& result) { return result.is_error; });
    if (turn->cancelled() || turn->stopped()) {
      stop = StopReason::kCancelled;
    } else if (failed && options_.stop_on_tool_error) {
      stop = StopReason::kToolError;
    } else if (step.number >= options_.max_steps) {
      stop = StopReason::kMaxSteps;
    }
  }
  const bool cancelled = stop == StopReason::kCancelled;
  keep_step(std::move(step), cancelled ? StopReason::kNone : stop, turn);
  turn->end_step(record_.steps.back());
  if (cancelled || (stop == StopReason::kNone && turn->stopped())) {
    return Status(Code::kCancelled, "");
  }
  return stop != StopReason::kNone;
}

// Allocates first, so that a failure keeps nothing of the step.
void Agent::keep_step(AgentStep step, StopReason stop, Turn* turn) {
  std::vector<ChatMessage> messages = work_->conversation.messages;
  std::vector<std::string> tools = work_->conversation.tools;
  for (size_t i = 0; i < step.calls.size(); ++i) {
    const ToolResult& result = step.results[i];
    ChatMessage said{"tool", result.is_error ? "error: " : ""};
    said.content += shortened_output(result.output, static_cast<size_t>(options_.max_result_bytes));
    said.name = step.calls[i].name;
    said.tool_call_id = step.calls[i].id;
    messages.push_back(std::move(said));
  }
  AgentRecord fresh;
  AgentRecord& record = turn->fresh() ? fresh : record_;
  const int64_t tokens = step.tokens;
  record.steps.push_back(std::move(step));
  record.total_tokens += tokens;
  record.stop = stop;
  if (turn->fresh()) record_ = std::move(fresh);
  turn->note_kept();
  chat_->conversation.messages.swap(messages);
  chat_->conversation.tools.swap(tools);
}

Status Agent::set_cancel(std::shared_ptr<const CancelFlag> cancel) {
  const InUseGuard in_use(&in_use_);
  GEN_TRY(in_use.entered("the agent"));
  given_cancel_ = std::move(cancel);
  return {};
}

Status Agent::reset() {
  const InUseGuard in_use(&in_use_);
  GEN_TRY(in_use.entered("the agent"));
  const InUseGuard held(&chat_->in_use);
  GEN_TRY(held.entered("the conversation"));
  chat_->conversation.messages = first_messages(options_);
  record_ = AgentRecord();
  own_cancel_->reset();
  return {};
}

Result<std::string> Agent::describe() const {
  const InUseGuard in_use(&in_use_);
  GEN_TRY(in_use.entered("the agent"));
  return record_.describe();
}

Result<AgentRecord> Agent::record() const {
  const InUseGuard in_use(&in_use_);
  GEN_TRY(in_use.entered("the agent"));
  return record_;
}

}  // namespace gen::agent
