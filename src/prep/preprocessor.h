#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/thread_pool.h"
#include "core/tensor_registry.h"
#include "media/image/recipe.h"
#include "media/sandbox/sandbox.h"
#include "models/spec.h"
#include "request/request.h"
#include "text/chat_template.h"
#include "text/grammar_constraint.h"
#include "text/tokenizer.h"
#include "text/tool_calls.h"
#include "weights/checkpoint.h"

namespace triptych {

/// What a picture will cost, from its header alone.
struct ImageCost {
  ImageHeader header;
  ImagePlan plan;
  int64_t n_tokens = 0;
};

struct PrepOptions {
  std::string chat_template_file;  ///< replaces the checkpoint's own; empty: the checkpoint's
  DecodeOptions decode;
  std::shared_ptr<Sandbox> sandbox;  ///< where pictures are decoded; null: in this process
};

/// From a request to what the engine takes: media are costed by header, decoded and preprocessed;
/// the conversation is rendered and tokenised; media tokens become spans of the length that sizes
/// the features. Immutable after loading; prepare() may be called by several threads, each with a
/// pool of its own.
class Preprocessor {
 public:
  /// Reads tokenizer, chat template and image recipe of a checkpoint. A checkpoint without a chat
  /// template loads; using messages with it is the error then.
  static Result<std::unique_ptr<Preprocessor>> load(const Checkpoint& checkpoint,
                                                    const ModelSpec& spec,
                                                    const PrepOptions& options = {});

  /// Sizes and tokens of a picture; no pixel is decoded. Errors name `item`.
  Result<ImageCost> cost(const MediaItem& item) const;

  /// Prepares a request: its prompt, then its media.
  Result<PreparedRequest> prepare(const Request& request, int64_t context_limit, ThreadPool& pool,
                                  TensorRegistry& registry) const;

  /// All but the media. kOutOfRange with both numbers when the prompt does not leave room for one
  /// token in `context_limit`; bad sampling fields (ids beyond the vocabulary too) and a grammar
  /// that does not compile are errors as well. No pixel is decoded.
  Result<PreparedRequest> prepare_prompt(const Request& request, int64_t context_limit) const;

  /// Identity of the pixels of an item that cost() takes: its bytes, the recipe and its version.
  MediaId pixels_id(const MediaItem& item) const;
  /// Decodes and preprocesses an item whose pixels_id() is `id`. Errors do not name the item.
  Result<std::shared_ptr<const PreparedMedia>> prepare_media(const MediaItem& item,
                                                             const MediaId& id, ThreadPool& pool,
                                                             TensorRegistry& registry) const;

  const Tokenizer& tokenizer() const { return *tokenizer_; }
  std::shared_ptr<const Tokenizer> shared_tokenizer() const { return tokenizer_; }
  /// How the model writes calls of tools; kUnsupported or kNotFound when its template has none.
  const Result<ToolCallFormat>& tool_calls() const { return tool_calls_; }
  bool has_chat_template() const { return chat_template_ != nullptr; }
  const std::optional<ImageRecipe>& recipe() const { return recipe_; }

 private:
  explicit Preprocessor(const ModelSpec& spec) : spec_(spec) {}
  Result<ImageCost> image_cost(std::span<const std::byte> bytes) const;
  Status fill_pixels(std::span<const std::byte> bytes, std::span<float> values,
                     ThreadPool& pool) const;
  Result<EncodedPrompt> encode(const Request& request) const;
  Status prepare_sampling(const SamplingParams& sampling, PreparedRequest& out) const;
  Status add_missing_bos(EncodedPrompt& encoded) const;

  ModelSpec spec_;
  PrepOptions options_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::shared_ptr<const ChatTemplate> chat_template_;
  std::unique_ptr<const GrammarConstraints> grammars_;
  Status no_template_;  ///< why there is none
  Result<ToolCallFormat> tool_calls_ = ToolCallFormat{};
  std::optional<ImageRecipe> recipe_;
};

}  // namespace triptych
