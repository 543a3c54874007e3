#include "prep/preprocessor.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"
#include "text/blake3.h"
#include "text/gguf_tokenizer.h"

namespace triptych {
namespace {

std::span<const std::byte> bytes_of(const MediaItem& item) {
  return std::as_bytes(std::span(item.bytes->data(), item.bytes->size()));
}

Result<std::shared_ptr<const Tokenizer>> load_gguf_tokenizer(const Checkpoint& checkpoint) {
  const GgufVocabulary& v = *checkpoint.gguf_vocabulary();
  GgufTokenizerMetadata metadata{
      v.model,  v.pre,        v.tokens,     v.scores,  v.token_types, v.merges,          v.bos_id,
      v.eos_id, v.unknown_id, v.padding_id, v.add_bos, v.add_eos,     v.add_space_prefix};
  Result<GgufTokenizer> built = build_gguf_tokenizer(metadata);
  if (!built.is_ok()) return built.status().with_context(checkpoint.path());
  return Tokenizer::from_json(built->tokenizer_json, std::move(built->config), checkpoint.path());
}

ChatMessage to_chat_message(const RequestMessage& message, const std::vector<MediaItem>& media) {
  ChatMessage out;
  out.role = message.role;
  out.tool_calls = message.tool_calls;
  out.tool_call_id = message.tool_call_id;
  out.name = message.name;
  for (const RequestPart& part : message.parts) {
    if (!part.media) {
      out.parts.push_back(MessagePart::of_text(part.text));
      continue;
    }
    switch (media[*part.media].modality) {
      case Modality::kAudio:
        out.parts.push_back(MessagePart::of_media(MessagePart::Kind::kAudio));
        break;
      case Modality::kVideo:
        out.parts.push_back(MessagePart::of_media(MessagePart::Kind::kVideo));
        break;
      default:
        out.parts.push_back(MessagePart::of_media(MessagePart::Kind::kImage));
        break;
    }
  }
  return out;
}

}  // namespace

Result<std::unique_ptr<Preprocessor>> Preprocessor::load(const Checkpoint& checkpoint,
                                                         const ModelSpec& spec,
                                                         const PrepOptions& options) {
  std::unique_ptr<Preprocessor> prep(new Preprocessor(spec));
  prep->options_ = options;
  if (checkpoint.is_gguf()) {
    TRIPTYCH_ASSIGN_OR_RETURN(prep->tokenizer_, load_gguf_tokenizer(checkpoint));
  } else {
    TRIPTYCH_ASSIGN_OR_RETURN(prep->tokenizer_, Tokenizer::from_folder(checkpoint.path()));
  }
  prep->grammars_ =
      std::make_unique<const GrammarConstraints>(prep->tokenizer_, spec.generation.eos_ids);
  Result<std::shared_ptr<const ChatTemplate>> chat_template =
      not_found(checkpoint.path() + ": the file has no chat template; pass --chat-template FILE");
  if (!options.chat_template_file.empty()) {
    chat_template = ChatTemplate::from_file(options.chat_template_file, prep->tokenizer_);
  } else if (!checkpoint.is_gguf()) {
    chat_template = ChatTemplate::from_folder(checkpoint.path(), prep->tokenizer_);
  } else if (checkpoint.gguf_chat_template() != nullptr) {
    chat_template = ChatTemplate::from_text(*checkpoint.gguf_chat_template(), prep->tokenizer_,
                                            checkpoint.path());
  }
  if (chat_template.is_ok()) {
    prep->chat_template_ = *chat_template;
    prep->tool_calls_ = find_tool_call_format(**chat_template);
  } else if (chat_template.status().code() == StatusCode::kNotFound) {
    prep->no_template_ = chat_template.status();
    prep->tool_calls_ = chat_template.status();
  } else {
    return chat_template.status();
  }
  if (spec.vision) {
    TRIPTYCH_ASSIGN_OR_RETURN(prep->recipe_, load_image_recipe(checkpoint.path()));
  }
  return prep;
}

Result<ImageCost> Preprocessor::cost(const MediaItem& item) const {
  if (item.modality != Modality::kImage || !recipe_) {
    return unsupported(fmt::format("{}: a {} model takes no {}", item.name, spec_.model_type,
                                   modality_name(item.modality)));
  }
  Result<ImageCost> out = image_cost(bytes_of(item));
  return out.is_ok() ? out : out.status().with_context(item.name);
}

Result<ImageCost> Preprocessor::image_cost(std::span<const std::byte> bytes) const {
  ImageCost out;
  TRIPTYCH_ASSIGN_OR_RETURN(out.header, probe_image(bytes, options_.decode.limits));
  TRIPTYCH_ASSIGN_OR_RETURN(out.plan, plan_image(out.header.width, out.header.height, *recipe_));
  TRIPTYCH_ASSIGN_OR_RETURN(out.n_tokens, spec_.image_tokens(out.plan.width, out.plan.height));
  return out;
}

Result<EncodedPrompt> Preprocessor::encode(const Request& request) const {
  if (request.messages.empty()) {
    EncodedPrompt out;
    TRIPTYCH_ASSIGN_OR_RETURN(out.ids, tokenizer_->encode(request.raw_prompt, true));
    out.text = request.raw_prompt;
    // A raw prompt has no media parts: a media token in it would be a place without features.
    for (size_t i = 0; i < out.ids.size(); ++i) {
      if (spec_.image_token_id && out.ids[i] == *spec_.image_token_id) {
        return invalid_argument(fmt::format(
            "the prompt's token {} is the model's image token, but a raw prompt carries no "
            "pictures; use messages",
            i));
      }
    }
    return out;
  }
  if (chat_template_ == nullptr) return no_template_;
  ChatPrompt prompt;
  prompt.tools = request.tools;
  for (const RequestMessage& message : request.messages) {
    prompt.messages.push_back(to_chat_message(message, request.media));
  }
  TRIPTYCH_ASSIGN_OR_RETURN(EncodedPrompt encoded,
                            chat_template_->encode(prompt, {.image = spec_.image_token_id}));
  TRIPTYCH_RETURN_IF_ERROR(add_missing_bos(encoded));
  return encoded;
}

/// A template owns its special tokens, with one exception of transformers: a processor (which only
/// multimodal checkpoints have) lets the tokenizer add BOS to a rendered prompt that does not start
/// with it (ProcessorMixin.apply_chat_template; published templates rely on it).
Status Preprocessor::add_missing_bos(EncodedPrompt& encoded) const {
  if (!spec_.vision) return Status::ok();
  const std::optional<std::string> bos = tokenizer_->named_token("bos_token");
  if (!bos || encoded.text.starts_with(*bos)) return Status::ok();
  TRIPTYCH_ASSIGN_OR_RETURN(const std::vector<TokenId> around_nothing,
                            tokenizer_->encode("", true));
  if (around_nothing.empty() || around_nothing.front() != tokenizer_->bos_id()) {
    return Status::ok();
  }
  encoded.ids.insert(encoded.ids.begin(), around_nothing.front());
  for (MediaSlot& slot : encoded.slots) ++slot.index;
  return Status::ok();
}

/// Checks the sampling fields and compiles the grammar.
Status Preprocessor::prepare_sampling(const SamplingParams& sampling, PreparedRequest& out) const {
  out.n_known_tokens =
      std::min<int64_t>(spec_.text.vocab_size, static_cast<int64_t>(tokenizer_->vocab_size()));
  TRIPTYCH_RETURN_IF_ERROR(validate(sampling, {.vocab_size = out.n_known_tokens}));
  out.sampling = sampling;
  if (sampling.grammar) {
    TRIPTYCH_ASSIGN_OR_RETURN(out.constraint, grammars_->compile(*sampling.grammar));
  }
  return Status::ok();
}

Result<PreparedRequest> Preprocessor::prepare(const Request& request, int64_t context_limit,
                                              ThreadPool& pool, TensorRegistry& registry) const {
  const double start = steady_ms();
  TRIPTYCH_ASSIGN_OR_RETURN(PreparedRequest out, prepare_prompt(request, context_limit));
  for (const MediaItem& item : request.media) {
    auto media = prepare_media(item, pixels_id(item), pool, registry);
    if (!media.is_ok()) return media.status().with_context(item.name);
    out.media.push_back(std::move(*media));
  }
  out.prep_ms = steady_ms() - start;
  return out;
}

Result<PreparedRequest> Preprocessor::prepare_prompt(const Request& request,
                                                     int64_t context_limit) const {
  PreparedRequest out;
  TRIPTYCH_RETURN_IF_ERROR(prepare_sampling(request.sampling, out));
  std::vector<int64_t> media_rows;
  for (const MediaItem& item : request.media) {
    TRIPTYCH_ASSIGN_OR_RETURN(const ImageCost item_cost, cost(item));
    media_rows.push_back(item_cost.n_tokens);
  }
  TRIPTYCH_ASSIGN_OR_RETURN(const EncodedPrompt encoded, encode(request));

  // Parts name media in message order, which may differ from the order of request.media.
  std::vector<size_t> in_order;
  for (const RequestMessage& message : request.messages) {
    for (const RequestPart& part : message.parts) {
      if (part.media) in_order.push_back(*part.media);
    }
  }
  size_t next_slot = 0;
  int64_t media_tokens = 0;
  for (size_t i = 0; i < encoded.ids.size(); ++i) {
    if (next_slot < encoded.slots.size() && encoded.slots[next_slot].index == i) {
      const size_t media = in_order[encoded.slots[next_slot].ordinal];
      const int64_t n = media_rows[media];
      out.spans.push_back({static_cast<int64_t>(out.ids.size()), n, media});
      out.ids.insert(out.ids.end(), static_cast<size_t>(n), encoded.ids[i]);
      media_tokens += n;
      ++next_slot;
    } else {
      out.ids.push_back(encoded.ids[i]);
    }
  }
  const auto n_prompt = static_cast<int64_t>(out.ids.size());
  if (n_prompt == 0) return invalid_argument("the prompt is empty");
  if (n_prompt >= context_limit) {
    return out_of_range(fmt::format(
        "the prompt has {} tokens ({} of them media), but the context holds {} and needs room for "
        "an answer: shorten it by at least {}",
        n_prompt, media_tokens, context_limit, n_prompt - context_limit + 1));
  }
  return out;
}

MediaId Preprocessor::pixels_id(const MediaItem& item) const {
  Blake3Hasher hasher;
  const Blake3Hash content = blake3(bytes_of(item));
  hasher.update_framed(
      std::string_view(reinterpret_cast<const char*>(content.data()), content.size()));
  hasher.update_framed(image_recipe_key(*recipe_));
  hasher.update_framed(fmt::format("v{} background {}", kImageRecipeVersion,
                                   fmt::join(options_.decode.background, ",")));
  return hasher.hash();
}

Status Preprocessor::fill_pixels(std::span<const std::byte> bytes, std::span<float> values,
                                 ThreadPool& pool) const {
  if (options_.sandbox != nullptr) {
    return options_.sandbox->preprocess(bytes, *recipe_, options_.decode, values);
  }
  TRIPTYCH_ASSIGN_OR_RETURN(const PixelTensor pixels,
                            preprocess_image(bytes, *recipe_, options_.decode, pool));
  if (pixels.values.size() != values.size()) return internal_error("a plan and its pixels differ");
  std::copy(pixels.values.begin(), pixels.values.end(), values.begin());
  return Status::ok();
}

Result<std::shared_ptr<const PreparedMedia>> Preprocessor::prepare_media(
    const MediaItem& item, const MediaId& id, ThreadPool& pool, TensorRegistry& registry) const {
  TRIPTYCH_ASSIGN_OR_RETURN(const ImageCost cost, image_cost(bytes_of(item)));
  auto out = std::make_shared<PreparedMedia>();
  out->id = id;
  out->n_tokens = cost.n_tokens;
  out->source_width = cost.header.width;
  out->source_height = cost.header.height;
  const Shape shape{3, cost.plan.height, cost.plan.width};
  TRIPTYCH_ASSIGN_OR_RETURN(out->pixels, Tensor::allocate(DType::kF32, shape));
  TRIPTYCH_RETURN_IF_ERROR(fill_pixels(
      bytes_of(item), {out->pixels.f32(), static_cast<size_t>(shape.n_elements())}, pool));
  registry.publish(
      "pixel_values", "prep", Modality::kImage, out->pixels.view(),
      fmt::format("{}x{} resized to {}x{}, {} tokens", cost.header.width, cost.header.height,
                  cost.plan.resized_width, cost.plan.resized_height, cost.n_tokens));
  return std::shared_ptr<const PreparedMedia>(std::move(out));
}

}  // namespace triptych
