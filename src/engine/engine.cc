#include "engine/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <numeric>

#include "ops/rows.h"

namespace triptych {
namespace {

using Clock = std::chrono::steady_clock;

// Blocks of a tower between two looks at the sequence's state (cancel): about a tenth of a large
// tower.
constexpr int64_t kBlocksPerSlice = 4;

/// Adds the time of a scope to a figure.
class ScopedTimer {
 public:
  explicit ScopedTimer(double& total_ms) : total_ms_(total_ms), start_(Clock::now()) {}
  ~ScopedTimer() {
    total_ms_ += std::chrono::duration<double, std::milli>(Clock::now() - start_).count();
  }
  ScopedTimer(const ScopedTimer&) = delete;
  ScopedTimer& operator=(const ScopedTimer&) = delete;

 private:
  double& total_ms_;
  Clock::time_point start_;
};

Result<MatmulMode> choose_matmul(const Settings& settings, const Backend& backend) {
  if (settings.matmul == "f32") return MatmulMode::kF32;
  if (settings.matmul == "auto") {
    return backend.native_bf16_matmul ? MatmulMode::kBF16 : MatmulMode::kF32;
  }
  if (settings.matmul != "bf16") {
    return invalid_argument(
        fmt::format("TRIPTYCH_MATMUL=\"{}\" is unknown: use auto, f32 or bf16", settings.matmul));
  }
  if (!backend.native_bf16_matmul) {
    return unsupported(
        fmt::format("TRIPTYCH_MATMUL=bf16: {} has no bf16 products", backend.description));
  }
  return MatmulMode::kBF16;
}

Result<DType> choose_kv_dtype(const Settings& settings, const Model& model) {
  if (settings.kv_dtype == "auto") return model.decoder->weight_dtype();
  Result<DType> dtype = parse_dtype(settings.kv_dtype);
  if (!dtype.is_ok()) return dtype.status().with_context("TRIPTYCH_KV_DTYPE");
  if (*dtype != DType::kF32 && *dtype != DType::kBF16 && *dtype != DType::kF16) {
    return invalid_argument("TRIPTYCH_KV_DTYPE: use auto, f32, bf16 or f16");
  }
  return dtype;
}

}  // namespace

/// A request in work. Written by the engine's thread alone.
struct Engine::Sequence {
  uint64_t id = 0;
  PreparedRequest request;
  std::vector<int32_t> ids;    ///< prompt, then drawn tokens
  int64_t n_cached = 0;        ///< tokens whose keys and values are in the cache
  std::vector<int32_t> pages;  ///< page table
  Sampler sampler{SamplingParams{}, {}};
  std::vector<Tensor> media_embeddings;  ///< [n_tokens, D], by media index; as far as encoded
  EncodeState encode;
  bool encoding = false;
  bool cancelled = false;
  int64_t max_new = 0;
};

Engine::Engine(const Backend& backend, ThreadPool* pool) : backend_(backend), pool_(pool) {}
Engine::~Engine() = default;

Result<std::unique_ptr<Engine>> Engine::load(const Checkpoint& checkpoint, const Backend& backend,
                                             const EngineOptions& options) {
  const auto start = Clock::now();
  if (const char* missing = first_missing_op(backend.kernels); missing != nullptr) {
    return internal_error(
        fmt::format("backend {} has no kernel for {}", backend.description, missing));
  }
  TRIPTYCH_ASSIGN_OR_RETURN(const int n_threads, options.settings.thread_count());
  const std::string& pages = options.settings.huge_pages;
  if (pages != "on" && pages != "off") {
    return invalid_argument(fmt::format("TRIPTYCH_HUGE_PAGES=\"{}\": use on or off", pages));
  }
  const bool huge = pages == "on";
  std::unique_ptr<Engine> engine(new Engine(backend, new ThreadPool(n_threads)));
  TRIPTYCH_ASSIGN_OR_RETURN(engine->matmul_, choose_matmul(options.settings, backend));
  TRIPTYCH_ASSIGN_OR_RETURN(engine->model_, load_model(checkpoint, backend.kernels,
                                                       Stream{engine->pool_.get(), nullptr}, huge));
  TRIPTYCH_ASSIGN_OR_RETURN(const DType kv_dtype,
                            choose_kv_dtype(options.settings, *engine->model_));
  TRIPTYCH_ASSIGN_OR_RETURN(engine->plan_,
                            plan_memory(*engine->model_, kv_dtype, options.limits, n_threads));
  TRIPTYCH_ASSIGN_OR_RETURN(engine->kv_,
                            PagePool::create(engine->plan_.kv, engine->plan_.kv_pages, huge));
  TRIPTYCH_ASSIGN_OR_RETURN(engine->scratch_, Arena::create(engine->plan_.workspace_bytes, huge));
  engine->load_ms_ = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
  return engine;
}

OpContext Engine::context() {
  return {.kernels = &backend_.kernels,
          .stream = {pool_.get(), nullptr},
          .scratch = &scratch_,
          .registry = &registry_,
          .matmul = matmul_};
}

Result<uint64_t> Engine::submit(PreparedRequest request) {
  if (sequence_ != nullptr) {
    return Status(StatusCode::kUnavailable, "the engine is busy with another sequence");
  }
  const auto n_prompt = static_cast<int64_t>(request.ids.size());
  if (n_prompt == 0) return invalid_argument("the prompt is empty");
  if (n_prompt >= plan_.context_tokens) {
    return out_of_range(fmt::format("the prompt has {} tokens, the context holds {}", n_prompt,
                                    plan_.context_tokens));
  }
  for (const Span& span : request.spans) {
    if (span.media >= request.media.size() || span.position < 0 ||
        span.position + span.length > n_prompt ||
        span.length != request.media[span.media].n_tokens) {
      return internal_error(
          fmt::format("span at {} of {} rows does not fit its media or the prompt", span.position,
                      span.length));
    }
  }
  if (request.sampling.n != 1) {
    return unsupported(
        fmt::format("n is {}; this engine gives one answer a request", request.sampling.n));
  }
  SamplerSetup setup{.eos_ids = model_->spec.generation.eos_ids,
                     .seed = seeds_.next(),
                     .n_known = request.n_known_tokens};
  if (request.constraint != nullptr) {
    TRIPTYCH_ASSIGN_OR_RETURN(setup.constraint, request.constraint->start());
  }
  auto sequence = std::make_unique<Sequence>();
  TRIPTYCH_RETURN_IF_ERROR(kv_.reserve(n_prompt, sequence->pages));
  sequence->id = next_id_++;
  sequence->ids = request.ids;
  sequence->sampler = Sampler(request.sampling, std::move(setup));
  sequence->sampler.observe_prompt(sequence->ids);
  const int64_t room = plan_.context_tokens - n_prompt;
  sequence->max_new =
      request.sampling.max_tokens > 0 ? std::min(request.sampling.max_tokens, room) : room;
  usage_ = Usage{.prompt_tokens = n_prompt, .prep_ms = request.prep_ms};
  for (const Span& span : request.spans) usage_.media_tokens += span.length;
  sequence->request = std::move(request);
  sequence_ = std::move(sequence);
  return sequence_->id;
}

void Engine::cancel(uint64_t sequence) {
  if (sequence_ != nullptr && sequence_->id == sequence) sequence_->cancelled = true;
}

TokenEvent Engine::finish(FinishReason reason, int32_t token, Status error) {
  TokenEvent event{sequence_->id, token, reason, std::move(error)};
  kv_.release(sequence_->pages);
  sequence_ = nullptr;
  return event;
}

std::optional<TokenEvent> Engine::step() {
  if (sequence_ == nullptr) return std::nullopt;
  if (sequence_->cancelled) return finish(FinishReason::kCancelled, -1, Status::ok());
  Result<std::optional<TokenEvent>> event = advance();
  if (event.is_ok()) return *event;
  return finish(FinishReason::kError, -1, event.status());
}

Result<std::optional<TokenEvent>> Engine::advance() {
  Sequence& s = *sequence_;
  if (s.media_embeddings.size() < s.request.media.size()) {
    const ScopedTimer timer(usage_.encode_ms);
    TRIPTYCH_RETURN_IF_ERROR(encode_slice());
    return std::optional<TokenEvent>();
  }
  const auto n_total = static_cast<int64_t>(s.ids.size());
  const int64_t n_rows = std::min(plan_.chunk_rows, n_total - s.n_cached);
  const bool in_prompt = s.n_cached < usage_.prompt_tokens;
  const bool last_rows = s.n_cached + n_rows == n_total;
  const ScopedTimer timer(in_prompt ? usage_.prefill_ms : usage_.decode_ms);
  TRIPTYCH_RETURN_IF_ERROR(kv_.reserve(s.n_cached + n_rows, s.pages));
  std::vector<float> logits;
  TRIPTYCH_RETURN_IF_ERROR(forward_rows(n_rows, last_rows ? &logits : nullptr));
  if (!last_rows) return std::optional<TokenEvent>();
  registry_.publish(
      "logits", "decoder", Modality::kText,
      View::dense(logits.data(), DType::kF32, Shape{static_cast<int64_t>(logits.size())}));
  TRIPTYCH_ASSIGN_OR_RETURN(DrawnToken drawn, s.sampler.sample(logits, sampler_scratch_));
  TRIPTYCH_ASSIGN_OR_RETURN(TokenEvent event, token_event(std::move(drawn)));
  return std::optional<TokenEvent>(std::move(event));
}

Result<TokenEvent> Engine::token_event(DrawnToken drawn) {
  Sequence& s = *sequence_;
  ++usage_.drawn_tokens;
  if (s.sampler.ends(drawn.token)) return finish(FinishReason::kStop, -1, Status::ok());
  TRIPTYCH_RETURN_IF_ERROR(s.sampler.accept(drawn.token));
  ++usage_.completion_tokens;
  TokenEvent event{s.id, drawn.token};
  if (s.sampler.finished()) {
    event = finish(FinishReason::kStop, drawn.token, Status::ok());
  } else if (usage_.completion_tokens >= s.max_new) {
    event = finish(FinishReason::kLength, drawn.token, Status::ok());
  } else {
    s.ids.push_back(drawn.token);
  }
  event.logprobs = std::move(drawn.logprobs);
  return event;
}

Status Engine::encode_slice() {
  Sequence& s = *sequence_;
  const OpContext ctx = context();
  const PreparedMedia& media = s.request.media[s.media_embeddings.size()];
  const VisionTower& tower = *model_->vision_tower;
  if (!s.encoding) {
    TRIPTYCH_RETURN_IF_ERROR(
        registry_.expect("pixel_values", "vision_tower", DType::kF32, Shape{3, -1, -1}));
    TRIPTYCH_RETURN_IF_ERROR(tower.start(ctx, media.pixels.view(), s.encode));
    s.encoding = true;
  }
  TRIPTYCH_RETURN_IF_ERROR(tower.advance(ctx, kBlocksPerSlice, s.encode));
  if (s.encode.next_block < tower.n_blocks()) return Status::ok();
  const View features = s.encode.features.view();
  registry_.publish("vision_tower.out", "vision_tower", media.modality, features);
  TRIPTYCH_RETURN_IF_ERROR(
      registry_.expect("vision_tower.out", "projector", DType::kF32,
                       Shape{media.n_tokens, model_->spec.vision->feature_width()}));
  TRIPTYCH_ASSIGN_OR_RETURN(
      Tensor embeddings,
      Tensor::allocate(DType::kF32, Shape{media.n_tokens, model_->spec.text.hidden_size}));
  TRIPTYCH_RETURN_IF_ERROR(model_->projector->forward(ctx, features, embeddings.view()));
  registry_.publish("projector.out", "projector", media.modality, embeddings.view());
  s.media_embeddings.push_back(std::move(embeddings));
  s.encode = EncodeState{};
  s.encoding = false;
  return Status::ok();
}

/// Writes features over the embedding rows [first, first + n_rows) that belong to spans.
Status Engine::merge_media(int64_t first, int64_t n_rows, const View& hidden) {
  const Sequence& s = *sequence_;
  for (const Span& span : s.request.spans) {
    const int64_t begin = std::max(first, span.position);
    const int64_t end = std::min(first + n_rows, span.position + span.length);
    if (begin >= end) continue;
    const View source = s.media_embeddings[span.media].view();
    if (source.shape != Shape{span.length, hidden.shape[1]}) {
      return internal_error(fmt::format("media embeddings {} for a span of {} rows of {}",
                                        source.shape.to_string(), span.length, hidden.shape[1]));
    }
    TRIPTYCH_RETURN_IF_ERROR(gather_rows(context(), source.rows(begin - span.position, end - begin),
                                         nullptr, end - begin,
                                         hidden.rows(begin - first, end - begin), nullptr));
  }
  return Status::ok();
}

/// Runs one sequence's rows through the decoder: `hidden` holds their embeddings, the first of them
/// at position `first`. Fills `logits` with those of the last logits.shape[0] rows.
Status Engine::run_decoder(const View& hidden, int64_t first, const std::vector<int32_t>& pages,
                           const View& logits) {
  const int64_t n_rows = hidden.shape[0];
  const int64_t n_logits = logits.shape[0];
  std::vector<int32_t> positions(static_cast<size_t>(n_rows));
  std::iota(positions.begin(), positions.end(), static_cast<int32_t>(first));
  std::vector<int32_t> logit_rows(static_cast<size_t>(n_logits));
  std::iota(logit_rows.begin(), logit_rows.end(), static_cast<int32_t>(n_rows - n_logits));
  const SequenceRows rows{
      .row = 0, .n_rows = n_rows, .kv_len = first + n_rows, .pages = pages.data()};
  return model_->decoder->forward(context(),
                                  {.hidden = hidden,
                                   .positions = positions.data(),
                                   .sequences = &rows,
                                   .n_sequences = 1,
                                   .kv_layers = kv_.layers().data(),
                                   .logit_rows = logit_rows.data(),
                                   .n_logit_rows = n_logits},
                                  logits);
}

/// Runs the next `n_rows` tokens through the decoder and commits them to the cache. With `logits`,
/// those of the last row are copied there.
Status Engine::forward_rows(int64_t n_rows, std::vector<float>* logits) {
  Sequence& s = *sequence_;
  const ArenaScope scope(scratch_);
  TRIPTYCH_ASSIGN_OR_RETURN(
      View hidden, scratch_.allocate(DType::kF32, Shape{n_rows, model_->spec.text.hidden_size}));
  TRIPTYCH_RETURN_IF_ERROR(model_->decoder->embed(context(), s.ids.data() + s.n_cached, hidden));
  TRIPTYCH_RETURN_IF_ERROR(merge_media(s.n_cached, n_rows, hidden));
  const int64_t n_logits = logits != nullptr ? 1 : 0;
  TRIPTYCH_ASSIGN_OR_RETURN(
      View out, scratch_.allocate(DType::kF32, Shape{n_logits, model_->spec.text.vocab_size}));
  registry_.tap("decoder.embeddings", hidden);
  TRIPTYCH_RETURN_IF_ERROR(run_decoder(hidden, s.n_cached, s.pages, out));
  s.n_cached += n_rows;
  if (logits != nullptr) logits->assign(out.f32(), out.f32() + out.shape[1]);
  return Status::ok();
}

}  // namespace triptych
