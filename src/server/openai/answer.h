#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "observe/timeline.h"
#include "server/answer_pump.h"
#include "server/http/http.h"
#include "server/openai/answer_watch.h"
#include "server/openai/call_fields.h"
#include "server/openai/error.h"
#include "text/answer_text.h"

namespace triptych::openai {

enum class AnswerForm : uint8_t { kChat, kCompletion };

/// What every answer to a request says of itself, and how it comes.
struct AnswerHead {
  AnswerForm form = AnswerForm::kChat;
  std::string id;       ///< "chatcmpl-..."
  std::string model;    ///< as it was asked for
  int64_t created = 0;  ///< seconds since 1970
  bool stream = false;
  bool include_usage = false;
  bool timings = false;
  std::string echo;  ///< text that stands before each completion
  std::optional<ToolUse> tools;
  ToolCallFormat call_format;  ///< of the model, where there are tools
};

/// A completion on its way to its client: one object, or a stream of server-sent events that
/// begins with the first token. What fails before that is a plain error with its status; what fails
/// later is an event of the stream.
class Answer final : public PumpedAnswer {
 public:
  /// `cancel` ends the request in the engine; called when nothing more is wanted of it.
  Answer(AnswerHead head, std::shared_ptr<const Tokenizer> tokenizer,
         const SamplingParams& sampling, std::shared_ptr<http::Exchange> exchange,
         std::function<void()> cancel, AnswerWatch watch);

  void take(const SequenceEvent& event) override;
  void flush() override;

 private:
  struct Choice {
    AnswerText text;
    std::optional<ToolCallParser> parser = {};  ///< where there are tools
    std::string content = {};                   ///< what of the text is no call
    std::vector<ToolCall> calls = {};
    std::vector<std::string> call_ids = {};
    Json logprobs = {};  ///< entries of the tokens since the last chunk; null: none asked for
    FinishReason finish = FinishReason::kNone;
    bool told = false;  ///< its first chunk has been sent

    bool ended() const { return finish != FinishReason::kNone; }
  };

  void take_text(size_t index, const std::string& piece);
  void give_out(size_t index, ToolCallParser::Output parsed);
  void end_choice(size_t index, FinishReason reason);
  void end(const Status& error);
  void tell_watch(const Status& error);
  void begin_stream();
  void add_text_chunk(size_t index, std::string text);
  void add_call_chunk(size_t index, size_t call);
  void add_chunk(size_t index, Json delta);
  Json finish_json(const Choice& choice) const;
  bool has_enough_calls(const Choice& choice) const;
  Json whole_choice(size_t index);
  void add_event(const Json& json);
  Json logprob_entry(const TokenLogprob& token) const;
  static Json logprobs_json(Choice& choice);
  Json object() const;
  Json usage_json() const;
  Json whole();

  const AnswerHead head_;
  const std::shared_ptr<const Tokenizer> tokenizer_;
  std::shared_ptr<http::Exchange> exchange_;
  const std::function<void()> cancel_;
  AnswerWatch watch_;
  std::vector<Choice> choices_;
  std::string events_;  ///< not written yet
  bool begun_ = false;
  bool cancelled_ = false;
  bool ended_ = false;
  Status error_;
  Usage usage_;
  Timeline timeline_;  ///< of the choice that ended last
  int64_t completion_tokens_ = 0;
};

}  // namespace triptych::openai
