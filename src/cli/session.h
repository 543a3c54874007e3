#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/multimodal_engine.h"
#include "media/sandbox/sandbox.h"
#include "prep/media_preparer.h"
#include "prep/preprocessor.h"
#include "request/request.h"
#include "weights/checkpoint.h"

namespace triptych::cli {

struct SessionOptions {
  std::string model;  ///< folder of a checkpoint, or a .gguf file
  std::string chat_template_file;
  std::string trace_tensors_file;    ///< JSON lines of every tensor at a stage boundary
  std::string trace_file;            ///< trace events of requests, steps and threads (TraceWriter)
  int64_t context_tokens = 0;        ///< 0: the model's
  int64_t max_sequences = 1;         ///< in work at once
  uint64_t memory_cap_bytes = 0;     ///< of the whole plan; 0: none
  bool caches = true;                ///< keep pixels, features and KV of earlier requests
  std::shared_ptr<Sandbox> sandbox;  ///< where pictures are decoded; null: in this process
};

/// A finished answer.
struct Answer {
  std::vector<int32_t> prompt_ids;  ///< as the decoder saw them, media tokens repeated
  std::string text;
  std::vector<int32_t> token_ids;
  std::vector<TokenLogprobs> logprobs;  ///< of token_ids, when asked for
  FinishReason finish = FinishReason::kNone;
  Usage usage;
};

/// A model ready to answer on this machine: checkpoint, preprocessing, engine and text on both
/// sides of it. What the subcommands share.
class Session {
 public:
  static Result<std::unique_ptr<Session>> open(const SessionOptions& options);
  ~Session();

  /// Receives text as it becomes certain; false stops the answer.
  using OnText = std::function<bool(std::string_view piece)>;

  /// Answers one request.
  Result<Answer> answer(const Request& request, const OnText& on_text);
  /// The same for a request that was prepared (and perhaps changed) by the caller.
  Result<Answer> answer_prepared(PreparedRequest prepared, const OnText& on_text);

  /// Hands the engine over to threads of its own. engine(), runner() and answer() must not be used
  /// for requests any more; the session outlives what is returned.
  /// It takes `max_requests` at once, waiting or in work.
  std::unique_ptr<MultiModalEngine> start(size_t max_requests = PrepLimits().max_open);

  const Preprocessor& prep() const { return *prep_; }
  std::shared_ptr<const Preprocessor> shared_prep() const { return prep_; }
  Engine& engine() { return *engine_; }
  ModelRunner& runner() { return engine_->model_runner(); }
  const Checkpoint& checkpoint() const { return *checkpoint_; }
  int64_t context_tokens() const { return engine_->model_runner().plan().context_tokens; }

 private:
  struct TensorTrace;
  Session();
  Result<Answer> run(PreparedRequest prepared, std::optional<Timeline> begun,
                     const OnText& on_text);

  std::unique_ptr<TraceWriter> trace_;  ///< outlives the engine
  std::unique_ptr<Checkpoint> checkpoint_;
  std::shared_ptr<const Preprocessor> prep_;
  std::unique_ptr<Engine> engine_;
  std::shared_ptr<const MediaPreparer> preparer_;
  std::unique_ptr<TensorTrace> tensor_trace_;
};

/// Tells on stderr what the plan takes.
void print_memory(const MemoryPlan& plan);

/// Reads an encoded picture from disk; errors name the file.
Result<MediaItem> load_media(const std::string& path);

/// A user message of pictures and text, pictures first.
RequestMessage user_message(const std::vector<size_t>& media, std::string text);

/// The sampling that a checkpoint's generation config asks for.
SamplingParams default_sampling(const ModelSpec& spec);

}  // namespace triptych::cli
