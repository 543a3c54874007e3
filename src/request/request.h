#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "core/tensor.h"
#include "core/tensor_registry.h"
#include "request/sampling_params.h"
#include "request/token_constraint.h"

namespace triptych {

/// One encoded picture, clip or sound as it came in.
struct MediaItem {
  Modality modality = Modality::kImage;
  std::string name;                          ///< path or JSON path, for messages
  std::shared_ptr<const std::string> bytes;  ///< encoded file
};

/// A piece of a message: text, or a place for one of the request's media items.
struct RequestPart {
  std::string text;
  std::optional<size_t> media;  ///< index into Request::media; text is empty then
};

struct RequestMessage {
  std::string role = {};
  std::vector<RequestPart> parts = {};
  Json tool_calls = {};           ///< of an assistant, as the OpenAI API has them; or null
  std::string tool_call_id = {};  ///< of a tool: the call that this is the result of
  std::string name = {};          ///< of whoever speaks, where templates show it
};

/// What a user asks, typed and validated once.
struct Request {
  std::vector<RequestMessage> messages;  ///< a conversation, or
  std::string raw_prompt;                ///< text taken as it is when there are no messages
  std::vector<MediaItem> media;
  Json tools = {};  ///< what may be called: definitions as the OpenAI API has them; or null
  SamplingParams sampling;
};

/// 256-bit identity of content, pixels, features: a link of the chain in docs/architecture.md.
using MediaId = std::array<uint8_t, 32>;

/// A media item's place in a sequence. Positions of the span hold features, never the embedding of
/// the media token; user text cannot make one.
struct Span {
  int64_t position = 0;  ///< of its first row in the sequence
  int64_t length = 0;    ///< rows, equal to the rows of the features
  size_t media = 0;      ///< index into PreparedRequest::media
};

/// A media item after preprocessing.
struct PreparedMedia {
  Modality modality = Modality::kImage;
  MediaId id{};          ///< identity of the pixels
  Tensor pixels;         ///< [3, H, W] f32
  int64_t n_tokens = 0;  ///< rows that its features take in a sequence
  int64_t source_width = 0;
  int64_t source_height = 0;
};

/// What the engine takes: ids with media positions, and what goes there.
struct PreparedRequest {
  std::vector<int32_t> ids;  ///< media positions hold the media token's id
  std::vector<Span> spans;   ///< by position
  std::vector<std::shared_ptr<const PreparedMedia>>
      media;  ///< shared by requests that show the same
  SamplingParams sampling;
  std::shared_ptr<const TokenConstraintSource> constraint;  ///< of sampling.grammar; null: free
  int64_t n_known_tokens = 0;  ///< ids the tokenizer can spell; logits beyond are never drawn
  double prep_ms = 0;          ///< decoding, preprocessing, template and tokenising
};

enum class FinishReason : uint8_t {
  kNone,       ///< not finished
  kStop,       ///< end-of-sequence token or stop string
  kLength,     ///< max_tokens or the context is full
  kCancelled,  ///< by the caller
  kError,
};
/// "stop", "length", "cancelled", "error"; empty while not finished.
std::string_view finish_reason_name(FinishReason reason);

/// A token and how likely it was.
struct TokenLogprob {
  int32_t token = -1;
  double logprob = 0;
};

/// Log-probabilities of one step: log-softmax of the model's own logits, before penalties, bias,
/// grammar and temperature (as OpenAI and vLLM give them), over the ids the tokenizer can spell.
struct TokenLogprobs {
  double logprob = 0;             ///< of the token that was drawn
  std::vector<TokenLogprob> top;  ///< the most likely ones, first the highest; ties by lowest id
};

/// One step of an answer.
struct TokenEvent {
  uint64_t sequence = 0;
  int32_t token = -1;  ///< -1 when the event only ends the answer
  FinishReason finish = FinishReason::kNone;
  Status error;                           ///< of kError
  std::optional<TokenLogprobs> logprobs;  ///< when asked for, with a token
  uint32_t choice = 0;                    ///< index of the answer among the n of its request
};

/// Counts and times of an answer.
struct Usage {
  int64_t prompt_tokens = 0;  ///< media tokens included
  int64_t media_tokens = 0;
  int64_t completion_tokens = 0;
  int64_t drawn_tokens = 0;  ///< these and the end token, which is drawn but not given out
  int32_t preemptions = 0;   ///< times its pages were taken from it and computed again
  double prep_ms = 0;
  double encode_ms = 0;   ///< vision tower and projector
  double prefill_ms = 0;  ///< decoder over the prompt
  double decode_ms = 0;   ///< all further tokens

  /// Steps of one token each behind the prompt's, which draws the first.
  int64_t decode_steps() const { return drawn_tokens > 0 ? drawn_tokens - 1 : 0; }
  /// Time to the first token; nothing when none was drawn, as in an answer cancelled before.
  std::optional<double> ttft_ms() const;
  /// Rate of the decode steps; nothing when there was none.
  std::optional<double> decode_tokens_per_s() const;
};

}  // namespace triptych
