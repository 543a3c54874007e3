#include "engine/model_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/clock.h"
#include "ops/rows.h"

namespace triptych {
namespace {

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

/// Pages that both tables begin with. A page that stands in two tables is complete in both, and so
/// are those in front of it (cache/kv/CONTRACT.md).
int64_t n_shared_pages(std::span<const int32_t> a, std::span<const int32_t> b) {
  return std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin();
}

}  // namespace

Result<std::unique_ptr<ModelRunner>> ModelRunner::load(const Checkpoint& checkpoint,
                                                       const Backend& backend,
                                                       const Settings& settings,
                                                       const PlanLimits& plan_limits) {
  const double start = steady_ms();
  if (const char* missing = first_missing_op(backend.kernels); missing != nullptr) {
    return internal_error(
        fmt::format("backend {} has no kernel for {}", backend.description, missing));
  }
  TRIPTYCH_ASSIGN_OR_RETURN(const int n_threads, settings.thread_count());
  if (settings.huge_pages != "on" && settings.huge_pages != "off") {
    return invalid_argument(
        fmt::format("TRIPTYCH_HUGE_PAGES=\"{}\": use on or off", settings.huge_pages));
  }
  const bool huge = settings.huge_pages == "on";
  std::unique_ptr<ModelRunner> out(new ModelRunner(backend, new ThreadPool(n_threads)));
  TRIPTYCH_ASSIGN_OR_RETURN(out->matmul_, choose_matmul(settings, backend));
  TRIPTYCH_ASSIGN_OR_RETURN(out->model_, load_model(checkpoint, backend.kernels,
                                                    Stream{out->pool_.get(), nullptr}, huge));
  TRIPTYCH_ASSIGN_OR_RETURN(const DType kv_dtype, choose_kv_dtype(settings, *out->model_));
  TRIPTYCH_ASSIGN_OR_RETURN(out->plan_,
                            plan_memory(*out->model_, kv_dtype, plan_limits, n_threads));
  const MemoryPlan& plan = out->plan_;
  TRIPTYCH_ASSIGN_OR_RETURN(out->kv_, PagePool::create(plan.kv, plan.kv_pages, huge));
  TRIPTYCH_ASSIGN_OR_RETURN(out->scratch_, Arena::create(plan.workspace_bytes, huge));
  const ModelSpec& spec = out->model_->spec;
  TRIPTYCH_ASSIGN_OR_RETURN(
      out->logits_,
      out->scratch_.allocate(DType::kF32, Shape{plan.max_sequences, spec.text.vocab_size}));
  out->limits_ = {.context_tokens = plan.context_tokens,
                  .step_rows = plan.step_rows,
                  .chunk_rows = plan.chunk_rows,
                  .max_sequences = plan.max_sequences,
                  .vocab_size = spec.text.vocab_size,
                  .hidden_size = spec.text.hidden_size,
                  .n_encode_blocks = spec.vision ? out->model_->vision_tower->n_blocks() : 0,
                  .encode_block_flops = 0,
                  .encode_bytes = plan.encode_bytes,
                  .row_cost = {},
                  .pair_cost = {},
                  .eos_ids = spec.generation.eos_ids};
  out->measure_costs(kv_dtype);
  out->load_ms_ = steady_ms() - start;
  return out;
}

/// What the scheduler's cost model starts from, by the operators' own cost functions.
void ModelRunner::measure_costs(DType kv_dtype) {
  const Decoder& decoder = *model_->decoder;
  limits_.row_cost = decoder.cost(1, 1, 1, kv_dtype);
  constexpr int64_t kFar = 1025;
  const OpCost far = decoder.cost(1, kFar, 1, kv_dtype);
  limits_.pair_cost = {(far.flops - limits_.row_cost.flops) / (kFar - 1),
                       (far.bytes - limits_.row_cost.bytes) / (kFar - 1)};
  if (limits_.n_encode_blocks > 0) {
    limits_.encode_block_flops =
        model_->vision_tower->cost().flops / static_cast<double>(limits_.n_encode_blocks);
  }
}

OpContext ModelRunner::context() {
  return {.kernels = &backend_.kernels,
          .stream = {pool_.get(), nullptr},
          .scratch = &scratch_,
          .registry = &registry_,
          .matmul = matmul_};
}

Status ModelRunner::encode(EncodeJob& job, int64_t n_blocks) {
  if (model_->vision_tower == nullptr) return internal_error("a text model was given a picture");
  const OpContext ctx = context();
  const PreparedMedia& media = *job.media;
  const VisionTower& tower = *model_->vision_tower;
  if (!job.started) {
    // Pictures of other requests are prepared meanwhile: this item's own pixels are looked at.
    registry_.publish("vision_tower.in", "prep", media.modality, media.pixels.view());
    TRIPTYCH_RETURN_IF_ERROR(
        registry_.expect("vision_tower.in", "vision_tower", DType::kF32, Shape{3, -1, -1}));
    TRIPTYCH_RETURN_IF_ERROR(tower.start(ctx, media.pixels.view(), job.state));
    job.started = true;
  }
  TRIPTYCH_RETURN_IF_ERROR(tower.advance(ctx, n_blocks, job.state));
  if (job.state.next_block < tower.n_blocks()) return Status::ok();
  const View features = job.state.features.view();
  registry_.publish("vision_tower.out", "vision_tower", media.modality, features);
  TRIPTYCH_RETURN_IF_ERROR(
      registry_.expect("vision_tower.out", "projector", DType::kF32,
                       Shape{media.n_tokens, model_->spec.vision->feature_width()}));
  TRIPTYCH_ASSIGN_OR_RETURN(
      job.embeddings,
      Tensor::allocate(DType::kF32, Shape{media.n_tokens, model_->spec.text.hidden_size}));
  TRIPTYCH_RETURN_IF_ERROR(model_->projector->forward(ctx, features, job.embeddings.view()));
  registry_.publish("projector.out", "projector", media.modality, job.embeddings.view());
  job.state = EncodeState{};
  job.done = true;
  return Status::ok();
}

/// Writes media embeddings over the rows of one sequence's step; `hidden` is those rows.
Status ModelRunner::merge_media(const SequenceStep& step, const View& hidden) {
  const auto n_rows = static_cast<int64_t>(step.ids.size());
  for (const MediaRows& media : step.media) {
    const View& source = media.embeddings;
    const int64_t begin = std::max(step.first, media.position);
    const int64_t end = std::min(step.first + n_rows, media.position + source.shape[0]);
    if (begin >= end) continue;
    if (source.shape[1] != hidden.shape[1]) {
      return internal_error(fmt::format("media embeddings {} for rows of {}",
                                        source.shape.to_string(), hidden.shape[1]));
    }
    TRIPTYCH_RETURN_IF_ERROR(
        gather_rows(context(), source.rows(begin - media.position, end - begin), nullptr,
                    end - begin, hidden.rows(begin - step.first, end - begin), nullptr));
  }
  return Status::ok();
}

Status ModelRunner::embed(std::span<const SequenceStep> batch, const View& hidden) {
  int64_t row = 0;
  for (const SequenceStep& step : batch) {
    const auto n = static_cast<int64_t>(step.ids.size());
    const View rows = hidden.rows(row, n);
    TRIPTYCH_RETURN_IF_ERROR(model_->decoder->embed(context(), step.ids.data(), rows));
    TRIPTYCH_RETURN_IF_ERROR(merge_media(step, rows));
    row += n;
  }
  return Status::ok();
}

Result<View> ModelRunner::forward(std::span<const SequenceStep> batch) {
  std::vector<SequenceRows> sequences;
  std::vector<int32_t> positions;
  std::vector<int32_t> logit_rows;
  std::span<const int32_t> pages_before;
  for (const SequenceStep& step : batch) {
    const auto row = static_cast<int64_t>(positions.size());
    const auto n = static_cast<int64_t>(step.ids.size());
    sequences.push_back({.row = row,
                         .n_rows = n,
                         .kv_len = step.first + n,
                         .pages = step.pages.data(),
                         .page_begin = step.page_begin,
                         .shared_pages = n_shared_pages(pages_before, step.pages)});
    pages_before = step.pages;
    for (int64_t i = 0; i < n; ++i) positions.push_back(static_cast<int32_t>(step.first + i));
    if (step.wants_logits) logit_rows.push_back(static_cast<int32_t>(row + n - 1));
  }
  const auto n_rows = static_cast<int64_t>(positions.size());
  const auto n_logits = static_cast<int64_t>(logit_rows.size());
  if (n_rows > limits_.step_rows || n_logits > limits_.max_sequences) {
    return internal_error(fmt::format("a step of {} rows and {} sequences, planned for {} and {}",
                                      n_rows, n_logits, limits_.step_rows, limits_.max_sequences));
  }
  const ArenaScope scope(scratch_);
  TRIPTYCH_ASSIGN_OR_RETURN(
      const View hidden,
      scratch_.allocate(DType::kF32, Shape{n_rows, model_->spec.text.hidden_size}));
  TRIPTYCH_RETURN_IF_ERROR(embed(batch, hidden));
  registry_.tap("decoder.embeddings", hidden);
  const View logits = logits_.rows(0, n_logits);
  TRIPTYCH_RETURN_IF_ERROR(
      model_->decoder->forward(context(),
                               {.hidden = hidden,
                                .positions = positions.data(),
                                .sequences = sequences.data(),
                                .n_sequences = static_cast<int64_t>(sequences.size()),
                                .kv_layers = kv_.layers().data(),
                                .logit_rows = logit_rows.data(),
                                .n_logit_rows = n_logits},
                               logits));
  if (n_logits > 0) registry_.publish("logits", "decoder", Modality::kText, logits);
  return logits;
}

Status ModelRunner::logits_of(std::span<const int32_t> ids, int64_t first,
                              std::span<const int32_t> pages, const View& logits) {
  const auto n = static_cast<int64_t>(ids.size());
  const ArenaScope scope(scratch_);
  TRIPTYCH_ASSIGN_OR_RETURN(
      const View hidden, scratch_.allocate(DType::kF32, Shape{n, model_->spec.text.hidden_size}));
  TRIPTYCH_RETURN_IF_ERROR(model_->decoder->embed(context(), ids.data(), hidden));
  std::vector<int32_t> positions(ids.size());
  std::iota(positions.begin(), positions.end(), static_cast<int32_t>(first));
  std::vector<int32_t> rows(ids.size());
  std::iota(rows.begin(), rows.end(), 0);
  const SequenceRows sequence{.row = 0, .n_rows = n, .kv_len = first + n, .pages = pages.data()};
  return model_->decoder->forward(context(),
                                  {.hidden = hidden,
                                   .positions = positions.data(),
                                   .sequences = &sequence,
                                   .n_sequences = 1,
                                   .kv_layers = kv_.layers().data(),
                                   .logit_rows = rows.data(),
                                   .n_logit_rows = n},
                                  logits);
}

}  // namespace triptych
