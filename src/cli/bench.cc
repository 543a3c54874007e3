#include "cli/bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

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
  double ttft_ms = 0;  ///< from the file to the first token
  int64_t prompt_tokens = 0;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

double median_of(const std::vector<Run>& runs, double Run::*field) {
  std::vector<double> values;
  values.reserve(runs.size());
  for (const Run& r : runs) values.push_back(r.*field);
  return median(std::move(values));
}

/// A prompt of `n` tokens whatever the tokenizer: ids spread over the vocabulary, the picture's
/// rows in front.
Result<PreparedRequest> make_prompt(Session& session, const BenchOptions& options) {
  ModelRunner& runner = session.runner();
  PreparedRequest out;
  if (!options.image.empty()) {
    TRIPTYCH_ASSIGN_OR_RETURN(MediaItem item, load_media(options.image));
    Request request;
    request.messages.push_back(user_message({0}, "Describe the picture."));
    request.media.push_back(std::move(item));
    TRIPTYCH_ASSIGN_OR_RETURN(out, session.prep().prepare(request, session.context_tokens(),
                                                          runner.pool(), runner.registry()));
  }
  const ModelSpec& spec = runner.model().spec;
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
  const auto n_prompt = static_cast<int64_t>(prompt.ids.size());
  if (n_prompt + options.gen + 1 > session.context_tokens()) {
    return out_of_range(
        fmt::format("a prompt of {} tokens, its first and {} more do not fit: the "
                    "context holds {}; lower --prompt-tokens or --gen",
                    n_prompt, options.gen, session.context_tokens()));
  }
  TRIPTYCH_ASSIGN_OR_RETURN(const Answer answer,
                            session.answer_prepared(std::move(prompt), nullptr));
  const Usage& u = answer.usage;
  return Run{.vision_ms = u.encode_ms,
             .prefill_ms = u.prefill_ms,
             .decode_ms_per_token = u.decode_ms / static_cast<double>(u.decode_steps()),
             .ttft_ms = u.ttft_ms().value_or(0),
             .prompt_tokens = u.prompt_tokens};
}

/// A stage with its time, its work and the limit it stands under.
struct Stage {
  const char* name;
  double ms;
  double n_tokens;
  OpCost cost;
  std::optional<double> fraction;  ///< of the limit; nothing where the machine has none
  const char* limit;
  const char* ms_suffix;  ///< of the time's JSON key
};

std::optional<double> fraction_of(double rate, double peak) {
  return peak > 0 ? std::optional(rate / peak) : std::nullopt;
}

Stage compute_stage(const char* name, double ms, double n_tokens, OpCost cost, double peak) {
  const double rate = cost.flops / (ms * 1e-3);
  return {name, ms, n_tokens, cost, fraction_of(rate, peak), "of GEMM peak", "_ms"};
}

Stage memory_stage(const char* name, double ms, double n_tokens, OpCost cost, double peak) {
  const double rate = cost.bytes / (ms * 1e-3);
  return {name, ms, n_tokens, cost, fraction_of(rate, peak), "of read bandwidth", "_ms_per_token"};
}

/// "123 GFLOP/s", or "none" of a machine without such products.
std::string peak_text(double flops) {
  return flops > 0 ? fmt::format("{:.0f} GFLOP/s", flops / 1e9) : "none";
}

void print_stages(const std::vector<Stage>& stages) {
  fmt::print("{:<14} {:>10} {:>11} {:>10} {:>9}   {}\n", "stage", "ms", "tokens/s", "GFLOP/s",
             "GB/s", "fraction");
  for (const Stage& s : stages) {
    fmt::print("{:<14} {:>10.3f} {:>11.1f} {:>10.1f} {:>9.1f}   {}\n", s.name, s.ms,
               1e3 * s.n_tokens / s.ms, s.cost.flops / s.ms / 1e6, s.cost.bytes / s.ms / 1e6,
               s.fraction ? fmt::format("{:.2f} {}", *s.fraction, s.limit) : "-");
  }
}

void set_stage(Json& out, const Stage& s) {
  const std::string name = s.name;
  out.set(name + s.ms_suffix, Json::number(s.ms));
  out.set(name + "_gflops", Json::number(s.cost.flops / s.ms / 1e6));
  out.set(name + "_gb_per_s", Json::number(s.cost.bytes / s.ms / 1e6));
  out.set(name + "_fraction", Json::number_or_null(s.fraction));
}

/// All that a report says.
struct Report {
  std::vector<Run> runs;
  std::vector<Stage> stages;  ///< those that ran: vision with a picture, prefill, decode
  Ceilings ceilings;
  uint64_t peak_memory = 0;

  double ttft_ms() const { return median_of(runs, &Run::ttft_ms); }
};

