#include "cli/bench.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/checked.h"
#include "base/json.h"
#include "base/memory.h"

namespace triptych::cli {
namespace {

/// What one run of an answer took.
struct Run {
  double vision_ms = 0;
  double prefill_ms = 0;
  double decode_ms_per_token = 0;
  double ttft_ms = 0;
  int64_t prompt_tokens = 0;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

double median_of(const std::vector<Run>& runs, double Run::*field) {
  std::vector<double> values;
  for (const Run& r : runs) values.push_back(r.*field);
  return median(std::move(values));
}

/// A prompt of `n` tokens whatever the tokenizer: ids spread over the vocabulary, the picture's
/// rows in front.
Result<PreparedRequest> make_prompt(Session& session, const BenchOptions& options) {
  Engine& engine = session.engine();
  PreparedRequest out;
  if (!options.image.empty()) {
    TRIPTYCH_ASSIGN_OR_RETURN(MediaItem item, load_media(options.image));
    Request request;
    request.messages.push_back(user_message({0}, "Describe the picture."));
    request.media.push_back(std::move(item));
    TRIPTYCH_ASSIGN_OR_RETURN(out, session.prep().prepare(request, session.context_tokens(),
                                                          engine.pool(), engine.registry()));
  }
  const ModelSpec& spec = engine.model().spec;
  out.n_known_tokens = spec.text.vocab_size;
  for (uint32_t i = 0; static_cast<int64_t>(out.ids.size()) < options.prompt_tokens; ++i) {
    const auto id = static_cast<int32_t>((i * 2654435761u) % spec.text.vocab_size);
    if (!spec.image_token_id || id != *spec.image_token_id) out.ids.push_back(id);
  }
  out.sampling.max_tokens = options.gen + 1;  // the first token belongs to the prefill
  out.sampling.ignore_eos = true;
  return out;
}

Result<Run> run_once(Session& session, const BenchOptions& options) {
  TRIPTYCH_ASSIGN_OR_RETURN(PreparedRequest prompt, make_prompt(session, options));
  TRIPTYCH_ASSIGN_OR_RETURN(const Answer answer,
                            session.answer_prepared(std::move(prompt), nullptr));
  const Usage& u = answer.usage;
  const double decoded = static_cast<double>(std::max<int64_t>(1, u.completion_tokens - 1));
  return Run{.vision_ms = u.encode_ms,
             .prefill_ms = u.prefill_ms,
             .decode_ms_per_token = u.decode_ms / decoded,
             .ttft_ms = u.ttft_ms(),
             .prompt_tokens = u.prompt_tokens};
}

/// A stage with its time, its work and the limit it stands under.
struct Stage {
  const char* name;
  double ms;
  double n_tokens;
  OpCost cost;
  double fraction;  ///< of the limit
  const char* limit;
};

Stage compute_stage(const char* name, double ms, double n_tokens, OpCost cost, double peak) {
  return {
      name,          ms, n_tokens, cost, peak > 0 && ms > 0 ? cost.flops / (ms * 1e-3) / peak : 0,
      "of GEMM peak"};
}

Stage memory_stage(const char* name, double ms, double n_tokens, OpCost cost, double peak) {
  return {name,
          ms,
          n_tokens,
          cost,
          peak > 0 && ms > 0 ? cost.bytes / (ms * 1e-3) / peak : 0,
          "of read bandwidth"};
}

void print_stages(const std::vector<Stage>& stages) {
  fmt::print("{:<14} {:>10} {:>11} {:>10} {:>9}   {}\n", "stage", "ms", "tokens/s", "GFLOP/s",
             "GB/s", "fraction");
  for (const Stage& s : stages) {
    if (s.ms <= 0) continue;
    fmt::print("{:<14} {:>10.3f} {:>11.1f} {:>10.1f} {:>9.1f}   {:.2f} {}\n", s.name, s.ms,
               1e3 * s.n_tokens / s.ms, s.cost.flops / s.ms / 1e6, s.cost.bytes / s.ms / 1e6,
               s.fraction, s.limit);
  }
}

void set_stage(Json& out, const Stage& s) {
  const std::string name = s.name;
  out.set(name + "_gflops", Json::number(s.ms > 0 ? s.cost.flops / s.ms / 1e6 : 0));
  out.set(name + "_gb_per_s", Json::number(s.ms > 0 ? s.cost.bytes / s.ms / 1e6 : 0));
  out.set(name + "_fraction", Json::number(s.fraction));
}

/// All that a report says.
struct Report {
  std::vector<Run> runs;
  std::vector<Stage> stages;  ///< vision, prefill, decode
  Ceilings ceilings;
  uint64_t peak_memory = 0;

