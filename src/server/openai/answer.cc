#include "server/openai/answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <utility>

#include "base/log.h"

namespace triptych::openai {
namespace {

constexpr double kLowestLogprob = -9999;  ///< JSON has no infinity; OpenAI's API says so too

/// Some chat templates want nine letters or digits of an id, no more.
std::string new_call_id() {
  constexpr std::string_view kLetters = "0123456789abcdefghijklmnopqrstuvwxyz";
  std::random_device random;
  std::string id;
  for (int i = 0; i < 9; ++i) id += kLetters[random() % kLetters.size()];
  return id;
}

Json call_json(const std::string& id, const ToolCall& call) {
  Json function = Json::object();
  function.set("name", Json::string(call.name));
  function.set("arguments", Json::string(call.arguments));
  Json out = Json::object();
  out.set("id", Json::string(id));
  out.set("type", Json::string("function"));
  out.set("function", std::move(function));
  return out;
}

}  // namespace

Answer::Answer(AnswerHead head, std::shared_ptr<const Tokenizer> tokenizer,
               const SamplingParams& sampling, std::shared_ptr<http::Exchange> exchange,
               std::function<void()> cancel, AnswerWatch watch)
    : head_(std::move(head)),
      tokenizer_(std::move(tokenizer)),
      exchange_(std::move(exchange)),
      cancel_(std::move(cancel)),
      watch_(std::move(watch)) {
  for (int64_t i = 0; i < sampling.n; ++i) {
    choices_.push_back({AnswerText(tokenizer_, sampling)});
    if (head_.tools) choices_.back().parser.emplace(head_.call_format);
  }
}

void Answer::take(const SequenceEvent& event) {
  watch_.take(event);
  const TokenEvent& token = event.token;
  Choice& choice = choices_[token.choice];
  if (token.token >= 0 && !choice.ended()) {
    if (token.logprobs) {
      Json entry = logprob_entry({token.token, token.logprobs->logprob});
      Json top = Json::array();
      for (const TokenLogprob& likely : token.logprobs->top) top.append(logprob_entry(likely));
      entry.set("top_logprobs", std::move(top));
      choice.logprobs.append(std::move(entry));
    }
    take_text(token.choice, choice.text.push(token.token));
    if (choice.text.stopped() || has_enough_calls(choice)) {
      end_choice(token.choice, FinishReason::kStop);
    }
  }
  if (token.finish != FinishReason::kNone) {
    completion_tokens_ += event.usage.completion_tokens;
    usage_ = event.usage;
    if (event.timeline) timeline_ = *event.timeline;
    if (!token.error.is_ok()) error_ = token.error;
    if (!choice.ended() && token.error.is_ok()) end_choice(token.choice, token.finish);
  }
  if (event.ends_request) {
    end(error_);
  } else if (!cancelled_ && std::all_of(choices_.begin(), choices_.end(),
                                        [](const Choice& c) { return c.ended(); })) {
    cancelled_ = true;  // stop strings ended what still draws
    cancel_();
  }
}

void Answer::take_text(size_t index, const std::string& piece) {
  Choice& choice = choices_[index];
  give_out(index, choice.parser ? choice.parser->push(piece) : ToolCallParser::Output{piece, {}});
}

void Answer::give_out(size_t index, ToolCallParser::Output parsed) {
  Choice& choice = choices_[index];
  if (head_.stream) add_text_chunk(index, parsed.text);
  choice.content += parsed.text;
  for (ToolCall& call : parsed.calls) {
    if (has_enough_calls(choice)) return;
    choice.calls.push_back(std::move(call));
    choice.call_ids.push_back(new_call_id());
    if (head_.stream) add_call_chunk(index, choice.calls.size() - 1);
  }
}

bool Answer::has_enough_calls(const Choice& choice) const {
  return head_.tools && !head_.tools->several && !choice.calls.empty();
}

void Answer::end_choice(size_t index, FinishReason reason) {
  Choice& choice = choices_[index];
  if (!has_enough_calls(choice)) {
    take_text(index, choice.text.end());
    if (choice.parser) give_out(index, choice.parser->end());
  }
  choice.finish = choice.text.stopped() ? FinishReason::kStop : reason;
  if (!head_.stream) return;
  if (!choice.told) add_text_chunk(index, {});
  add_chunk(index, head_.form == AnswerForm::kChat ? Json::object() : Json::string(""));
}

void Answer::end(const Status& error) {
  ended_ = true;
  if (error.code() == StatusCode::kInternal) log_error(head_.id + ": " + error.message());
  tell_watch(error);  // first: whoever has the answer finds it counted
  if (!error.is_ok()) {
    if (!begun_ && events_.empty()) {
      exchange_->respond(error_response(error));
      return;
    }
    add_event(error_json(error));
  } else if (!head_.stream) {
    exchange_->respond({.headers = {}, .body = whole().dump()});
    return;
  } else if (head_.include_usage) {
    Json chunk = object();
    chunk.set("choices", Json::array());
    chunk.set("usage", usage_json());
    add_event(chunk);
  }
  events_ += "data: [DONE]\n\n";
}

void Answer::tell_watch(const Status& error) {
  FinishReason worst = error.is_ok() ? FinishReason::kNone : FinishReason::kError;
  for (const Choice& choice : choices_) worst = std::max(worst, choice.finish);
  const bool in_stream = begun_ || !events_.empty();
  watch_.end(worst, in_stream ? 200 : http_status(error.code()), error.code());
}

void Answer::flush() {
  if (!events_.empty()) {
    if (!begun_) begin_stream();
    const bool taken = exchange_->write(std::exchange(events_, {}));
    if (!taken && !ended_ && !cancelled_) {
      cancelled_ = true;
      cancel_();
    }
  }
  if (ended_) exchange_->finish();
}

void Answer::begin_stream() {
  begun_ = true;
  exchange_->start_stream({.content_type = "text/event-stream; charset=utf-8",
                           .headers = {{"Cache-Control", "no-cache"}},
                           .body = {}});
}

/// The first chunk of a choice tells its role, or what is echoed.
void Answer::add_text_chunk(size_t index, std::string text) {
  const bool first = !choices_[index].told;
  if (text.empty() && !first) return;
  if (head_.form == AnswerForm::kCompletion) {
    return add_chunk(index, Json::string(first ? head_.echo + text : std::move(text)));
  }
  Json delta = Json::object();
  if (first) delta.set("role", Json::string("assistant"));
  delta.set("content", Json::string(std::move(text)));
  add_chunk(index, std::move(delta));
}

void Answer::add_call_chunk(size_t index, size_t call) {
  const Choice& choice = choices_[index];
  Json json = call_json(choice.call_ids[call], choice.calls[call]);
  json.set("index", Json::integer(static_cast<int64_t>(call)));
  Json delta = Json::object();
  delta.set("tool_calls", Json::array({std::move(json)}));
  add_chunk(index, std::move(delta));
}

/// `delta` is an object of a chat's answer, or the text of a completion.
void Answer::add_chunk(size_t index, Json delta) {
  Choice& choice = choices_[index];
  choice.told = true;
  Json json = Json::object();
  json.set("index", Json::integer(static_cast<int64_t>(index)));
  json.set(head_.form == AnswerForm::kChat ? "delta" : "text", std::move(delta));
  json.set("logprobs", logprobs_json(choice));
  json.set("finish_reason", finish_json(choice));
  Json chunk = object();
  chunk.set("choices", Json::array({std::move(json)}));
  if (head_.include_usage) chunk.set("usage", Json());
  add_event(chunk);
}

/// OpenAI's names: an answer that a client or the server broke off has none of its own, and one
/// that had to call a certain tool just stops.
Json Answer::finish_json(const Choice& choice) const {
  if (choice.finish == FinishReason::kNone) return {};
  if (choice.finish == FinishReason::kLength) return Json::string("length");
  const bool calls = !choice.calls.empty() && head_.tools->named.empty();
  return Json::string(calls ? "tool_calls" : "stop");
}

void Answer::add_event(const Json& json) { events_ += fmt::format("data: {}\n\n", json.dump()); }

/// `bytes` is null for a token that is only a part of a character.
Json Answer::logprob_entry(const TokenLogprob& token) const {
  const std::string text = tokenizer_->decode({&token.token, 1}, false);
  Json out = Json::object();
  out.set("token", Json::string(text));
  out.set("logprob", Json::number(std::max(token.logprob, kLowestLogprob)));
  Json bytes;
  if (text.find("\xef\xbf\xbd") == std::string::npos) {
    bytes = Json::array();
    for (const char c : text) bytes.append(Json::integer(static_cast<uint8_t>(c)));
  }
  out.set("bytes", std::move(bytes));
  return out;
}

/// Takes what has come since the last call.
Json Answer::logprobs_json(Choice& choice) {
  if (choice.logprobs.is_null()) return {};
  Json out = Json::object();
  out.set("content", std::exchange(choice.logprobs, {}));
  out.set("refusal", Json());
  return out;
}

Json Answer::object() const {
  const char* chat = head_.stream ? "chat.completion.chunk" : "chat.completion";
  Json out = Json::object();
  out.set("id", Json::string(head_.id));
  out.set("object", Json::string(head_.form == AnswerForm::kChat ? chat : "text_completion"));
  out.set("created", Json::integer(head_.created));
  out.set("model", Json::string(head_.model));
  return out;
}

Json Answer::usage_json() const {
  Json prompt = Json::object();
  prompt.set("cached_tokens", Json::integer(timeline_.cached_tokens));
  prompt.set("image_tokens", Json::integer(usage_.media_tokens));
  Json out = Json::object();
  out.set("prompt_tokens", Json::integer(usage_.prompt_tokens));
  out.set("completion_tokens", Json::integer(completion_tokens_));
  out.set("total_tokens", Json::integer(usage_.prompt_tokens + completion_tokens_));
  out.set("prompt_tokens_details", std::move(prompt));
  if (head_.timings) out.set("timings", stage_times_json(timeline_.clock));
  return out;
}

Json Answer::whole_choice(size_t index) {
  Choice& choice = choices_[index];
  Json out = Json::object();
  out.set("index", Json::integer(static_cast<int64_t>(index)));
  if (head_.form == AnswerForm::kChat) {
    Json message = Json::object();
    message.set("role", Json::string("assistant"));
    if (choice.calls.empty() || !choice.content.empty()) {
      message.set("content", Json::string(choice.content));
    } else {
      message.set("content", Json());
    }
    message.set("refusal", Json());
    if (!choice.calls.empty()) {
      Json calls = Json::array();
      for (size_t i = 0; i < choice.calls.size(); ++i) {
        calls.append(call_json(choice.call_ids[i], choice.calls[i]));
      }
      message.set("tool_calls", std::move(calls));
    }
    out.set("message", std::move(message));
  } else {
    out.set("text", Json::string(head_.echo + choice.content));
  }
  out.set("logprobs", logprobs_json(choice));
  out.set("finish_reason", finish_json(choice));
  return out;
}

Json Answer::whole() {
  Json choices = Json::array();
  for (size_t i = 0; i < choices_.size(); ++i) choices.append(whole_choice(i));
  Json out = object();
  out.set("choices", std::move(choices));
  out.set("usage", usage_json());
  return out;
}

}  // namespace triptych::openai