Report make_report(ModelRunner& runner, const BenchOptions& options, std::vector<Run> runs) {
  Report out;
  // Before the ceilings are measured, whose buffers would count.
  out.peak_memory = peak_resident_bytes();
  out.ceilings = runner.backend().measure_ceilings(runner.pool());
  const double gemm_peak =
      runner.matmul() == MatmulMode::kBF16 ? out.ceilings.bf16_flops : out.ceilings.f32_flops;
  const Model& model = runner.model();
  const DType kv_dtype = runner.plan().kv.dtype;
  const int64_t n_prompt = runs.front().prompt_tokens;
  if (!options.image.empty()) {
    const int64_t image_tokens = model.spec.vision->n_features();
    OpCost vision = model.vision_tower->cost();
    vision += model.projector->cost(image_tokens);
    out.stages.push_back(compute_stage("vision", median_of(runs, &Run::vision_ms),
                                       static_cast<double>(image_tokens), vision, gemm_peak));
  }
  out.stages.push_back(
      compute_stage("prefill", median_of(runs, &Run::prefill_ms), static_cast<double>(n_prompt),
                    model.decoder->cost(n_prompt, n_prompt, 1, kv_dtype), gemm_peak));
  out.stages.push_back(memory_stage("decode", median_of(runs, &Run::decode_ms_per_token), 1,
                                    model.decoder->cost(1, n_prompt + options.gen / 2, 1, kv_dtype),
                                    out.ceilings.read_bytes_per_s));
  out.runs = std::move(runs);
  return out;
}

double mebibytes(uint64_t n_bytes) { return static_cast<double>(n_bytes) / (1 << 20); }

void print_report(ModelRunner& runner, const Report& report) {
  fmt::print("{}, {} threads, {} repeats, medians\n", runner.backend().description,
             runner.pool().size(), report.runs.size());
  fmt::print("limits measured here: f32 {}, bf16 {}, {:.1f} GB/s read\n",
             peak_text(report.ceilings.f32_flops), peak_text(report.ceilings.bf16_flops),
             report.ceilings.read_bytes_per_s / 1e9);
  print_stages(report.stages);
  fmt::print("TTFT {:.1f} ms, load {:.0f} ms, peak memory {:.0f} MiB\n", report.ttft_ms(),
             runner.load_ms(), mebibytes(report.peak_memory));
}

void print_json(ModelRunner& runner, const BenchOptions& options, const Report& report) {
  const int64_t n_prompt = report.runs.front().prompt_tokens;
  Json out = Json::object();
  out.set("backend", Json::string(runner.backend().description));
  out.set("threads", Json::integer(runner.pool().size()));
  out.set("load_ms", Json::number(runner.load_ms()));
  out.set("prompt_tokens", Json::integer(n_prompt));
  out.set("ttft_ms", Json::number(report.ttft_ms()));
  out.set("peak_memory_mib", Json::number(mebibytes(report.peak_memory)));
  out.set("weights_mib", Json::number(mebibytes(runner.plan().weight_bytes)));
  // What the run used: pages are taken when they are first written.
  const int64_t used_pages = ceil_div(n_prompt + options.gen, kPageTokens);
  out.set(
      "kv_mib",
      Json::number(mebibytes(static_cast<uint64_t>(used_pages * runner.plan().kv.page_bytes()))));
  const Ceilings& limits = report.ceilings;
  out.set("f32_peak_gflops", Json::number(limits.f32_flops / 1e9));
  out.set("bf16_peak_gflops",
          limits.bf16_flops > 0 ? Json::number(limits.bf16_flops / 1e9) : Json());
  out.set("read_gb_per_s", Json::number(limits.read_bytes_per_s / 1e9));
  for (const Stage& s : report.stages) set_stage(out, s);
  fmt::print("{}\n", out.dump());
}

}  // namespace

Status run_bench(const BenchOptions& options) {
  if (options.prompt_tokens < 1 || options.gen < 1 || options.repeats < 1) {
    return invalid_argument("--prompt-tokens, --gen and --repeats must be at least 1");
  }
  SessionOptions uncached = options.session;
  uncached.caches = false;  // each repeat does all the work
  TRIPTYCH_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::open(uncached));
  TRIPTYCH_RETURN_IF_ERROR(run_once(*session, options).status());  // warms caches and pages
  std::vector<Run> runs;
  for (int64_t i = 0; i < options.repeats; ++i) {
    TRIPTYCH_ASSIGN_OR_RETURN(const Run run, run_once(*session, options));
    runs.push_back(run);
  }
  ModelRunner& runner = session->runner();
  const Report report = make_report(runner, options, std::move(runs));
  if (options.json) {
    print_json(runner, options, report);
  } else {
    print_report(runner, report);
  }
  return Status::ok();
}

}  // namespace triptych::cli