  double ttft_ms() const { return median_of(runs, &Run::ttft_ms); }
};

Report make_report(Engine& engine, const BenchOptions& options, std::vector<Run> runs) {
  Report out;
  // Before the ceilings are measured, whose buffers would count.
  out.peak_memory = peak_resident_bytes();
  out.ceilings = engine.backend().measure_ceilings(engine.pool());
  const double gemm_peak =
      engine.matmul() == MatmulMode::kBF16 ? out.ceilings.bf16_flops : out.ceilings.f32_flops;
  const Model& model = engine.model();
  const DType kv_dtype = engine.plan().kv.dtype;
  const int64_t n_prompt = runs.front().prompt_tokens;
  OpCost vision;
  int64_t image_tokens = 0;
  if (!options.image.empty()) {
    image_tokens = model.spec.vision->n_features();
    vision = model.vision_tower->cost();
    vision += model.projector->cost(image_tokens);
  }
  out.stages = {
      compute_stage("vision", median_of(runs, &Run::vision_ms), static_cast<double>(image_tokens),
                    vision, gemm_peak),
      compute_stage("prefill", median_of(runs, &Run::prefill_ms), static_cast<double>(n_prompt),
                    model.decoder->cost(n_prompt, n_prompt, 1, kv_dtype), gemm_peak),
      memory_stage("decode", median_of(runs, &Run::decode_ms_per_token), 1,
                   model.decoder->cost(1, n_prompt + options.gen / 2, 1, kv_dtype),
                   out.ceilings.read_bytes_per_s)};
  out.runs = std::move(runs);
  return out;
}

double mebibytes(uint64_t n_bytes) { return static_cast<double>(n_bytes) / (1 << 20); }

void print_report(Engine& engine, const Report& report) {
  fmt::print("{}, {} threads, {} repeats, medians\n", engine.backend().description,
             engine.pool().size(), report.runs.size());
  fmt::print("limits measured here: {:.0f} GFLOP/s f32, {:.0f} GFLOP/s bf16, {:.1f} GB/s read\n",
             report.ceilings.f32_flops / 1e9, report.ceilings.bf16_flops / 1e9,
             report.ceilings.read_bytes_per_s / 1e9);
  print_stages(report.stages);
  fmt::print("TTFT {:.1f} ms, load {:.0f} ms, peak memory {:.0f} MiB\n", report.ttft_ms(),
             engine.load_ms(), mebibytes(report.peak_memory));
}

void print_json(Engine& engine, const BenchOptions& options, const Report& report) {
  const int64_t n_prompt = report.runs.front().prompt_tokens;
  Json out = Json::object();
  out.set("backend", Json::string(engine.backend().description));
  out.set("threads", Json::integer(engine.pool().size()));
  out.set("load_ms", Json::number(engine.load_ms()));
  out.set("vision_ms", Json::number(report.stages[0].ms));
  out.set("prefill_ms", Json::number(report.stages[1].ms));
  out.set("prompt_tokens", Json::integer(n_prompt));
  out.set("decode_ms_per_token", Json::number(report.stages[2].ms));
  out.set("ttft_ms", Json::number(report.ttft_ms()));
  out.set("peak_memory_mib", Json::number(mebibytes(report.peak_memory)));
  out.set("weights_mib", Json::number(mebibytes(engine.plan().weight_bytes)));
  // What the run used: pages are taken when they are first written.
  const int64_t used_pages = ceil_div(n_prompt + options.gen, kPageTokens);
  out.set(
      "kv_mib",
      Json::number(mebibytes(static_cast<uint64_t>(used_pages * engine.plan().kv.page_bytes()))));
  out.set("f32_peak_gflops", Json::number(report.ceilings.f32_flops / 1e9));
  out.set("bf16_peak_gflops", Json::number(report.ceilings.bf16_flops / 1e9));
  out.set("read_gb_per_s", Json::number(report.ceilings.read_bytes_per_s / 1e9));
  for (const Stage& s : report.stages) set_stage(out, s);
  fmt::print("{}\n", out.dump());
}

}  // namespace

Status run_bench(const BenchOptions& options) {
  if (options.prompt_tokens < 1 || options.gen < 1 || options.repeats < 1) {
    return invalid_argument("--prompt-tokens, --gen and --repeats must be at least 1");
  }
  TRIPTYCH_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::open(options.session));
  TRIPTYCH_RETURN_IF_ERROR(run_once(*session, options).status());  // warms caches and pages
  std::vector<Run> runs;
  for (int64_t i = 0; i < options.repeats; ++i) {
    TRIPTYCH_ASSIGN_OR_RETURN(const Run run, run_once(*session, options));
    runs.push_back(run);
  }
  Engine& engine = session->engine();
  const Report report = make_report(engine, options, std::move(runs));
  if (options.json) {
    print_json(engine, options, report);
  } else {
    print_report(engine, report);
  }
  return Status::ok();
}

}  // namespace triptych::cli
